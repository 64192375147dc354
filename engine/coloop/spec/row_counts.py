"""Row counts (exact, upper bound or unknown, and the mean), with sums and bounds."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from coloop.spec.lean import record
from coloop.spec.levels import Level
from coloop.spec.table_sizes import EMPTY, TableSize, joined, one_after_another


@record
class Count:
    """Rows of a table in one step."""

    rows: int | None
    """Upper bound; None: unknown."""
    is_exact: bool = False
    """Whether it is also a lower bound, unless a source runs out."""
    least: int = 0
    """Lower bound, whatever models generate and rules drop."""
    greedy: int = 0
    """Greedy extras beside these rows; they are scored, but never trained on."""
    breakdown: str = ""
    """How the number is composed, e.g. `32 rows of problems x 8 completions`."""
    mean: TableSize = EMPTY
    """Expected rows, greedy extras included, and the lengths of their texts."""

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


def add_up(counts: Iterable[Count]) -> Count:
    """Rows of concatenated tables."""
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
    """The same count as an upper bound only."""
    return replace(count, is_exact=False, least=0)


def without_greedy(count: Count) -> Count:
    if not count.greedy or count.rows is None:
        return replace(count, greedy=0)
    share = count.rows / (count.rows + count.greedy)
    return replace(count, greedy=0, mean=count.mean.times(share))


def times(count: Count, factor: int) -> Count:
    """An upper bound of `factor` times these rows, with an unchanged mean."""
    if count.rows is None:
        return count
    return replace(count, rows=count.rows * factor, greedy=count.greedy * factor)


def repeated(count: Count, passes: int) -> Count:
    """Rows of all passes of a refill; only those of the first are certain."""
    if passes == 1:
        return count
    return replace(times(count, passes), is_exact=False)


def of_all_rounds(count: Count, growth: float) -> Count:
    """Rows of all rounds, at least those of the first. `growth`: mean of all over the first."""
    return Count(rows=None, least=count.least, mean=count.mean.times(growth))


def largest(counts: Iterable[Count]) -> Count:
    parts = list(counts)
    mean = joined([part.mean for part in parts])
    if any(part.rows is None for part in parts):
        return Count(rows=None, least=max(part.least for part in parts), mean=mean)
    return replace(max(parts, key=lambda part: part.rows or 0, default=NONE), mean=mean)


def smallest(counts: list[Count]) -> Count:
    """The smallest of several tables, exact only if all are; the mean of the finest input."""
    mean = joined([count.mean for count in counts])
    known = [count for count in counts if count.rows is not None]
    if not known:
        return Count(rows=None, least=min(count.least for count in counts), mean=mean)
    least = replace(min(known, key=lambda count: count.rows or 0), mean=mean)
    if len(known) == len(counts) and all(count.is_exact for count in known):
        return least
    return at_most(least)
