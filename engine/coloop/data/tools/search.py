"""Search: the documents that fit a query best, by BM25 (Robertson and Walker 1994; Lucene's form,
k1 1.5, b 0.75) over an index that is built once.

Words are runs of letters and digits, small letters alone. A document without a word of the query is
never found; of equally good ones the earlier stands first, so what is found depends on no clock.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import bm25s  # type: ignore[import-untyped]
import numpy as np

from coloop.data.tools.protocol import Answered, StatelessTool, Tick, ToolFailure
from coloop.errors import DataError

WORD: Final = re.compile(r"\w+")


class Index:
    """Documents of one column, ready to be searched."""

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
        """The documents that fit best, the best first; fewer where fewer fit at all."""
        words = [self._known[word] for word in words_of(query) if word in self._known]
        if not words:
            return []
        scores = np.asarray(self._bm25.get_scores_from_ids(words))
        order = np.argsort(-scores, kind="stable")[:count]
        return [self._texts[place] for place in order if scores[place] > 0]


class Search(StatelessTool):
    def __init__(self, index: Index, top_k: int) -> None:
        self._index = index
        self._top_k = top_k

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        del tick
        query = arguments.get("query", "").strip()
        if not query:
            raise ToolFailure("the query is empty")
        found = self._index.best(query, self._top_k)
        return Answered(value="\n".join(found) or "nothing found", parts=tuple(found))


def words_of(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def texts_of(rows: Sequence[Mapping[str, Any]], column: str, node: str, giver: str) -> list[str]:
    """What an index holds of rows.

    Raises:
        DataError: there is nothing to be found in them.
    """
    texts = []
    for place, row in enumerate(rows):
        text = row.get(column)
        if not isinstance(text, str):
            found = "is not there" if text is None else f"is a {type(text).__name__}"
            raise DataError(
                f"{node}: document {place} of {giver} has no text in column `{column}`: it {found};"
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
