"""Compares the answer in a completion with the right one as text.

Shared by the checkers of tasks and by rewards, so that `task` and `exact_match` agree.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""A comma between digits that only groups thousands."""


def last_line(text: str) -> str:
    """The last non-blank line, stripped."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def says(completion: str, gold: str) -> bool:
    """Whether a completion, or its last line, is the answer, apart from surrounding space and
    commas between thousands."""
    wanted = without_thousands(gold.strip())
    whole = without_thousands(completion.strip())
    return whole == wanted or ("\n" not in wanted and without_thousands(last_line(whole)) == wanted)


def without_thousands(text: str) -> str:
    """Text with 12,345 as 12345; other commas stay."""
    return THOUSANDS.sub("", text)


def in_tags(text: str, tag: str) -> Iterator[str]:
    """The contents of each pair of tags in a text; of nested pairs, the inner one."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    start = text.find(opening)
    while start >= 0:
        end = text.find(closing, start)
        if end < 0:
            return
        inside = text[start + len(opening) : end]
        yield inside.rpartition(opening)[2]
        start = text.find(opening, end)


def as_text(value: Any) -> str | None:
    """A column's value as text: numbers lose a trailing `.0`, True is `1`; None stays None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def number_in(text: str, scale: tuple[float, float] | None) -> float | None:
    """The text as a finite number, with a `scale` mapped from it to 0..1 and clipped; None if the
    text is not a number."""
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if scale is None:
        return number
    low, high = scale
    return min(1.0, max(0.0, (number - low) / (high - low)))
