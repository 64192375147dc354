"""How a score reaches the rows of a receiver: its own, from above, from below, or across
(language.md 2).

Delivery has three values that must never be merged: a number, `None` ("does not apply") and
`ABSENT` (not delivered). The caller says, from the spec, whether scores may rise (`aggregate`) and
over which common ancestor they cross to another branch (`via`); nothing here is decided from which
rows happen to be there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from coloop.tables.row import ABSENT, Absent, Row, Score
from coloop.tables.table import Table

Aggregate = Literal["mean", "min", "max", "sum", "last"]

AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "min": min,
    "max": max,
    "sum": sum,
    "last": lambda values: values[-1],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What one edge delivers to each receiving row."""

    values: Mapping[str, Score]
    """By row id; a row that is missing here got nothing."""

    def of(self, row: Row) -> Score | Absent:
        return self.values.get(row.id, ABSENT)


def attach(
    receivers: Sequence[Row],
    table: Table,
    *,
    aggregate: Aggregate | None = None,
    via: str | None = None,
    rises: bool | None = None,
) -> Delivery:
    """Values of a score table for the receiving rows.

    Args:
        aggregate: how scores of several descendants become one; needed where scores rise or cross.
        via: the node whose rows are the nearest common ancestors, where the receivers stand on
        another
            branch: up to there, then down.
        rises: False where the receivers are the scored rows or stand below them, so that nothing
        rises
            even though the edge has an `aggregate`.
    """
    scores = table.scores or {}
    values: dict[str, Score] = {}
    lifted: dict[str, float | None] | None = None
    may_rise = aggregate is not None and rises is not False
    for row in receivers:
        found = _from_self_or_above(row, scores)
        if found is not None:
            values[row.id] = scores[found]
            continue
        if not may_rise:
            continue
        if lifted is None:
            targets = {r.id for r in receivers} if via is None else _ancestors_at(table.rows, via)
            lifted = _lift(targets, table, AGGREGATES[str(aggregate)])
        if via is None:
            values[row.id] = lifted.get(row.id)
        else:
            bridge = row.ancestor_born_at(via)
            if bridge is not None and bridge in lifted:
                values[row.id] = lifted[bridge]
    return Delivery(values=values)


def _from_self_or_above(row: Row, scores: Mapping[str, Score]) -> str | None:
    """Id of the nearest scored row among the row itself and its ancestors."""
    if row.id in scores:
        return row.id
    hits = [ancestor for ancestor in row.trail if ancestor in scores]
    return min(hits, key=lambda ancestor: len(row.trail[ancestor])) if hits else None


def _ancestors_at(rows: Sequence[Row], node: str) -> set[str]:
    found = (row.ancestor_born_at(node) for row in rows)
    return {row_id for row_id in found if row_id is not None}


def _lift(
    targets: set[str], table: Table, aggregate: Callable[[Sequence[float]], float]
) -> dict[str, float | None]:
    """For each target the aggregate over its nearest scored descendants, level by level."""
    scores = table.scores or {}
    trees: dict[str, dict[tuple[str, ...], Score]] = {}
    for row in table.rows:
        if row.id not in scores:
            continue
        for target in targets.intersection(row.trail):
            way = tuple(step for step, _ in row.trail[target])
            if way and not any(step in scores for step in way[:-1]):
                trees.setdefault(target, {})[way] = _for_side(row, target, table, scores[row.id])
    return {target: _fold(leaves, aggregate) for target, leaves in trees.items()}


def _for_side(row: Row, target: str, table: Table, score: Score) -> Score:
    """A score of a pair speaks for its chosen row and reaches the rejected one as its opposite."""
    if len(row.parents) != 2 or target != row.parents[1] or "chosen" not in row.columns:
        return score
    number = _number(score)
    if number is None:
        return None
    return -number if table.score_range is None else sum(table.score_range) - number


def _fold(
    leaves: Mapping[tuple[str, ...], Score], aggregate: Callable[[Sequence[float]], float]
) -> float | None:
    if len(leaves) == 1 and len(next(iter(leaves))) == 1:
        return _number(next(iter(leaves.values())))
    branches: dict[str, dict[tuple[str, ...], Score]] = {}
    values: list[float] = []
    for way, score in leaves.items():
        if len(way) == 1:
            number = _number(score)
            if number is not None:
                values.append(number)
        else:
            branches.setdefault(way[0], {})[way[1:]] = score
    for branch in branches.values():
        number = _fold(branch, aggregate)
        if number is not None:
            values.append(number)
    return aggregate(values) if values else None


def _number(score: Score) -> float | None:
    if isinstance(score, dict):
        raise TypeError("scores at positions cannot leave the text that they index; reduce them")
    return None if score is None else float(score)
