"""How large a regular expression becomes when its counted repeats are written out, as the library
does that applies it."""

import re
from typing import Final

LARGEST_PATTERN: Final = 1_000_000
"""Most parts of a pattern with its repeats written out: about 2 seconds and 300 MiB to read."""
MOST_DIGITS: Final = 9

COUNT: Final = re.compile(r"(.?)\{\s*(\d+)", re.DOTALL)
"""A repeat, and what stands before it."""
BEHIND_GROUPS: Final = ")}?*+"
"""What a repeat may stand behind that repeats a whole group."""


def why_too_large(pattern: str) -> str | None:
    """Why a pattern cannot be read; None where it can.

    Counted from above, so that no bracket, comment or escape hides a repeat: repeats of groups
    multiply everything, whatever they stand around.
    """
    parts, times = len(pattern), 1
    for before, digits in COUNT.findall(pattern):
        count = int(digits) if len(digits) <= MOST_DIGITS else LARGEST_PATTERN
        if not before or before.isspace() or before in BEHIND_GROUPS:
            times = min(times * max(count, 1), LARGEST_PATTERN)
        else:
            parts += count
    if parts * times <= LARGEST_PATTERN:
        return None
    return (
        f"with its repeats written out it has more than {LARGEST_PATTERN:,} parts; "
        "repeat groups less often, or without a lower bound (`{,1000}`, `*`)"
    )
