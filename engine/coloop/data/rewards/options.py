"""Which option of a question a text chooses, and which one is right.

    the whole of its last line, or what is boxed       "b", "(B)", "\\boxed{B}"
    else behind the last "answer is", "answer:"        "The answer is (b). A is a distractor."
    else before "is correct"                           "C is the answer; D is not"
    else the last that stands alone                    "not A, so B"

Where two options are named in one breath (`A or B`), none is chosen.
"""

import re
from typing import Final

from coloop.data.answers import last_line
from coloop.data.rewards.math_text import last_boxed
from coloop.errors import DataError

LONGEST: Final = 1000
"""Characters of a line that may be an option alone."""
ALONE: Final = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
BOXED: Final = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}")
MARKER: Final = re.compile(
    r"\b(?:answer|(?:correct|right|best)\s(?:option|choice))\s*(?:is(?!\s+not\b)|:|=)[*\s]*",
    re.IGNORECASE,
)
CAPITAL: Final = r"(?<![A-Za-z])(?!I(?:['\u2019]|\s+[a-z]))([A-Z])(?![A-Za-z])"
"""A capital letter that stands alone; "I" before a word is the pronoun."""
OPTION: Final = re.compile(CAPITAL)
SMALL: Final = re.compile(
    r"[\s\"'*$]*(?:(?:option|choice|either)\s+)?"
    r"(?:[(\[]([a-z])[)\]]|([b-hj-z])(?![\w'\u2019])|([ai])(?=[\"'*$]*(?:[.,;:!?)\]]|\s*$|\s+or\b)))"
)
"""A small letter directly behind a marker; "a" and "i" before a word are words."""
SAYS: Final = re.compile(
    rf"{CAPITAL}[)\]*]*\s+is\s+(?:the\s+)?(?:correct|right|best|answer)\b", re.ASCII
)
BLANKS: Final = r"[ \t,;/|&()\[\]\"'*$+]*"
JOINING: Final = r"\b(?:or|and|maybe|perhaps|possibly|also|either|both|option|choice)\b"
AND: Final = rf"{BLANKS}(?:{JOINING}{BLANKS})*"
WORD: Final = r"[.)\]\"'*$]*\s+(?!(?:or|and|are)\b)[A-Za-z]{2}"
"""A word that says something of the letter before it: `C is wrong`, `A large cat`, `E. coli`."""
MORE: Final = re.compile(
    rf"[ \t()\[\]\"'*$]*(?:(\bor\b)|{JOINING}|[,;/|&+]){AND}"
    rf"(?:{CAPITAL}|[(\[]?([a-z])(?=[)\]]))(?!['\u2019])(?(1)|(?!{WORD}))"
)
"""Another option in one breath: joined to the first, and not itself spoken of."""
ARTICLE: Final = re.compile(r"(?<=[A-Z][).:] )A(?= (?!(?:is|was|or|and)\b)[a-z]{2})")
"""The first word of an option's text: `B) A large cat`."""
GOLD: Final = re.compile(r"\s*[(\[]?([A-Za-z])(?:[)\].:]+(?:\s.*)?)?\s*", re.DOTALL)
"""`C`, `(C)`, `C.`, `C) Paris`."""


def option_in(text: str) -> str | None:
    """The option that a text chooses, as it is written; None where it is none, or several."""
    boxed = last_boxed(text)
    said = text if boxed is None else BOXED.sub(r"\1", boxed)
    line = last_line(said)
    if len(line) <= LONGEST and (alone := ALONE.fullmatch(line)) is not None:
        return alone[1]
    end = len(said)
    for marker in reversed([*MARKER.finditer(said)]):
        small = SMALL.match(said, marker.end())
        found = small or OPTION.search(said, marker.end(), end)
        if found is not None:
            return _single(said, found)
        end = marker.start()  # behind it stands none
    confirmed = [*SAYS.finditer(said)]
    if confirmed:
        return confirmed[-1][1]
    return _last(said)


def _single(text: str, found: re.Match[str]) -> str | None:
    """The option of a match, where no other follows in one breath."""
    option = next(group for group in found.groups() if group is not None)
    more = MORE.match(text, found.end())
    if more is not None and (more[2] or more[3]).casefold() != option.casefold():
        return None
    return option


def _last(text: str) -> str | None:
    """The last capital that stands alone, where none stands before it in one breath."""
    chosen: str | None = None
    end = -1
    for found in OPTION.finditer(text):
        if ARTICLE.match(text, found.start()) is not None:
            continue
        between = text[end : found.start()] if end >= 0 else None
        is_run = between is not None and re.fullmatch(AND, between.replace(".", " ")) is not None
        hedges = is_run and chosen != found[1]
        chosen, end = None if hedges else found[1], found.end()
    return chosen


def right_option(gold: str, column: str) -> str:
    """The letter of the right option.

    Raises:
        DataError: it is none, so that no text could choose it.
    """
    found = GOLD.fullmatch(gold)
    if found is None:
        raise DataError(
            f"choice: column `{column}` wants the letter of the right option (`B`, `(B)`, "
            f"`B) Paris`), found {gold[:80]!r}; for other answers say with `extract` what is "
            f"compared, or take exact_match"
        )
    return found[1]
