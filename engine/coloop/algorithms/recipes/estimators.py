"""From reward events to normalised ones: the baseline and the deviation that the settings name.

Legend: ``E`` events. An event is a reward at a token position of a row: the score of a whole row
stands at its last trained token, a step's at the end of the step.
With one event a row this is the textbook estimator of the row's reward; with several it is process
supervision, where baseline and deviation are taken over all events of the group
(arXiv 2402.03300, 4.1.3).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from coloop.algorithms import advantages as estimate
from coloop.spec.algorithm import ResolvedRewards
from coloop.spec.algorithms.registry import ADVANTAGES, ESTIMATORS_OF_PLUGINS
from coloop.spec.installed import WithPlugins


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRewards:
    """Rewards that are compared within their groups."""

    values: Tensor
    """(E,) float64."""
    groups: Tensor
    """(E,) long: dense numbers of the groups."""
    rows: Tensor
    """(E,) long: whose rewards they are."""
    lengths: Tensor
    """(E,) long: trained tokens of those rows."""


Estimator = Callable[[GroupedRewards], Tensor]
"""From rewards to advantages before any deviation, (E,)."""

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
"""By name, how rows of a group are compared; the records are in `spec.algorithms`."""


def normalise_events(
    events: Events, groups: Tensor, lengths: Tensor, settings: ResolvedRewards
) -> Events:
    """Subtract the baseline and divide by the deviation that the settings name.

    `groups` and `lengths` are of rows, (rows,). Estimators that look ahead (returns, GAE) and
    those without a baseline leave the events as they are.
    """
    record = ADVANTAGES[settings.advantage]
    if record.needs != "group":
        return events
    if record.whole_rows:
        events = _whole_rows(events)
    rows = events.rows
    given = GroupedRewards(
        values=events.values, groups=groups[rows], rows=rows, lengths=lengths[rows]
    )
    scaled = estimate.scale_by_deviation(
        ESTIMATORS[record.name](given),
        events.values,
        given.groups,
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
