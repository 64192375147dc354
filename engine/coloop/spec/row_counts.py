"""Numbers of rows: exact, at most so many, or unknown, and in the mean; sums and bounds of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from coloop.spec.levels import Level
from coloop.spec.table_sizes import EMPTY, TableSize, joined, one_after_another


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Rows of a table in one step."""

    rows: int | None
    """At most so many; `None`: nobody knows."""
    is_exact: bool = False
    """Not fewer either, where nothing on the way runs dry."""
    least: int = 0
    """At least so many, whatever the models write and the rules cut."""
    greedy: int = 0
    """Greedy extras that stand beside these rows; they are scored and never learned."""
    breakdown: str = ""
    """How the number comes about, e.g. `32 rows of problems x 8 completions`."""
    mean: TableSize = EMPTY
    """Rows to be expected, greedy extras among them, and the lengths of their texts."""

    @property
    def whole(self) -> int | None:
        """All rows of the table, greedy extras among them."""
        return None if self.rows is None else self.rows + self.greedy

    def __str__(self) -> str:
        match self.whole:
            case None:
                return "some" if self.least else "unknown"
            case whole if not whole or (self.is_exact and self.least):
                return f"{whole}"
            case whole:
                return f"at most {whole}"


UNKNOWN: Final = Count(rows=None)
NONE: Final = Count(rows=0, is_exact=True)
Counts = dict[Level, Count]
"""Rows of a table, level by level."""


def add_up(counts: Iterable[Count]) -> Count:
    """Rows of tables that stand one after another."""
    parts = list(counts)
    if len(parts) == 1:
        return parts[0]
    least, mean = sum(p.least for p in parts), one_after_another([p.mean for p in parts])
    total = 0
    for part in parts:
        if part.rows is None:
            return Count(rows=None, least=least, mean=mean)
        total += part.rows
    return Count(
        rows=total,
        is_exact=all(part.is_exact for part in parts),
        least=least,
        greedy=sum(part.greedy for part in parts),
        breakdown=" + ".join(part.breakdown for part in parts if part.breakdown),
        mean=mean,
    )


def at_most(count: Count) -> Count:
    """The same where something may cut rows."""
    return replace(count, is_exact=False, least=0)


def without_greedy(count: Count) -> Count:
    if not count.greedy or count.rows is None:
        return replace(count, greedy=0)
    share = count.rows / (count.rows + count.greedy)
    return replace(count, greedy=0, mean=count.mean.times(share))


def times(count: Count, factor: int) -> Count:
    """At most so many times these rows, and as many as before in the mean."""
    if count.rows is None:
        return count
    return replace(count, rows=count.rows * factor, greedy=count.greedy * factor)


def repeated(count: Count, passes: int) -> Count:
    """Rows of all passes of a refill: those of the first are sure."""
    if passes == 1:
        return count
    return replace(times(count, passes), is_exact=False)


def of_all_rounds(count: Count, growth: float) -> Count:
    """Rows of all rounds: those of the first are sure, and nobody knows the others.

    Args:
        growth: rows of all rounds over those of the first, in the mean.
    """
    return Count(rows=None, least=count.least, mean=count.mean.times(growth))


def largest(counts: Iterable[Count]) -> Count:
    parts = list(counts)
    mean = joined([part.mean for part in parts])
    if any(part.rows is None for part in parts):
        return Count(rows=None, least=max(part.least for part in parts), mean=mean)
    return replace(max(parts, key=lambda part: part.rows or 0, default=NONE), mean=mean)


def smallest(counts: list[Count]) -> Count:
    """The smallest of several tables; not exact where one of them is not. In the mean a join has
    as many rows as its finest input."""
    mean = joined([count.mean for count in counts])
    known = [count for count in counts if count.rows is not None]
    if not known:
        return Count(rows=None, least=min(count.least for count in counts), mean=mean)
    least = replace(min(known, key=lambda count: count.rows or 0), mean=mean)
    if len(known) == len(counts) and all(count.is_exact for count in known):
        return least
    return at_most(least)
