"""How a score reaches the rows of a receiver: its own, from above, from below, or across
(language.md 2).

Delivery has three values that must never be merged: a number, `None` ("does not apply") and
`ABSENT` (not delivered). The caller says, from the spec, whether scores may rise (`aggregate`) and
over which common ancestor they cross to another branch (`via`); nothing here is decided from which
rows happen to be there.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from coloop.data.tables.row import ABSENT, Absent, Row, Score, is_joined_of
from coloop.data.tables.table import Table

Aggregate = Literal["mean", "min", "max", "sum", "last"]

AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "min": min,
    "max": max,
    "sum": sum,
    "last": lambda values: values[-1],
}

REDUCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    **{name: AGGREGATES[name] for name in ("min", "last", "mean")},
    "product": math.prod,
}
"""How the numbers of a text's steps become one."""


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
    in_rounds: bool = False,
) -> Delivery:
    """Values of a score table for the receiving rows.

    Args:
        aggregate: how scores of several descendants become one; needed where scores rise or cross.
        via: the node whose rows are the nearest common ancestors, where the receivers stand on
            another branch: up to there, then down.
        rises: False where the receivers are the scored rows or stand below them, so that nothing
            rises even though the edge has an `aggregate`.
        in_rounds: the scored rows are of several rounds of a region: what comes from above or from
            another branch counts for its own round.
    """
    scores = table.scores or {}
    values: dict[str, Score] = {}
    rounds = {row.id: row.round for row in table.rows} if in_rounds else None
    rising: list[Row] = []
    for row in receivers:
        found = _from_self_or_above(row, scores, rounds)
        if found is not None:
            values[row.id] = _as_heard(scores[found], found, row.id, table)
        else:
            rising.append(row)
    if aggregate is None or rises is False or not rising:
        return Delivery(values=values)
    targets = {row.id: row.id if via is None else row.ancestor_born_at(via) for row in rising}
    if via is not None and in_rounds:
        targets |= _targets_of_later_rounds(rising, table)
    wanted = {name for name in targets.values() if name is not None}
    lifted = _lift(wanted, table, AGGREGATES[aggregate])
    for row in rising:
        target = targets[row.id]
        if via is None or target in lifted:
            values[row.id] = lifted.get(str(target))
    return Delivery(values=values)


def _from_self_or_above(
    row: Row, scores: Mapping[str, Score], rounds: Mapping[str, int] | None
) -> str | None:
    """Id of the nearest scored row among the row itself and its ancestors.

    Args:
        rounds: of the scored rows, where only ancestors of the row's own round count.
    """
    if row.id in scores:
        return row.id
    hits = [ancestor for ancestor in row.trail if ancestor in scores]
    if rounds is not None:
        hits = [ancestor for ancestor in hits if rounds.get(ancestor) == row.round]
    return min(hits, key=lambda ancestor: len(row.trail[ancestor])) if hits else None


def _targets_of_later_rounds(receivers: Sequence[Row], table: Table) -> dict[str, str | None]:
    """For receivers of later rounds the nearest ancestor that they share with scored rows of their
    round: there conversations part further down than in the first."""
    shared: dict[int, set[str]] = {}
    for row in table.rows:
        shared.setdefault(row.round, set()).update(row.trail)
    found: dict[str, str | None] = {}
    for row in receivers:
        if row.round > 1:
            above = shared.get(row.round, set()).intersection(row.trail) - {row.id}
            found[row.id] = min(above, key=lambda name: (len(row.trail[name]), name), default=None)
    return found


def _lift(
    targets: set[str], table: Table, aggregate: Callable[[Sequence[float]], float]
) -> dict[str, Score]:
    """For each target the aggregate over its nearest scored descendants, level by level."""
    scores = table.scores or {}
    trees: dict[str, dict[tuple[str, ...], Score]] = {}
    for row in table.rows:
        if row.id not in scores:
            continue
        for target in targets.intersection(row.trail):
            way = tuple(step for step, _ in row.trail[target])
            if way and not any(step in scores for step in way[:-1]):
                heard = _as_heard(scores[row.id], row.id, target, table)
                trees.setdefault(target, {})[way] = _for_side(row, target, table, heard)
    return {target: _fold(leaves, aggregate) for target, leaves in trees.items()}


def _as_heard(score: Score, scored: str, receiver: str, table: Table) -> Score:
    """A score where it arrives: numbers at positions stay such only at the text that they index."""
    if not isinstance(score, dict) or (table.judged or {}).get(scored, scored) == receiver:
        return score
    if table.reduce is None:
        raise TypeError("scores of positions cannot leave the text that they index; reduce them")
    steps = [score[place] for place in sorted(score)]
    return REDUCTIONS[table.reduce](steps) if steps else None


def _for_side(row: Row, target: str, table: Table, score: Score) -> Score:
    """A score of a pair, or of what was written about it, speaks for its chosen row and reaches the
    rejected one as its opposite."""
    if not _is_of_rejected(row, target) or row.id in table.unturned:
        return score
    if not isinstance(score, float | int):
        return None
    return -score if table.score_range is None else sum(table.score_range) - score


def _is_of_rejected(row: Row, target: str) -> bool:
    """Whether a row is, or descends from, a pair whose rejected side is the target."""
    way = row.trail[target]
    pair, births = way[0][0], len(way) - 1
    if row.depths.get("chosen") != births:
        return False  # the row that has the sides as its own is another one
    return any(is_joined_of(pair, (other, target)) for other in row.trail)


def _fold(
    leaves: Mapping[tuple[str, ...], Score], aggregate: Callable[[Sequence[float]], float]
) -> Score:
    if len(leaves) == 1 and len(next(iter(leaves))) == 1:
        return next(iter(leaves.values()))
    branches: dict[str, dict[tuple[str, ...], Score]] = {}
    values: list[Score] = []
    for way, score in leaves.items():
        if len(way) == 1:
            values.append(score)
        else:
            branches.setdefault(way[0], {})[way[1:]] = score
    values += [_fold(branch, aggregate) for branch in branches.values()]
    return _aggregated([value for value in values if value is not None], aggregate)


def _aggregated(
    values: Sequence[float | dict[int, float]], aggregate: Callable[[Sequence[float]], float]
) -> Score:
    """One of several numbers; of numbers at positions, one at each."""
    at_places = [value for value in values if isinstance(value, dict)]
    if not at_places:
        numbers = [float(value) for value in values if not isinstance(value, dict)]
        return aggregate(numbers) if numbers else None
    places = sorted({place for value in at_places for place in value})
    return {
        place: aggregate([value[place] for value in at_places if place in value])
        for place in places
    }
