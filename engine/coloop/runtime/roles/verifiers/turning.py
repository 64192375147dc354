"""Judging a pair: in which order its sides are shown, and its score turned back to `chosen`.

A score of a pair says how much better `a` is; where `rejected` was shown as `a`, its opposite is
the score of `chosen`.
"""

from typing import Any, Final

from coloop.data.seeds import derive_seed
from coloop.data.tables import Row
from coloop.spec.reading import Read

SIDES: Final = ("chosen", "rejected")
SWAPPED: Final = "swapped"
"""Column of a verdict about a pair: whether `rejected` was shown as `a`."""
ORDERS: Final = "orders"
"""Column of a pair that was judged in both orders: its score in the given and in the other one."""

Range = tuple[float, float]


def is_pair(row: Row) -> bool:
    """Whether a row has two sides to compare."""
    return all(side in row.columns for side in SIDES)


def orders_of(row: Row, read: Read, seed: int) -> tuple[bool, ...]:
    """Whether the sides are swapped, each time that the pair is shown.

    Args:
        seed: of the draw.
    """
    match read.order:
        case "given":
            return (False,)
        case "both":
            return (False, True)
    return (derive_seed(seed, row.id, "order") % 2 == 1,)


def shown(row: Row, *, is_swapped: bool) -> dict[str, Any]:
    """The sides of a pair as a judge sees them."""
    a, b = reversed(SIDES) if is_swapped else SIDES
    return {"a": row.columns[a], "b": row.columns[b]}


def read_range(read: Read, *, by_label: bool) -> Range | None:
    """Least and greatest number that is read; None: a number may be any, and its opposite is its
    negative.

    Args:
        by_label: probabilities are read.
    """
    if read.range is not None:
        return read.range
    if by_label or (read.number is not None and read.scale is not None):
        return (0.0, 1.0)
    if read.values and read.number is None:
        return (min(read.values.values()), max(read.values.values()))
    return None


def score_range(read: Read, *, by_label: bool) -> Range | None:
    """Least and greatest score that comes of it."""
    return (0.0, 1.0) if read.threshold is not None else read_range(read, by_label=by_label)


def opposite(number: float, bounds: Range | None) -> float:
    """What a number says of the other side."""
    return -number if bounds is None else sum(bounds) - number
