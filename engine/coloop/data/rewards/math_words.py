"""Words beside a number in an answer: those that only say what is counted, those that multiply it,
and those with which it says something else."""

import re
from collections.abc import Mapping
from typing import Final

SCALES: Final[Mapping[str, int]] = {
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
}
"""Words behind a number that multiply it, by their power of ten."""
SHORT_UNITS: Final = frozenset({
    "A", "C", "F", "J", "K", "L", "N", "V", "W", "g", "h", "l", "m", "s", "Hz", "Pa", "am", "cm",
    "ft", "hr", "in", "kW", "kg", "km", "lb", "mL", "mg", "mi", "ml", "mm", "oz", "pm", "pt", "qt",
    "yd", "a", "an", "of",
})  # fmt: skip
"""Words of one or two letters that are units or part of one; others are letters of mathematics."""
VERBS: Final = frozenset({"is", "are", "was", "were", "be"})
"""Words that join a number to what is said of it."""
CHANGING: Final = frozenset({
    "not", "no", "never", "none", "neither", "nor", "without", "except", "unless", "if", "but",
    "isn", "aren", "wasn", "weren", "don", "doesn", "won", "wouldn", "cannot", "could", "would",
    "maybe", "than", "least", "most", "over", "under", "above", "below", "between", "wrong",
    "incorrect", "false", "invalid", "impossible", "undefined", "unknown", "plus", "minus",
    "negative", "factorial", "modulo", "mod", "base", "remainder", "half", "halves", "thirds",
    "fifths", "tenths", "hundredths", "thousandths", "millionths",
})  # fmt: skip
"""Words beside a number with which it says something else."""
COMPARING: Final = frozenset({"more", "less", "fewer", "greater", "smaller", "larger", "higher"})
"""With `or` they make a bound of a number (`5 or more`), else they count (`5 more apples`)."""
DESCRIBING: Final = re.compile(
    r"\b(?:wrong|incorrect|false|invalid|impossible|negative|plus|base)\s+"
    r"(?=[a-z]{3})(?!(?:two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen)\b)",
    re.IGNORECASE,
)
"""Changing words that only say which things are counted: `4 wrong answers`."""
PLACING: Final = re.compile(r"\b(?:over|above)\s*(?=[a-z]{3}|$)", re.IGNORECASE)
"""And where they are: `5 left over`, `20 above average`; with `or` it is a bound."""
POWERS: Final = ("squared", "cubed")
"""Directly behind a number they change it, behind a unit they are part of it."""
LONGEST_UNIT: Final = 5
"""Words of a unit; more of them are a sentence."""
LETTERS: Final = re.compile(r"[a-zA-Z]+")


def words_of(text: str) -> frozenset[str]:
    """The words of a text, in small letters."""
    return frozenset(word.casefold() for word in LETTERS.findall(text))


def changes(text: str) -> frozenset[str]:
    """The words of a text with which a number in it says something else."""
    text = DESCRIBING.sub(" ", text)
    if words_of(text) & {"or", "and"}:
        return words_of(text) & (CHANGING | COMPARING)
    return words_of(PLACING.sub(" ", text)) & CHANGING


def is_unit(text: str) -> bool:
    """Whether words behind a number only say what is counted."""
    words = LETTERS.findall(text)
    if len(words) > LONGEST_UNIT or words[0] in POWERS:
        return False
    if changes(text) or words_of(text) & SCALES.keys():
        return False
    return all(len(word) > 2 or word in SHORT_UNITS | VERBS for word in words)
