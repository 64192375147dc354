"""From reward events to normalised ones: the baseline and the deviation that the settings name.

Legend: ``E`` events. An event is a reward at a token position of a row: the score of a whole row
stands at its last trained token, a step's at the end of the step.
With one event a row this is the textbook estimator of the row's reward; with several it is process
supervision, where baseline and deviation are taken over all events of the group
(arXiv 2402.03300, 4.1.3).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from coloop.algorithms import advantages as estimate
from coloop.spec.algorithm import ResolvedRewards


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Rewards at positions, sorted by row and position; at most one at each place."""

    rows: Tensor
    """(E,) long."""
    positions: Tensor
    """(E,) long."""
    values: Tensor
    """(E,) float64."""

    def with_values(self, values: Tensor) -> "Events":
        return Events(rows=self.rows, positions=self.positions, values=values.double())

    def row_totals(self, rows: int) -> Tensor:
        """Sum of each row's events, float64. -> (rows,)."""
        return self.values.new_zeros(rows).index_add(0, self.rows, self.values)

    def at_tokens(self, shape: tuple[int, ...]) -> Tensor:
        """The events as rewards of tokens. -> (B, T) float32."""
        rewards = torch.zeros(shape, dtype=torch.float64)
        return rewards.index_put((self.rows, self.positions), self.values).float()


def normalise_events(
    events: Events, groups: Tensor, lengths: Tensor, settings: ResolvedRewards
) -> Events:
    """Subtract the baseline and divide by the deviation that the settings name.

    `groups` and `lengths` are of rows, (rows,). Estimators that look ahead (returns, GAE) and
    those without a baseline leave the events as they are.
    """
    if settings.advantage in ("gae", "discounted_return", "none", "greedy"):
        return events
    if settings.advantage == "best_minus_second":
        events = _whole_rows(events)
    group = groups[events.rows]
    match settings.advantage:
        case "group_mean_std" | "group_mean":
            centred = estimate.group_mean(events.values, group)
        case "leave_one_out":
            centred = estimate.leave_one_out(events.values, group, events.rows)
        case "length_weighted":
            centred = estimate.length_weighted(events.values, group, lengths[events.rows])
        case "best_minus_second":
            centred = estimate.best_minus_second(events.values, group)
        case _:
            raise ValueError(f"unknown advantage {settings.advantage!r}")
    scaled = estimate.scale_by_deviation(
        centred,
        events.values,
        group,
        deviation=settings.deviation,
        epsilon=settings.epsilon,
    )
    return events.with_values(scaled)


def normalise_over_batch(events: Events, *, epsilon: float) -> Events:
    """(A − mean) / (std + epsilon) over the batch's events, unbiased. GDPO (arXiv 2601.05242)."""
    values = events.values
    if values.numel() < 2:
        return events.with_values(torch.zeros_like(values))
    return events.with_values((values - values.mean()) / (values.std() + epsilon))


def last_of_rows(rows: Tensor) -> Tensor:
    """True at the last event of each row; `rows` is sorted. (E,) -> (E,)."""
    is_last = torch.ones_like(rows, dtype=torch.bool)
    is_last[:-1] = rows[1:] != rows[:-1]
    return is_last


def _whole_rows(events: Events) -> Events:
    """One event a row, at its last position, with the row's total."""
    if events.rows.numel() == 0:
        return events
    is_last = last_of_rows(events.rows)
    totals = events.row_totals(int(events.rows.max()) + 1)
    rows = events.rows[is_last]
    return Events(rows=rows, positions=events.positions[is_last], values=totals[rows])
