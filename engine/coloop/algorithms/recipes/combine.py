"""Several reward edges become one set of reward events.

An edge says of a row: a number (an event at the last trained token), numbers at token positions (an
event each), or None. `missing` decides about rows that some edge says nothing of: the sum or the
mean (by absolute weight) of what is there, or no such row at all.
Invariant: edges of weight 0 never arrive here, so they change nothing, not even by a rounding.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from coloop.algorithms.recipes.drawn import per_draw
from coloop.algorithms.recipes.estimators import Events, normalise_events, normalise_over_batch
from coloop.algorithms.recipes.protocol import EdgeScores, Score
from coloop.algorithms.recipes.rows import StayingRows
from coloop.spec.algorithm import ResolvedRewards
from coloop.spec.training import Credit


def rows_that_stay(
    edges: Sequence[EdgeScores],
    size: int,
    missing: str,
    of_others: Sequence[bool] | None = None,
) -> list[int]:
    """Rows that some edge (with `skip_row`: every edge) says something about; of a row that others
    wrote one edge alone ever speaks."""
    if not edges:
        return []

    def stays(row: int) -> bool:
        is_own = of_others is None or not of_others[row]
        speaks = all if missing == "skip_row" and is_own else any
        return speaks(edge.scores[row] is not None for edge in edges)

    return [row for row in range(size) if stays(row)]


def sum_of_edges(edges: Sequence[EdgeScores], rows: StayingRows, missing: str) -> Events:
    """Events of the weighted sum, or weighted mean, of what is there."""
    if not any(isinstance(score, Mapping) for edge in edges for score in _others(edge.scores)):
        return _sum_of_numbers(edges, rows, missing)
    combined: list[dict[int, float]] = []
    for row in range(rows.size):
        total: dict[int, float] = {}
        weight = 0.0
        for edge in edges:
            said = _said(edge, rows, row)
            weight += 0.0 if said is None else abs(edge.weight)
            for place, value in (said or {}).items():
                total[place] = total.get(place, 0.0) + edge.weight * value
        if missing == "mean_of_available":
            total = {place: value / weight for place, value in total.items()}
        combined.append(total)
    return _events(combined)


def _others(scores: Sequence[Score]) -> Sequence[Score]:
    """Those that are no plain numbers."""
    return [score for score in scores if not isinstance(score, (float, int))]


def _sum_of_numbers(edges: Sequence[EdgeScores], rows: StayingRows, missing: str) -> Events:
    """`sum_of_edges` where every edge says one number of a row, or nothing: the same additions in
    the same order, all rows at once."""
    totals, weights = np.zeros(rows.size), np.zeros(rows.size)
    for edge in edges:
        said = [edge.scores[row] for row in rows.index]
        is_there = np.array([score is not None for score in said], dtype=np.bool_)
        values = np.array([0.0 if score is None else score for score in said], dtype=np.float64)
        totals = np.where(is_there, totals + edge.weight * values, totals)
        weights += np.where(is_there, abs(edge.weight), 0.0)
    if missing == "mean_of_available":
        totals = totals / weights
    return Events(
        rows=torch.arange(rows.size), positions=rows.last, values=torch.from_numpy(totals)
    )


def sum_of_normalised_edges(
    edges: Sequence[EdgeScores], rows: StayingRows, settings: ResolvedRewards, credit: Credit
) -> Events:
    """Each edge normalised among the rows that it scores, then the weighted sum.

    With `normalize_then_sum` the sum is normalised over the batch (GDPO, arXiv 2601.05242).
    """
    combined: list[dict[int, float]] = [{} for _ in range(rows.size)]
    weights = [0.0] * rows.size
    for edge in edges:
        said = [_said(edge, rows, row) for row in range(rows.size)]
        own = clip_events(_events([at or {} for at in said]), settings, is_before=True)
        own = normalise_rows(own, rows, settings)
        own = clip_events(own, settings, is_before=False)
        for row, place, value in zip(
            own.rows.tolist(), own.positions.tolist(), own.values.tolist(), strict=True
        ):
            combined[row][place] = combined[row].get(place, 0.0) + edge.weight * value
        for row, at in enumerate(said):
            weights[row] += 0.0 if at is None else abs(edge.weight)
    if credit.missing == "mean_of_available":
        combined = [
            {place: value / weight for place, value in at.items()}
            for at, weight in zip(combined, weights, strict=True)
        ]
    events = _events(combined)
    if credit.combine == "normalize_then_sum":
        return per_draw(
            events,
            rows.counts,
            lambda drawn, _: normalise_over_batch(drawn, epsilon=settings.epsilon),
        )
    return events


def normalise_rows(events: Events, rows: StayingRows, settings: ResolvedRewards) -> Events:
    """Baseline and deviation of the settings; a row counts as often as it was drawn."""
    return per_draw(
        events,
        rows.counts,
        lambda drawn, of: normalise_events(drawn, rows.groups[of], rows.lengths[of], settings),
    )


def clip_events(events: Events, settings: ResolvedRewards, *, is_before: bool) -> Events:
    """Every event kept within plus or minus `reward_clip`, on that side of the baseline on which
    the settings clip."""
    limit = settings.reward_clip
    if limit is None or is_before is settings.penalizes_after_baseline:
        return events
    return events.with_values(events.values.clamp(-limit, limit))


def _said(edge: EdgeScores, rows: StayingRows, row: int) -> dict[int, float] | None:
    """What an edge says of a row, as numbers at token positions."""
    score = edge.scores[rows.index[row]]
    if score is None:
        return None
    if not isinstance(score, Mapping):
        return {int(rows.last[row]): float(score)}
    for place in score:
        if not 0 <= place < rows.sizes[row]:
            raise ValueError(
                f"{edge.name} scores token {place} of row {rows.index[row]}, "
                f"which has {rows.sizes[row]} tokens"
            )
    return {place: float(value) for place, value in score.items()}


def _events(values: Sequence[dict[int, float]]) -> Events:
    flat = [(row, place, at[place]) for row, at in enumerate(values) for place in sorted(at)]
    return Events(
        rows=torch.tensor([row for row, _, _ in flat], dtype=torch.long),
        positions=torch.tensor([place for _, place, _ in flat], dtype=torch.long),
        values=torch.tensor([value for _, _, value in flat], dtype=torch.float64),
    )
