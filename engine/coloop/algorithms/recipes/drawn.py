"""Rows that were drawn several times: what is taken over a group or a batch counts every draw.

A row with count c stands for c equal rows. It is written out c times, the estimator works on rows
as ever, and of the copies, which all get the same, the first is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from coloop.algorithms.recipes.estimators import Events


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Rows with every draw written out. (rows,) -> (copies,)."""

    of: Tensor
    """(copies,) long: the row that each stands for."""
    is_first: Tensor
    """(copies,) bool."""


def per_draw(
    events: Events, counts: Tensor, estimate: Callable[[Events, Tensor], Events]
) -> Events:
    """What an estimator makes of these events where every row stands as often as it was drawn.

    Args:
        counts: draws of each row, (rows,), whole numbers from 1 on.
        estimate: takes events, and for each of its rows the row that it stands for.
    """
    copies = _copies(counts)
    if copies.of.numel() == counts.numel():
        return estimate(events, copies.of)
    found = estimate(_written_out(events, copies), copies.of)
    is_kept = copies.is_first[found.rows]
    return Events(
        rows=copies.of[found.rows[is_kept]],
        positions=found.positions[is_kept],
        values=found.values[is_kept],
    )


def _copies(counts: Tensor) -> Copies:
    draws = counts.round().long().clamp(min=1)
    of = torch.arange(counts.numel()).repeat_interleave(draws)
    is_first = torch.ones_like(of, dtype=torch.bool)
    is_first[1:] = of[1:] != of[:-1]
    return Copies(of=of, is_first=is_first)


def _written_out(events: Events, copies: Copies) -> Events:
    """The events of every copy; sorted by copy and position, as events are."""
    sizes = torch.bincount(events.rows, minlength=int(copies.of.max()) + 1)
    begins = sizes.cumsum(0) - sizes
    own = sizes[copies.of]  # events of each copy
    rows = torch.arange(copies.of.numel()).repeat_interleave(own)
    place = torch.arange(rows.numel()) - (own.cumsum(0) - own)[rows]
    index = begins[copies.of][rows] + place
    return Events(rows=rows, positions=events.positions[index], values=events.values[index])
