"""Built-in rewards of the text of a completion: right answers, options, JSON, language."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from coloop.data.answers import as_text, last_line, says
from coloop.data.rewards.math_text import are_equal, final_answer, last_boxed, marked_answer
from coloop.data.rewards.scoring import (
    Question,
    ScoringRow,
    by_row,
    by_text,
    extracted,
    text_of,
)
from coloop.data.tables.row import Score
from coloop.data.tasks import check_row, has_checker
from coloop.errors import DataError
from coloop.spec import builtins as options

NO_JSON = ""
"""Stands for every text that is not JSON, so that they share one cached verdict."""


def task(rows: Sequence[ScoringRow], _: options.TaskReward) -> list[Score]:
    if rows and not any(has_checker(row.columns) for row in rows):
        raise DataError(
            "the reward `task` needs rows of a `task` source, and none of these rows says which "
            "task it belongs to (column `task`); use exact_match or Python for rows of a file"
        )
    return [
        None if (text := text_of(row)) is None else check_row(row.columns, text) for row in rows
    ]


def golds(row: ScoringRow, column: str) -> list[str]:
    """The right answers of a row as texts; empty if the column is missing or empty."""
    value = row.columns.get(column)
    values = value if isinstance(value, list | tuple) else [value]
    return [text for item in values if (text := as_text(item)) is not None]


@by_text
def exact_match(text: str, row: ScoringRow, given: options.ExactMatch) -> Score:
    """1 if the completion is the right answer, or its last line is, else 0.

    Surrounding space and commas between thousands do not count. `extract` also applies to the
    right answer if it matches there (`#### 18` at the end of a worked solution).
    """
    wanted = golds(row, given.column)
    if not wanted:
        return None
    answer = extracted(text, given.extract)
    if answer is None:
        return 0.0
    return float(any(says(answer, extracted(gold, given.extract) or gold) for gold in wanted))


@by_text
def math_equal(text: str, row: ScoringRow, given: options.MathEqual) -> Score | Question:
    """1 if the final answer equals a right number, set or expression, else 0. A question where
    only math-verify can tell."""
    wanted = golds(row, given.column)
    if not wanted:
        return None
    answer = final_answer(text) if given.extract is None else extracted(text, given.extract)
    if answer is None:
        return 0.0
    right = [extracted(gold, given.extract) or gold for gold in wanted]
    right = [marked_answer(gold) or gold for gold in right]
    known = [are_equal(answer, gold, tolerance=given.tolerance) for gold in right]
    if any(known):
        return 1.0
    still_open = [gold for gold, is_equal in zip(right, known, strict=True) if is_equal is None]
    return Question(columns={"answer": answer, "golds": still_open}) if still_open else 0.0


@by_text
def choice(text: str, row: ScoringRow, given: options.Choice) -> Score:
    """1 if the chosen option is right, else 0; a text that leaves two options open chooses none."""
    wanted = golds(row, given.column)
    if not wanted:
        return None
    if given.extract is None:
        wanted = [right_option(gold, given.column) for gold in wanted]
        option = option_in(text)
    else:
        option = extracted(text, given.extract)
    chosen = (option or "").strip().casefold()
    return float(any(chosen == gold.strip().casefold() for gold in wanted))


@by_text
def json_schema(text: str, row: ScoringRow, given: options.JsonSchema) -> Score | Question:
    """1 if the completion is JSON that fits the schema of the row or of the node, else 0."""
    schema = given.shape if given.column is None else _schema_of(row, given.column)
    if schema is None:
        return float(_is_json(text))
    if not isinstance(schema, Mapping | bool):
        raise DataError(f"json_schema: a schema must be an object, found {repr(schema)[:80]}")
    # What is no JSON fits no schema; it is asked all the same whether the schema is one.
    columns = {"schema": schema, "text": text if _is_json(text) else NO_JSON}
    where = "" if given.column is None else f"json_schema: column `{given.column}`: "
    return Question(columns=columns, place=where)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _schema_of(row: ScoringRow, column: str) -> Any:
    value = row.columns.get(column)
    if value is None:
        raise DataError(
            f"json_schema: column `{column}` must be a JSON schema, and the row has none; write "
            "`{}` if any JSON will do"
        )
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise DataError(f"json_schema: column `{column}` is not a JSON schema") from None


@by_row
def column(row: ScoringRow, given: options.Column) -> Score:
    """A number from a column of the row; a list has one number per step."""
    return _as_score(row.columns.get(given.column), given.column)


def _as_score(value: Any, name: str) -> Score:
    if isinstance(value, list | tuple):
        steps = {position: _as_score(item, name) for position, item in enumerate(value)}
        return {position: score for position, score in steps.items() if isinstance(score, float)}
    if value is None:
        return None
    try:
        return float(value if isinstance(value, bool | int | float) else str(value))
    except (ValueError, OverflowError):
        raise DataError(
            f"column `{name}` must be a number to be used as a score, found {repr(value)[:80]}"
        ) from None


# The option of a question that a text chooses, and the right one.
#
#     its whole last line, or what is boxed              "b", "(B)", "\boxed{B}"
#     else after the last "answer is", "answer:"         "The answer is (b). A is a distractor."
#     else before "is correct"                           "C is the answer; D is not"
#     else the last letter that stands alone             "not A, so B"
#
# If two options are joined (`A or B`), none is chosen.

LONGEST: Final = 1000
"""Maximum characters of a line with a single option."""
ALONE: Final = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
BOXED: Final = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}")
MARKER: Final = re.compile(
    r"\b(?:answer|(?:correct|right|best)\s(?:option|choice))\s*(?:is(?!\s+not\b)|:|=)[*\s]*",
    re.IGNORECASE,
)
CAPITAL: Final = r"(?<![A-Za-z])(?!I(?:['\u2019]|\s+[a-z]))([A-Z])(?![A-Za-z])"
"""A capital letter that stands alone; not the pronoun "I"."""
OPTION: Final = re.compile(CAPITAL)
SMALL: Final = re.compile(
    r"[\s\"'*$]*(?:(?:option|choice|either)\s+)?"
    r"(?:[(\[]([a-z])[)\]]|([b-hj-z])(?![\w'\u2019])|([ai])(?=[\"'*$]*(?:[.,;:!?)\]]|\s*$|\s+or\b)))"
)
"""A small letter directly after a marker; not the words "a" and "i"."""
SAYS: Final = re.compile(
    rf"{CAPITAL}[)\]*]*\s+is\s+(?:the\s+)?(?:correct|right|best|answer)\b", re.ASCII
)
BLANKS: Final = r"[ \t,;/|&()\[\]\"'*$+]*"
JOINING: Final = r"\b(?:or|and|maybe|perhaps|possibly|also|either|both|option|choice)\b"
AND: Final = rf"{BLANKS}(?:{JOINING}{BLANKS})*"
WORD: Final = r"[.)\]\"'*$]*\s+(?!(?:or|and|are)\b)[A-Za-z]{2}"
"""A word about the letter before it: `C is wrong`, `A large cat`, `E. coli`."""
MORE: Final = re.compile(
    rf"[ \t()\[\]\"'*$]*(?:(\bor\b)|{JOINING}|[,;/|&+]){AND}"
    rf"(?:{CAPITAL}|[(\[]?([a-z])(?=[)\]]))(?!['\u2019])(?(1)|(?!{WORD}))"
)
"""Another option after the first one (`A or B`), unless a statement about it follows."""
ARTICLE: Final = re.compile(r"(?<=[A-Z][).:] )A(?= (?!(?:is|was|or|and)\b)[a-z]{2})")
"""The first word of an option's text: `B) A large cat`."""
GOLD: Final = re.compile(r"\s*[(\[]?([A-Za-z])(?:[)\].:]+(?:\s.*)?)?\s*", re.DOTALL)
"""The right option as a row gives it: `C`, `(C)`, `C.`, `C) Paris`."""


def option_in(text: str) -> str | None:
    """The letter of the option that a text chooses; None for none or several."""
    boxed = last_boxed(text)
    answer = text if boxed is None else BOXED.sub(r"\1", boxed)
    line = last_line(answer)
    if len(line) <= LONGEST and (alone := ALONE.fullmatch(line)) is not None:
        return alone[1]
    end = len(answer)
    for marker in reversed([*MARKER.finditer(answer)]):
        small = SMALL.match(answer, marker.end())
        option = small or OPTION.search(answer, marker.end(), end)
        if option is not None:
            return _single(answer, option)
        end = marker.start()  # there is no option after it
    confirmed = [*SAYS.finditer(answer)]
    return confirmed[-1][1] if confirmed else _last(answer)


def _single(text: str, match: re.Match[str]) -> str | None:
    """The option of a match, if no other is joined to it."""
    option = next(group for group in match.groups() if group is not None)
    more = MORE.match(text, match.end())
    if more is not None and (more[2] or more[3]).casefold() != option.casefold():
        return None
    return option


def _last(text: str) -> str | None:
    """The last capital letter that stands alone, unless another one is joined to it."""
    chosen: str | None = None
    end = -1
    for option in OPTION.finditer(text):
        if ARTICLE.match(text, option.start()) is not None:
            continue
        between = text[end : option.start()] if end >= 0 else None
        is_run = between is not None and re.fullmatch(AND, between.replace(".", " ")) is not None
        hedges = is_run and chosen != option[1]
        chosen, end = None if hedges else option[1], option.end()
    return chosen


def right_option(gold: str, column: str) -> str:
    """The letter of the right option; raises DataError if there is none."""
    letter = GOLD.fullmatch(gold)
    if letter is None:
        raise DataError(
            f"choice: column `{column}` must be the letter of the right option (`B`, `(B)`, `B) "
            f"Paris`), found {gold[:80]!r}; for other answers set `extract`, or use exact_match"
        )
    return letter[1]


# The language of a text, by py3langid, a model of letter sequences in 97 languages.
#
# Short texts cannot be classified well, so sentences are merged to longer pieces first; a text that
# mixes languages has pieces of several. A text of a few letters has no score.

WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Japanese, Chinese and Korean characters, which are classified apart from the other text."""
SENTENCE: Final = re.compile(r"[^.!?\n\u3002]+[.!?\n\u3002]*")
LEAST_LETTERS: Final = 40
"""Minimum letters of a piece that is classified."""
LEAST_TOLD: Final = 20
"""Minimum letters of a text that gets a score. Of 4858 English texts, 97% are recognised with 20 to
24 letters, 58% with 5 to 9."""
COMMAND: Final = re.compile(r"\\[a-zA-Z]+")
"""LaTeX commands, which have no language."""
WIDE_WEIGHT: Final = 4
"""Letters that a wide character counts as."""
NO_LANGUAGE: Final = "zxx"
"""The language code for text without a language, such as numbers and code."""


@by_text
def language(text: str, _: ScoringRow, given: options.Language) -> Score:
    """Share of a text's letters that are in pieces of the given language; None for fewer than
    LEAST_TOLD letters, or a text without any language."""
    text = COMMAND.sub(" ", text)
    if _letters(text) < LEAST_TOLD:
        return None
    wide = "".join(WIDE.findall(text))
    pieces = [*pieces_of(WIDE.sub(" ", text)), *pieces_of(wide)]
    counts: Counter[str] = Counter()
    for piece in pieces:
        if letters := _letters(piece):
            counts[_identifier().classify(piece)[0]] += letters
    every = counts.total() - counts[NO_LANGUAGE]
    return counts[given.language] / every if every else None


def pieces_of(text: str) -> list[str]:
    """A text in pieces of at least LEAST_LETTERS letters, cut at sentence ends; a shorter rest
    joins the last piece."""
    pieces, open_piece, letters = [], "", 0
    for sentence in SENTENCE.findall(text):
        open_piece += sentence
        letters += _letters(sentence)
        if letters >= LEAST_LETTERS:
            pieces.append(open_piece)
            open_piece, letters = "", 0
    return [*pieces[:-1], pieces[-1] + open_piece] if pieces else [open_piece]


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text)) + (WIDE_WEIGHT - 1) * len(WIDE.findall(text))


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE)
