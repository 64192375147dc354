"""Ragged rows as tensors and back: the rows that stay in an update, with masks and group numbers.

Legend: ``B`` rows that stay, ``T`` completion tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from coloop.algos.masks import last_true_position
from coloop.recipes.protocol import CreditInput

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StayingRows:
    """The rows of a credit that some reward speaks about."""

    index: list[int]
    """Their places in the input."""
    sizes: list[int]
    """Completion tokens of each, trained or not."""
    groups: Tensor
    """(B,) long, dense from 0."""
    mask: Tensor
    """(B, T) bool, true on trained tokens."""
    taught: Tensor
    """(B, T) bool, `mask` without the rows that only count in their group's baseline."""
    last: Tensor
    """(B,) long, the last trained token: where the score of a whole row stands."""
    counts: Tensor
    """(B,) float32."""

    @property
    def size(self) -> int:
        return len(self.index)

    @property
    def lengths(self) -> Tensor:
        """Trained tokens of each row, (B,)."""
        return self.mask.sum(1)

    def padded(self, rows: Sequence[Sequence[float]]) -> Tensor:
        """One number a completion token, of the input's rows. -> (B, T) float32."""
        own = [rows[row] for row in self.index]
        for row, size, numbers in zip(self.index, self.sizes, own, strict=True):
            if len(numbers) != size:
                raise ValueError(f"row {row} has {size} tokens but {len(numbers)} numbers")
        return pad(own)

    def lists(self, numbers: Tensor) -> list[list[float]]:
        """Each row's numbers, one a completion token. (B, T) ->."""
        full: list[list[float]] = numbers.tolist()
        return [row[:size] for row, size in zip(full, self.sizes, strict=True)]

    def numbers_or_lists(self, numbers: Tensor) -> list[float | list[float]]:
        """One number for a row whose trained tokens all have the same, else one for each token."""
        high = numbers.masked_fill(~self.mask, -torch.inf).amax(1).tolist()
        low = numbers.masked_fill(~self.mask, torch.inf).amin(1).tolist()
        return [
            own if most > least else (most if math.isfinite(most) else 0.0)
            for own, most, least in zip(self.lists(numbers), high, low, strict=True)
        ]

    def spread(self, values: Sequence[T], size: int) -> tuple[T | None, ...]:
        """Values of the staying rows at their places among `size` rows, None elsewhere."""
        by_row = dict(zip(self.index, values, strict=True))
        return tuple(by_row.get(row) for row in range(size))


def gather_rows(rows: CreditInput, staying: list[int]) -> StayingRows:
    """The rows at these places."""
    numbers: dict[object, int] = {}
    for row in staying:
        numbers.setdefault(rows.groups[row], len(numbers))
    mask = pad([[float(own) for own in rows.loss_masks[row]] for row in staying]).bool()
    taught = [rows.taught is None or rows.taught[row] for row in staying]
    counts = [1.0 if rows.counts is None else rows.counts[row] for row in staying]
    return StayingRows(
        index=staying,
        sizes=[len(rows.loss_masks[row]) for row in staying],
        groups=torch.tensor([numbers[rows.groups[row]] for row in staying], dtype=torch.long),
        mask=mask,
        taught=mask & torch.tensor(taught, dtype=torch.bool)[:, None],
        last=last_true_position(mask).clamp(min=0),
        counts=torch.tensor(counts, dtype=torch.float32),
    )


def pad(rows: Sequence[Sequence[float]]) -> Tensor:
    """Lists of numbers as (B, T) float32, T at least 1, 0 where a list has ended."""
    width = max((len(row) for row in rows), default=0) or 1
    full = [[*row, *[0.0] * (width - len(row))] for row in rows]
    return torch.tensor(full, dtype=torch.float32).reshape(len(rows), width)
