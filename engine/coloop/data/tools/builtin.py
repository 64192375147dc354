"""The built-in tools search, calculator and Python.

search        the best documents of a column, by BM25 (Robertson and Walker 1994; Lucene's form,
              k1 1.5, b 0.75), from an index that is built once
calculator    2*(3+4)**2 / 7  ->  14, as exact fractions; no names, no calls
Python        a sandbox for each text, with its own variables; if code is too slow, crashes or needs
              too much memory, the policy is told that its variables are gone
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import bm25s  # type: ignore[import-untyped]
import numpy as np

from coloop.data.expressions import Grammar, NotArithmetic, read_expression
from coloop.data.tools.protocol import Answered, Caller, StatelessTool, Tick, ToolFailure
from coloop.errors import DataError, UserCodeError
from coloop.sandbox.process import Sandbox

WORD: Final = re.compile(r"\w+")


class Index:
    """A BM25 index of texts, by words (letters and digits, case-insensitive).

    Only documents with a word of the query match; of equal scores, the first comes first.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._known: dict[str, int] = {}
        ids = [
            [self._known.setdefault(word, len(self._known)) for word in words_of(text)]
            for text in texts
        ]
        self._bm25 = bm25s.BM25()
        tokenized = bm25s.tokenization.Tokenized(ids=ids, vocab=self._known)
        self._bm25.index(tokenized, show_progress=False, create_empty_token=False)

    def best(self, query: str, count: int) -> list[str]:
        """The best documents, best first; fewer if fewer match."""
        words = [self._known[word] for word in words_of(query) if word in self._known]
        if not words:
            return []
        scores = np.asarray(self._bm25.get_scores_from_ids(words))
        order = np.argsort(-scores, kind="stable")[:count]
        return [self._texts[document] for document in order if scores[document] > 0]


class Search(StatelessTool):
    def __init__(self, index: Index, top_k: int) -> None:
        self._index = index
        self._top_k = top_k

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        del tick
        query = arguments.get("query", "").strip()
        if not query:
            raise ToolFailure("the query is empty")
        documents = self._index.best(query, self._top_k)
        return Answered(value="\n".join(documents) or "nothing found", parts=tuple(documents))


def words_of(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def texts_of(rows: Sequence[Mapping[str, Any]], column: str, node: str, giver: str) -> list[str]:
    """Texts of a column for an index; raises DataError if one is not a text, or none has a word."""
    texts = []
    for index, row in enumerate(rows):
        text = row.get(column)
        if not isinstance(text, str):
            state = "is not there" if text is None else f"is a {type(text).__name__}"
            raise DataError(
                f"{node}: document {index} of {giver} has no text in column `{column}`: it {state};"
                f" it has {', '.join(sorted(row)) or 'no columns'}; name the column with `column`",
                node,
                "column",
            )
        texts.append(text)
    if not any(words_of(text) for text in texts):
        raise DataError(
            f"{node}: the {len(texts)} documents of {giver} have no words in column `{column}`, so "
            "there is nothing to search",
            node,
            "column",
        )
    return texts


DECIMALS: Final = 10
"""Maximum decimals of an answer."""

GRAMMAR: Final = Grammar(
    token=re.compile(r"\s*(?:(\d[\d,_]*(?:\.\d*)?|\.\d+)|(\*\*|//|[-+*/%^()×÷−]))"),
    same={"^": "**", "×": "*", "÷": "/", "−": "-"},
    longest=400,
    largest_power=1_000,
    largest_bits=4_000,  # about 1,200 digits
)


class Calculator(StatelessTool):
    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        del tick
        return Answered(value=calculated(arguments.get("expression", "")))


def calculated(expression: str) -> str:
    """The value of an expression, rounded to DECIMALS decimals; raises ToolFailure if it is
    invalid."""
    try:
        return _written(read_expression(expression, GRAMMAR).value)
    except NotArithmetic as error:
        raise ToolFailure(str(error)) from None


def _written(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    scaled = round(value * 10**DECIMALS)
    whole, rest = divmod(abs(scaled), 10**DECIMALS)
    text = f"{whole}.{rest:0{DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if scaled < 0 else text


SOURCE: Final = (Path(__file__).parent / "inside" / "session.py").read_text(encoding="utf-8")


class PythonTool:
    def __init__(self, node: str, timeout_seconds: float) -> None:
        self._node = node
        self._timeout_seconds = timeout_seconds
        with Sandbox(SOURCE, function="run", node=node) as sandbox:
            sandbox.load()  # fails at once if this machine has no sandbox

    def open(self, caller: Caller) -> "PythonSession":
        return PythonSession(self._node, self._timeout_seconds, caller.seed)

    def close(self) -> None: ...


class PythonSession:
    def __init__(self, node: str, timeout_seconds: float, seed: int) -> None:
        self._sandbox = Sandbox(SOURCE, function="run", node=node, timeout_seconds=timeout_seconds)
        self._seed = seed
        self._calls = 0

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        self._calls += 1
        seed = (self._seed + self._calls) % 2**31
        code = arguments.get("code", "")
        had_variables = self._sandbox.process_id is not None
        try:
            with self._sandbox.held(tick):
                [result] = self._sandbox.write([{"code": code}], seeds=[seed])
        except UserCodeError as error:
            is_lost = had_variables and self._sandbox.process_id is None
            more = "; all variables are gone" if is_lost else ""
            raise ToolFailure(f"{self._sandbox.bare(error)}{more}") from None
        shown = result.get("shown") if result is not None else None
        text = "".join((self._sandbox.printed, shown if isinstance(shown, str) else ""))
        if result is None or result.get("failed") is not False:
            raise ToolFailure(text)
        return Answered(value=text.rstrip("\n"))

    def earned(self) -> Mapping[str, float]:
        return {}

    def close(self) -> None:
        self._sandbox.close()
