"""Shared by judges: finished scores, orders of pairs, score ranges."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Score, Table
from coloop.data.tables.attach import REDUCTIONS
from coloop.runtime.roles.protocol import Context, Outcome
from coloop.runtime.roles.rows.scored import scored_outcome
from coloop.runtime.roles.rows.texts import SIDES
from coloop.spec.nodes import VerifierNode
from coloop.spec.reading import Criterion, Read

Incoming = dict[str, Score]
"""Incoming scores of a row, by scorer."""


def section_of(node: str, context: Context) -> VerifierNode:
    section = context.spec.nodes[node]
    assert isinstance(section, VerifierNode)
    return section


def wants_steps(node: str, context: Context) -> bool:
    """Whether the node's `step_scores` are connected."""
    return bool(context.spec.graph.edges_out_of(node, "step_scores"))


def judgement(
    node: str,
    context: Context,
    rows: Sequence[Row],
    scores: Sequence[Score],
    step_scores: Sequence[Score] | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    metrics: Mapping[str, float] | None = None,
    alerts: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """The outcome with scores after `clamp` and `threshold` of the node's `read`. `bounds`: least
    and greatest score; None: `read.range`."""
    read = section_of(node, context).read
    return scored_outcome(
        node,
        rows,
        [finished(score, read) for score in scores],
        step_scores=None if step_scores is None else [finished(one, read) for one in step_scores],
        score_range=bounds or read.range,
        metrics=metrics,
        alerts=alerts,
    )


# From numbers of a judge to scores: reduction of steps, bounds, threshold.


def reduced(steps: Iterable[float | None], read: Read) -> float | None:
    """The steps' numbers in order, combined as `reduce` says; None if no step has one."""
    numbers = [step for step in steps if step is not None]
    return float(REDUCTIONS[read.reduce or "mean"](numbers)) if numbers else None


def activated(number: float, read: Read) -> float:
    """A head's number after the `activation`."""
    if read.activation == "none":
        return number
    small = math.exp(-abs(number))
    return 1 / (1 + small) if number >= 0 else small / (1 + small)


def finished(score: Score, read: Read) -> Score:
    """A score, or one per position, clamped to `clamp`, and 0 or 1 with a `threshold`."""
    if score is None:
        return None
    if isinstance(score, dict):
        return {token: _finished(number, read) for token, number in score.items()}
    return _finished(score, read)


def _finished(score: float, read: Read) -> float:
    if read.clamp is not None:
        low, high = read.clamp
        score = min(max(score, low), high)
    return score if read.threshold is None else float(score >= read.threshold)


# Judging a pair: the order in which its sides are shown, and its score with respect to `chosen`.
#
# A score of a pair says how much better `a` is; where `rejected` was shown as `a`, its opposite
# is the score of `chosen`.

SWAPPED: Final = "swapped"
"""Column of a verdict about a pair: whether `rejected` was shown as `a`."""
ORDERS: Final = "orders"
"""Column of a pair that was judged in both orders: its score in the given and in the other one."""

Range = tuple[float, float]


def is_pair(row: Row) -> bool:
    return all(side in row.columns for side in SIDES)


def orders_of(row: Row, read: Read, seed: int) -> tuple[bool, ...]:
    """For each time that a pair is shown, whether its sides are swapped. `seed`: for a random
    order."""
    match read.order:
        case "given":
            return (False,)
        case "both":
            return (False, True)
    return (derive_seed(seed, row.id, "order") % 2 == 1,)


def shown(row: Row, *, is_swapped: bool) -> dict[str, Any]:
    a, b = reversed(SIDES) if is_swapped else SIDES
    return {"a": row.columns[a], "b": row.columns[b]}


def read_range(read: Read, *, by_label: bool) -> Range | None:
    """Least and greatest number that can be read; None: unbounded and symmetric around 0.
    `by_label`: the numbers are probabilities of labels."""
    if read.range is not None:
        return read.range
    if read.ranking:
        return (0.0, 1.0)
    bounds: Range | None = None
    if by_label or (read.scale is not None and (read.number or read.json_path or read.rubric)):
        bounds = (0.0, 1.0)
    elif read.values and read.number is None:
        bounds = (min(read.values.values()), max(read.values.values()))
    return bounds if read.rubric is None else _rubric_range(read.rubric, bounds)


def _rubric_range(rubric: Sequence[Criterion], bounds: Range | None) -> Range | None:
    """Least and greatest score of a rubric, from those of each criterion."""
    if bounds is None:
        return None
    low, high = bounds
    ups = sum(max(one.weight, 0.0) for one in rubric)
    downs = sum(min(one.weight, 0.0) for one in rubric)
    return ((ups * low + downs * high) / ups, (ups * high + downs * low) / ups)


def score_range(read: Read, *, by_label: bool) -> Range | None:
    """Least and greatest score; None: unbounded."""
    return (0.0, 1.0) if read.threshold is not None else read_range(read, by_label=by_label)


def opposite(number: float, bounds: Range | None) -> float:
    """The number mirrored for the other side of a pair."""
    return -number if bounds is None else sum(bounds) - number


# Scores of pairs: how far each prefers `chosen`, and whether that depends on the order shown.
#
# Either the pair has a score, or several verdicts about it do, which note the order that they saw.

Orders = list[tuple[float, float]]


def leads_of(rows: Sequence[Row], scores: Mapping[str, Any], table: Table) -> list[float]:
    """Scores of pairs, or of verdicts about them, minus the middle of the table's score range."""
    middle = middle_of(table)
    numbers = (scores.get(row.id) for row in rows if is_pair(row))
    return [score - middle for score in numbers if isinstance(score, float | int)]


def judged_orders(rows: Sequence[Row], scores: Mapping[str, Any], table: Table) -> Orders:
    """The same for pairs judged in both orders: (given order, swapped order)."""
    middle = middle_of(table)
    both = [row.scoped.get(f"{table.scorer}.{ORDERS}") for row in rows]
    found = [(one - middle, other - middle) for one, other in filter(None, both)]
    by_pair: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        swapped, score = row.scoped.get(f"{table.scorer}.{SWAPPED}"), scores.get(row.id)
        if swapped is not None and isinstance(score, float | int):
            by_pair.setdefault(row.parents[0], ([], []))[swapped].append(score - middle)
    means = [(fmean(one), fmean(other)) for one, other in by_pair.values() if one and other]
    return [*found, *means]


def middle_of(table: Table) -> float:
    """The score that prefers neither side."""
    return 0.0 if table.score_range is None else sum(table.score_range) / 2
