"""Attaches scores to the rows that receive them: from the row itself, from an ancestor, from
descendants (scores rise), or from another branch (scores cross).

A row gets a number, `None` (the score does not apply), or no entry (no score was delivered). The
caller takes from the spec whether scores may rise (`aggregate`) and by which common ancestor they
cross to another branch (`via`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Literal

from coloop.data.tables.row import Row, Score, is_joined_of
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


def attach(
    receivers: Sequence[Row],
    table: Table,
    *,
    aggregate: Aggregate | None = None,
    via: str | None = None,
    rises: bool | None = None,
    in_rounds: bool = False,
) -> dict[str, Score]:
    """Scores of a table by the ids of the receivers; receivers without a score are left out.

    Args:
        aggregate: combines scores of several descendants; required if scores rise or cross.
        via: for receivers on another branch, the node whose rows are the nearest common
            ancestors; scores rise to them and go down to the receivers.
        rises: False if the receivers are the scored rows or their descendants; `aggregate` has
            no effect then.
        in_rounds: whether the scored rows belong to several rounds of a region; scores of an
            ancestor or of another branch then apply only to rows of the same round.
    """
    scores = table.scores or {}
    values: dict[str, Score] = {}
    rounds = {row.id: row.round for row in table.rows} if in_rounds else None
    rising: list[Row] = []
    for row in receivers:
        scored = _from_self_or_above(row, scores, rounds)
        if scored is not None:
            values[row.id] = _as_received(scores[scored], scored, row.id, table)
        else:
            rising.append(row)
    if aggregate is None or rises is False or not rising:
        return values
    targets = {row.id: row.id if via is None else row.ancestor_born_at(via) for row in rising}
    if via is not None and in_rounds:
        targets |= _targets_of_later_rounds(rising, table)
    target_ids = {target for target in targets.values() if target is not None}
    lifted = _lift(target_ids, table, AGGREGATES[aggregate])
    for row in rising:
        target = targets[row.id]
        if via is None or target in lifted:
            values[row.id] = lifted.get(str(target))
    return values


def _from_self_or_above(
    row: Row, scores: Mapping[str, Score], rounds: Mapping[str, int] | None
) -> str | None:
    """Id of the nearest scored row among a row and its ancestors.

    `rounds` (of the scored rows) restricts ancestors to the row's own round.
    """
    if row.id in scores:
        return row.id
    hits = [ancestor for ancestor in row.trail if ancestor in scores]
    if rounds is not None:
        hits = [ancestor for ancestor in hits if rounds.get(ancestor) == row.round]
    return min(hits, key=lambda ancestor: len(row.trail[ancestor])) if hits else None


def _targets_of_later_rounds(receivers: Sequence[Row], table: Table) -> dict[str, str | None]:
    """For receivers of later rounds, the nearest ancestor that they share with scored rows of the
    same round, because conversations branch further down than in the first round."""
    shared: dict[int, set[str]] = {}
    for row in table.rows:
        shared.setdefault(row.round, set()).update(row.trail)
    targets: dict[str, str | None] = {}
    for row in receivers:
        if row.round > 1:
            common = shared.get(row.round, set()).intersection(row.trail) - {row.id}
            nearest = min(common, key=lambda above: (len(row.trail[above]), above), default=None)
            targets[row.id] = nearest
    return targets


def _lift(
    targets: set[str], table: Table, aggregate: Callable[[Sequence[float]], float]
) -> dict[str, Score]:
    """For each target, the aggregate over its nearest scored descendants, level by level."""
    scores = table.scores or {}
    trees: dict[str, dict[tuple[str, ...], Score]] = {}
    for row in table.rows:
        if row.id not in scores:
            continue
        for target in targets.intersection(row.trail):
            path = tuple(step for step, _ in row.trail[target])
            if path and not any(step in scores for step in path[:-1]):
                received = _as_received(scores[row.id], row.id, target, table)
                trees.setdefault(target, {})[path] = _for_side(row, target, table, received)
    return {target: _fold(leaves, aggregate) for target, leaves in trees.items()}


def _as_received(score: Score, scored: str, receiver: str, table: Table) -> Score:
    """The score for a receiver; for another text than the scored one, numbers by position are
    reduced to one."""
    if not isinstance(score, dict) or (table.judged or {}).get(scored, scored) == receiver:
        return score
    if table.reduce is None:
        raise TypeError("scores of positions cannot leave the text that they index; reduce them")
    steps = [score[position] for position in sorted(score)]
    return REDUCTIONS[table.reduce](steps) if steps else None


def _for_side(row: Row, target: str, table: Table, score: Score) -> Score:
    """The score of one side of a pair: unchanged for the chosen row; for the rejected row
    negated or, within a range, mirrored."""
    if not _is_of_rejected(row, target) or row.id in table.unturned:
        return score
    if not isinstance(score, float | int):
        return None
    return -score if table.score_range is None else sum(table.score_range) - score


def _is_of_rejected(row: Row, target: str) -> bool:
    """Whether a row is, or descends from, a pair whose rejected row is the target."""
    path = row.trail[target]
    pair, births = path[0][0], len(path) - 1
    if row.depths.get("chosen") != births:
        return False  # the column `chosen` comes from another row than `pair`
    return any(is_joined_of(pair, (other, target)) for other in row.trail)


def _fold(
    leaves: Mapping[tuple[str, ...], Score], aggregate: Callable[[Sequence[float]], float]
) -> Score:
    if len(leaves) == 1 and len(next(iter(leaves))) == 1:
        return next(iter(leaves.values()))
    branches: dict[str, dict[tuple[str, ...], Score]] = {}
    values: list[Score] = []
    for path, score in leaves.items():
        if len(path) == 1:
            values.append(score)
        else:
            branches.setdefault(path[0], {})[path[1:]] = score
    values += [_fold(branch, aggregate) for branch in branches.values()]
    return _aggregated([value for value in values if value is not None], aggregate)


def _aggregated(
    values: Sequence[float | dict[int, float]], aggregate: Callable[[Sequence[float]], float]
) -> Score:
    """Combine several scores; if some are by position, those alone, position by position."""
    by_position = [value for value in values if isinstance(value, dict)]
    if not by_position:
        numbers = [float(value) for value in values if not isinstance(value, dict)]
        return aggregate(numbers) if numbers else None
    positions = sorted({position for value in by_position for position in value})
    return {
        position: aggregate([value[position] for value in by_position if position in value])
        for position in positions
    }
