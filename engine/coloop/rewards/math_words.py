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
"""Before a number they lead to it, behind it they say something of it."""
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
POWERS: Final = ("squared", "cubed")
"""Directly behind a number they change it, behind a unit they are part of it."""
LONGEST_UNIT: Final = 5
"""Words of a unit; more of them are a sentence."""
LETTERS: Final = re.compile(r"[a-zA-Z]+")


def words_of(text: str) -> frozenset[str]:
    """The words of a text, in small letters."""
    return frozenset(word.casefold() for word in LETTERS.findall(text))


def changes(words: frozenset[str]) -> frozenset[str]:
    """Those of the words with which a number says something else."""
    return words & (CHANGING | COMPARING if words & {"or", "and"} else CHANGING)


def is_unit(text: str) -> bool:
    """Whether words behind a number only say what is counted."""
    words = LETTERS.findall(text)
    if len(words) > LONGEST_UNIT or words[0] in POWERS:
        return False
    if words_of(text) & (CHANGING | VERBS | SCALES.keys()):
        return False
    return all(len(word) > 2 or word in SHORT_UNITS for word in words)
