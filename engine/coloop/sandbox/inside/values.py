"""Validates the columns and scores that user code returns: in the harness, for clear messages, and
again in `Sandbox`, because the code may have forged the reply.

Valid columns are texts that UTF-8 can encode, numbers that fit a float, true, false, None, and
lists and dicts of these.
"""

import math
from typing import Any, Final

LARGEST_INTEGER: Final = 2**1023
LARGEST_SCORE: Final = 1e19
"""Maximum of a score; the square of a larger one would overflow in single precision."""
DEEPEST: Final = 32
LONGEST_NAME: Final = 200


def is_written(value: Any) -> bool:
    """Whether this is a dict of valid columns, or None, which removes the row."""
    return value is None or (
        isinstance(value, dict)
        and all(
            why_not_name(name) is None and why_not(item) is None for name, item in value.items()
        )
    )


def why_not_name(name: Any) -> str | None:
    """Why this cannot be a column name; None if it can. A dot separates node and column."""
    if not isinstance(name, str):
        return "no text"
    if not 0 < len(name) <= LONGEST_NAME:
        return f"a name of {len(name)} characters, not of 1 to {LONGEST_NAME},"
    if "." in name or not name.isprintable():
        return "a name with a dot or an unprintable character"
    return None


def why_not(value: Any, depth: int = 0) -> str | None:
    """Why a column cannot hold this value; None if it can."""
    if depth > DEEPEST:
        return f"values more than {DEEPEST} deep"
    match value:
        case None | bool():
            return None
        case str():
            return None if value.isascii() or _is_writable(value) else "half a character (UTF-16)"
        case int():
            return None if abs(value) < LARGEST_INTEGER else "an integer too large for a float"
        case float():
            return None if math.isfinite(value) else f"the number {value}"
        case list() | tuple():
            return _first(value, depth)
        case dict():
            if not all(isinstance(key, str) for key in value):
                return "a dict with keys that are not strings"
            return _first([*value, *value.values()], depth)
        case _:
            return f"a value of type {type(value).__name__}"


def _first(values: Any, depth: int) -> str | None:
    return next(
        (wrong for value in values if (wrong := why_not(value, depth + 1)) is not None), None
    )


def _is_writable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_score(value: Any) -> bool:
    """Whether this is a score as the harness sends it: a float, None, or a list of these."""
    if isinstance(value, list):
        return all(step is None or _is_number(step) for step in value)
    return value is None or _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and why_no_score(value) is None


def why_no_score(number: float) -> str | None:
    """Why a number cannot be a score, with a fix; None if it can."""
    if math.isnan(number):
        return "a finite number is expected: return None if a row cannot be scored"
    if abs(number) > LARGEST_SCORE:
        return (
            f"a number between -{LARGEST_SCORE:g} and {LARGEST_SCORE:g} is expected: bound it "
            "(`min(1.0, x)`, a logarithm), or return None if a row cannot be scored"
        )
    return None
