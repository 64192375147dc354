"""What a completion says as its answer, and whether two answers are the same text.

Shared by the checkers of the tasks and by the rewards that compare texts, so that `task` and
`exact_match` agree. Knows nothing of rows.
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
    """Whether a completion is the answer, or ends with it on a line of its own."""
    wanted = without_thousands(gold.strip())
    whole = without_thousands(completion.strip())
    return whole == wanted or ("\n" not in wanted and without_thousands(last_line(whole)) == wanted)


def without_thousands(text: str) -> str:
    """12,345 as 12345; commas elsewhere stay."""
    return THOUSANDS.sub("", text)


def in_tags(text: str, tag: str) -> Iterator[str]:
    """The contents of each pair of tags; of nested pairs the inner one."""
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
    """A column value as text: numbers lose a trailing `.0`, True is 1."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def number_in(text: str, scale: tuple[float, float] | None) -> float | None:
    """The finite number that a text is, mapped from `scale` to 0 to 1; None if it is none."""
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
