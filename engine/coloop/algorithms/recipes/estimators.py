"""Combines and normalises rewards: sums over edges, baseline and deviation.

Legend: ``E`` events. An event is a reward at a token of a row: a score of the whole row at its last
trained token, that of a step at its end. With several events per row (process supervision),
baseline and deviation are over all events of the group (arXiv 2402.03300, 4.1.3).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import torch
from torch import Tensor

from coloop.algorithms import advantages as estimate
from coloop.algorithms.recipes.protocol import EdgeScores
from coloop.algorithms.recipes.rows import CreditBatch
from coloop.spec.algorithm import ResolvedRewards
from coloop.spec.algorithms.registry import ADVANTAGES, ESTIMATORS_OF_PLUGINS
from coloop.spec.installed import WithPlugins
from coloop.spec.training import Credit


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRewards:
    """Events, sorted by row and position, with at most one per token; they are compared within
    groups."""

    values: Tensor
    """(E,) float64."""
    groups: Tensor
    """(E,) long: index of the group, from 0 without gaps."""
    rows: Tensor
    """(E,) long: index of the row."""
    lengths: Tensor
    """(E,) long: number of trained tokens of the row."""
    positions: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    """(E,) long: index of the token in the completion."""

    def with_values(self, values: Tensor) -> "GroupedRewards":
        return replace(self, values=values.double())

    def at(self, index: Tensor) -> "GroupedRewards":
        return GroupedRewards(
            values=self.values[index],
            groups=self.groups[index],
            rows=self.rows[index],
            lengths=self.lengths[index],
            positions=self.positions[index],
        )

    def row_totals(self, rows: int) -> Tensor:
        """Sum of each row's events, float64. -> (rows,)."""
        return self.values.new_zeros(rows).index_add(0, self.rows, self.values)

    def at_tokens(self, shape: tuple[int, ...]) -> Tensor:
        """Rewards per token, (B, T) float32."""
        rewards = torch.zeros(shape, dtype=torch.float64)
        return rewards.index_put((self.rows, self.positions), self.values).float()


Estimator = Callable[[GroupedRewards], Tensor]
"""Computes advantages (E,), before any division by a deviation."""

OWN_ESTIMATORS: Final[Mapping[str, Estimator]] = {
    "group_mean_std": lambda given: estimate.group_mean(given.values, given.groups),
    "group_mean": lambda given: estimate.group_mean(given.values, given.groups),
    "leave_one_out": lambda given: estimate.leave_one_out(given.values, given.groups, given.rows),
    "length_weighted": lambda given: estimate.length_weighted(
        given.values, given.groups, given.lengths
    ),
    "best_minus_second": lambda given: estimate.best_minus_second(given.values, given.groups),
    "mean_normalised": lambda given: estimate.mean_normalised(given.values, given.groups),
}

ESTIMATORS: Final = WithPlugins(OWN_ESTIMATORS, ESTIMATORS_OF_PLUGINS)
"""Estimators by the name of an advantage in `spec.algorithms`."""


def normalise_events(events: GroupedRewards, settings: ResolvedRewards) -> GroupedRewards:
    """Subtract the baseline and divide by the deviation of the settings.

    For advantages without a group baseline (returns, GAE), events are unchanged.
    """
    record = ADVANTAGES[settings.advantage]
    if record.whole_rows:
        events = _whole_rows(events)
    if record.needs != "group":
        return events
    scaled = estimate.scale_by_deviation(
        ESTIMATORS[record.name](events),
        events.values,
        events.groups,
        deviation=settings.deviation,
        epsilon=settings.epsilon,
    )
    return events.with_values(scaled)


def normalise_over_batch(events: GroupedRewards, *, epsilon: float) -> GroupedRewards:
    """(A − mean) / (std + epsilon) over the batch's events, unbiased. GDPO (arXiv 2601.05242)."""
    values = events.values
    if values.numel() < 2:
        return events.with_values(torch.zeros_like(values))
    return events.with_values((values - values.mean()) / (values.std() + epsilon))


def combine_of(settings: ResolvedRewards, credit: Credit) -> str:
    """How several rewards become one: as `credit.combine` says, else as the algorithm does."""
    return credit.combine or settings.combine


def last_of_rows(rows: Tensor) -> Tensor:
    """True at the last event of each row; `rows` is sorted. (E,) -> (E,)."""
    is_last = torch.ones_like(rows, dtype=torch.bool)
    is_last[:-1] = rows[1:] != rows[:-1]
    return is_last


def _whole_rows(events: GroupedRewards) -> GroupedRewards:
    """One event per row, at its last position, with the row's total."""
    if events.rows.numel() == 0:
        return events
    is_last = last_of_rows(events.rows)
    totals = events.row_totals(int(events.rows.max()) + 1)
    last = events.at(is_last)
    return replace(last, values=totals[last.rows])


# Rows drawn several times: a row with count c is written out c times for the estimator, and the
# first copy is kept.


def per_draw(
    events: GroupedRewards, counts: Tensor, estimate: Callable[[GroupedRewards], GroupedRewards]
) -> GroupedRewards:
    """Apply `estimate` with each row repeated as often as it was drawn; returns one copy of each.

    Args:
        counts: how often each row was drawn, (rows,), whole numbers from 1.
    """
    draws = counts.round().long().clamp(min=1)
    of = torch.arange(counts.numel()).repeat_interleave(draws)  # (copies,)
    if of.numel() == counts.numel():
        return estimate(events)
    is_first = torch.ones_like(of, dtype=torch.bool)
    is_first[1:] = of[1:] != of[:-1]
    estimated = estimate(_written_out(events, of))
    kept = estimated.at(is_first[estimated.rows])
    return replace(kept, rows=of[kept.rows])


def _written_out(events: GroupedRewards, of: Tensor) -> GroupedRewards:
    """The events of all copies, where `of` is the row of each copy."""
    sizes = torch.bincount(events.rows, minlength=int(of.max()) + 1)
    begins = sizes.cumsum(0) - sizes
    own = sizes[of]  # events of each copy
    rows = torch.arange(of.numel()).repeat_interleave(own)
    index = torch.arange(rows.numel()) - (own.cumsum(0) - own)[rows]
    return replace(events.at(begins[of][rows] + index), rows=rows)


# An edge gives a row a number (an event at the last trained token), numbers by token, or None.
# `missing` says what becomes of rows that some edge does not score: the sum or the mean (by
# absolute weight) of the other edges, or no such row. Edges of weight 0 have been removed.


def rows_that_stay(rows: CreditBatch, missing: str) -> list[int]:
    """Indices of rows that at least one edge scores; with `skip_row` every edge, but for rows of
    other writers."""
    if not rows.edges:
        return []

    def stays(row: int) -> bool:
        is_own = rows.of_others is None or not rows.of_others[row]
        speaks = all if missing == "skip_row" and is_own else any
        return speaks(edge.scores[row] is not None for edge in rows.edges)

    return [row for row in range(len(rows)) if stays(row)]


def sum_of_edges(rows: CreditBatch, missing: str) -> GroupedRewards:
    """Weighted sum of the scores of all edges; with `mean_of_available` the weighted mean."""
    if not any(isinstance(score, Mapping) for edge in rows.edges for score in edge.scores):
        return _sum_of_numbers(rows, missing)
    combined: list[dict[int, float]] = []
    for row in range(len(rows)):
        total: dict[int, float] = {}
        weight = 0.0
        for edge in rows.edges:
            score = _at_tokens(edge, rows, row)
            weight += 0.0 if score is None else abs(edge.weight)
            for token, value in (score or {}).items():
                total[token] = total.get(token, 0.0) + edge.weight * value
        if missing == "mean_of_available":
            total = {token: value / weight for token, value in total.items()}
        combined.append(total)
    return _events(combined, rows)


def _sum_of_numbers(rows: CreditBatch, missing: str) -> GroupedRewards:
    """`sum_of_edges`, vectorized, for edges with one number per row; bit for bit the same."""
    totals, weights = np.zeros(len(rows)), np.zeros(len(rows))
    for edge in rows.edges:
        is_there = np.array([score is not None for score in edge.scores], dtype=np.bool_)
        scores = [0.0 if score is None else score for score in edge.scores]
        values = np.array(scores, dtype=np.float64)
        totals = np.where(is_there, totals + edge.weight * values, totals)
        weights += np.where(is_there, abs(edge.weight), 0.0)
    if missing == "mean_of_available":
        totals = totals / weights
    return GroupedRewards(
        values=torch.from_numpy(totals),
        groups=rows.group_numbers,
        rows=torch.arange(len(rows)),
        lengths=rows.lengths,
        positions=rows.last,
    )


def sum_of_normalised_edges(
    rows: CreditBatch, settings: ResolvedRewards, credit: Credit
) -> GroupedRewards:
    """Weighted sum of edges that are each normalised over the rows that they score.

    With `normalize_then_sum` the sum is normalised over the batch (GDPO, arXiv 2601.05242).
    """
    combined: list[dict[int, float]] = [{} for _ in range(len(rows))]
    weights = [0.0] * len(rows)
    for edge in rows.edges:
        scores = [_at_tokens(edge, rows, row) for row in range(len(rows))]
        own = clip_events(_events([at or {} for at in scores], rows), settings, is_before=True)
        own = normalise_rows(own, rows, settings, of=edge.key or edge.name)
        own = clip_events(own, settings, is_before=False)
        for row, token, value in zip(
            own.rows.tolist(), own.positions.tolist(), own.values.tolist(), strict=True
        ):
            combined[row][token] = combined[row].get(token, 0.0) + edge.weight * value
        for row, at in enumerate(scores):
            weights[row] += 0.0 if at is None else abs(edge.weight)
    if credit.missing == "mean_of_available":
        combined = [
            {token: value / weight for token, value in at.items()}
            for at, weight in zip(combined, weights, strict=True)
        ]
    events = _events(combined, rows)
    if combine_of(settings, credit) == "normalize_then_sum":
        return per_draw(
            events,
            rows.draws,
            lambda drawn: normalise_over_batch(drawn, epsilon=settings.epsilon),
        )
    return events


def normalise_rows(
    events: GroupedRewards, rows: CreditBatch, settings: ResolvedRewards, *, of: str = ""
) -> GroupedRewards:
    """`normalise_events`, where a row counts as often as it was drawn.

    `of`: the edge whose scores these are, for moving baselines; empty: their sum.
    """
    if settings.needs_baseline:
        return _less_baselines(normalise_events(events, settings), rows, settings, of)
    return per_draw(events, rows.draws, lambda drawn: normalise_events(drawn, settings))


def _less_baselines(
    events: GroupedRewards, rows: CreditBatch, settings: ResolvedRewards, of: str
) -> GroupedRewards:
    """Events of whole rows, less the moving baselines of `rows`, which are moved on in place."""
    assert isinstance(rows.baselines, dict)
    keys = rows.baseline_keys or [()] * len(rows)
    index = events.rows.tolist()
    below, after = estimate.moving_baselines(
        events.values.tolist(),
        [(of, keys[row]) for row in index],
        rows.baselines,
        decay=settings.baseline_decay,
        counts=rows.draws[events.rows].tolist(),
    )
    rows.baselines.update(after)
    return events.with_values(events.values - torch.tensor(below, dtype=torch.float64))


def clip_events(
    events: GroupedRewards, settings: ResolvedRewards, *, is_before: bool
) -> GroupedRewards:
    """Events clipped to ±`reward_clip`, if the settings clip at this point: before or after the
    baseline."""
    limit = settings.reward_clip
    if limit is None or is_before is settings.penalizes_after_baseline:
        return events
    return events.with_values(events.values.clamp(-limit, limit))


def _at_tokens(edge: EdgeScores, rows: CreditBatch, row: int) -> dict[int, float] | None:
    score = edge.scores[row]
    if score is None:
        return None
    if not isinstance(score, Mapping):
        return {int(rows.last[row]): float(score)}
    return {token: float(value) for token, value in score.items()}


def _events(values: Sequence[dict[int, float]], rows: CreditBatch) -> GroupedRewards:
    flat = [(row, token, at[token]) for row, at in enumerate(values) for token in sorted(at)]
    index = torch.tensor([row for row, _, _ in flat], dtype=torch.long)
    return GroupedRewards(
        values=torch.tensor([value for _, _, value in flat], dtype=torch.float64),
        groups=rows.group_numbers[index],
        rows=index,
        lengths=rows.lengths[index],
        positions=torch.tensor([token for _, token, _ in flat], dtype=torch.long),
    )
