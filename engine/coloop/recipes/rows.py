"""Ragged rows as tensors and back: the rows that stay in an update, with masks and group numbers.

Legend: ``B`` rows that stay, ``T`` completion tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.algos.masks import last_true_position
from coloop.arrays import Numbers, numbers_of
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

    def padded(self, rows: Sequence[Numbers]) -> Tensor:
        """One number a completion token, of the input's rows. -> (B, T) float32."""
        own = [rows[row] for row in self.index]
        for row, size, numbers in zip(self.index, self.sizes, own, strict=True):
            if len(numbers) != size:
                raise ValueError(f"row {row} has {size} tokens but {len(numbers)} numbers")
        return pad(own, torch.float32)

    def arrays(self, numbers: Tensor) -> list[Numbers]:
        """Each row's numbers, one a completion token. (B, T) ->."""
        full = numbers.numpy()
        return [numbers_of(full[row, :size]) for row, size in enumerate(self.sizes)]

    def numbers_or_arrays(self, numbers: Tensor) -> list[float | Numbers]:
        """One number for a row whose trained tokens all have the same, else one for each token."""
        high = numbers.masked_fill(~self.mask, -torch.inf).amax(1).tolist()
        low = numbers.masked_fill(~self.mask, torch.inf).amin(1).tolist()
        return [
            own if most > least else (most if math.isfinite(most) else 0.0)
            for own, most, least in zip(self.arrays(numbers), high, low, strict=True)
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
    mask = pad([rows.loss_masks[row] for row in staying], torch.bool)
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


def pad(rows: Sequence[NDArray[Any]], dtype: torch.dtype) -> Tensor:
    """Rows of numbers as (B, T), T at least 1, 0 where a row has ended."""
    width = max((len(row) for row in rows), default=0) or 1
    full = torch.zeros((len(rows), width), dtype=dtype)
    view = full.numpy()
    for place, row in enumerate(rows):
        view[place, : len(row)] = row
    return full
