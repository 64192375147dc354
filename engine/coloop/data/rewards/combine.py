"""Built-in rewards that compute scores from scores.

`None` means that a score does not apply, and never counts as 0: sums leave it out; for the others
see their docstrings.
"""

import random
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean

from coloop.data.rewards.scoring import ScoringRow, by_row, mapped
from coloop.data.tables.row import Score, whole
from coloop.errors import DataError
from coloop.spec import builtins as options


@by_row
def weighted(row: ScoringRow, given: options.Weighted) -> Score:
    """Sum of weight times score, without scores of None; None if all are."""
    terms = [
        weight * score
        for node, weight in given.weights.items()
        if (score := whole(_from(row, node))) is not None
    ]
    return sum(terms) if terms else None


def _from(row: ScoringRow, node: str) -> Score:
    """The score by a scorer node, may be None; raises DataError if that node is not connected."""
    if node in row.scores:
        return row.scores[node]
    there = ", ".join(row.scores) or "none"
    raise DataError(f"no score of `{node}` arrives at port `scores`; available: {there}")


@by_row
def one_minus(row: ScoringRow, _: options.OneMinus) -> Score:
    return mapped(row.number, lambda s: 1.0 - s)


@by_row
def band(row: ScoringRow, given: options.Band) -> Score:
    """4 (s - low) (high - s) for low <= s <= high, else 0."""

    def arch(s: float) -> float:
        return 4.0 * (s - given.low) * (given.high - s) if given.low <= s <= given.high else 0.0

    return mapped(row.number, arch)


def margin(rows: Sequence[ScoringRow], _: options.Margin) -> list[Score]:
    """s - mean(s of the siblings); None for a row without a score, or without scored siblings."""
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for row in rows:
        score = whole(row.number)
        if score is not None:
            groups[row.group].append(score)
    return [_lead(whole(row.number), groups[row.group]) for row in rows]


def _lead(score: float | None, group: Sequence[float]) -> Score:
    if score is None or len(group) < 2:
        return None
    return score - (sum(group) - score) / (len(group) - 1)


@by_row
def agreement(row: ScoringRow, given: options.Agreement) -> Score:
    """1 if two scores are equal within `tolerance`, else 0; with `over: steps` the share of equal
    steps. None equals nothing."""
    left, right = (_from(row, node) for node in given.columns)
    if left is None or right is None:
        return 0.0
    a, b = (score if isinstance(score, dict) else {-1: score} for score in (left, right))
    places = a.keys() | b.keys()
    same = [p for p in places if p in a and p in b and abs(a[p] - b[p]) <= given.tolerance]
    if given.over == "steps":
        return len(same) / len(places) if places else 0.0
    return float(bool(places) and len(same) == len(places))


@by_row
def gate(row: ScoringRow, given: options.Gate) -> Score:
    """The score of `value` if that of `by` is within the bounds; else, or if `by` is None,
    `otherwise`."""
    by = whole(_from(row, given.by))
    is_open = (
        by is not None
        and (given.min is None or by >= given.min)
        and (given.max is None or by <= given.max)
    )
    return _from(row, given.value) if is_open else given.otherwise


@by_row
def first(row: ScoringRow, _: options.First) -> Score:
    """The first score that applies, in the order of the edges."""
    return row.number


def turn_allocation(rows: Sequence[ScoringRow], given: options.TurnAllocation) -> list[Score]:
    """R' = R + alpha D, where Q is the mean of the earlier R: reward allocation as in MARTI.

    margin   D = R - Q
    quality  D = Q R - (1 - Q) (1 - R)

    The first turn keeps R. `beta` adds beta times the writer's last R in the conversation.
    """
    own = {row.id: score for row in rows if (score := whole(row.number)) is not None}
    turns: dict[Hashable, list[tuple[int, float]]] = defaultdict(list)
    last: dict[tuple[Hashable, str | None], float] = {}
    for row in sorted((row for row in rows if row.id in own), key=lambda row: row.round):
        turns[row.conversation].append((row.round, own[row.id]))
        last[row.conversation, row.writer] = own[row.id]
    scores: list[Score] = []
    for row in rows:
        reward = own.get(row.id)
        earlier = _earlier(row, own, turns, given.earlier)
        if reward is not None and earlier:
            known = fmean(earlier)
            gain = reward - known
            if given.method == "quality":
                gain = known * reward - (1.0 - known) * (1.0 - reward)
            reward = reward + given.alpha * gain
            reward += given.beta * last[row.conversation, row.writer] if given.beta else 0.0
        scores.append(reward)
    return scores


def _earlier(
    row: ScoringRow,
    own: Mapping[str, float],
    turns: Mapping[Hashable, Sequence[tuple[int, float]]],
    earlier: str,
) -> list[float]:
    if earlier == "ancestors":
        return [own[ancestor] for ancestor in row.ancestors if ancestor in own]
    return [score for turn, score in turns.get(row.conversation, ()) if turn < row.round]


# Controls: numbers that say nothing about the row that gets them. Each incoming score keeps its
# place: None stays None, and numbers at positions stay at those positions.


def other_rows(rows: Sequence[ScoringRow], _: options.OtherRows) -> list[Score]:
    """The numbers of all rows, moved along a random order of the rows by the size of the largest.

    So no row keeps a number of its own if the largest row has at most half of all numbers; with one
    number per row, each row gets that of the next row.
    """
    places = [
        (index, position)
        for index in sorted(range(len(rows)), key=lambda at: (rows[at].seed, rows[at].id))
        for position in _positions(rows[index].number)
    ]
    sizes = [len(_positions(row.number)) for row in rows]
    shift = max(sizes, default=0)
    moved: list[dict[int | None, float]] = [{} for _ in rows]
    for number, (index, position) in enumerate(places):
        source, there = places[(number + shift) % len(places)]
        moved[index][position] = _at(rows[source].number, there)
    return [_refilled(row.number, new) for row, new in zip(rows, moved, strict=True)]


@by_row
def constant(row: ScoringRow, given: options.Constant) -> Score:
    return mapped(row.number, lambda _: given.value)


@by_row
def coin(row: ScoringRow, given: options.Coin) -> Score:
    """`high` with probability `share`, else `low`; drawn for each position by itself."""
    chance = random.Random(row.seed)
    return mapped(row.number, lambda _: given.high if chance.random() < given.share else given.low)


def _positions(score: Score) -> tuple[int | None, ...]:
    """Positions of a score's numbers; the position of a whole score is None."""
    if isinstance(score, dict):
        return tuple(score)
    return () if score is None else (None,)


def _at(score: Score, position: int | None) -> float:
    number = score[position] if isinstance(score, dict) and position is not None else score
    assert isinstance(number, float | int)
    return number


def _refilled(score: Score, numbers: Mapping[int | None, float]) -> Score:
    if isinstance(score, dict):
        return {position: numbers[position] for position in score}
    return None if score is None else numbers[None]
