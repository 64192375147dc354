"""Ragged rows as tensors and back: the rows that stay in an update, with masks and group numbers.

Legend: ``B`` rows that stay, ``T`` completion tokens.
What is of rows is known at once; (B, T) is made only where somebody asks for numbers by the token.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.algorithms.batch import Batch
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.protocol import CreditInput, Score
from coloop.data.arrays import Mask, Numbers, mask_of, numbers_of

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StayingRows:
    index: list[int]  # their places in the input
    masks: list[Mask]  # of each, true on trained tokens
    groups: Tensor  # (B,) long, dense from 0
    is_taught: Tensor
    """(B,) bool, false for rows that only count in their group's baseline."""
    lengths: Tensor  # (B,) long, trained tokens
    last: Tensor
    """(B,) long, the last trained token: where the score of a whole row stands; 0 without any."""
    counts: Tensor  # (B,) float32

    @property
    def size(self) -> int:
        return len(self.index)

    @cached_property
    def sizes(self) -> list[int]:
        """Completion tokens of each, trained or not."""
        return [len(mask) for mask in self.masks]

    @cached_property
    def mask(self) -> Tensor:
        """(B, T) bool, true on trained tokens."""
        return pad(self.masks, torch.bool)

    @cached_property
    def taught(self) -> Tensor:
        """(B, T) bool, `mask` without the rows that are not taught."""
        return self.mask & self.is_taught[:, None]

    def at_taught_tokens(self, numbers: Tensor) -> Tensor:
        """Each row's number for each trained token of taught rows, in mask order. (B,) -> (N,)."""
        times = torch.where(self.is_taught, self.lengths, 0)
        return torch.from_numpy(np.repeat(numbers.numpy(), times.numpy()))

    def padded(self, rows: Sequence[Numbers]) -> Tensor:
        """One number a completion token, of the input's rows. -> (B, T) float32."""
        own = [rows[row] for row in self.index]
        for row, size, numbers in zip(self.index, self.sizes, own, strict=True):
            if len(numbers) != size:
                raise ValueError(f"row {row} has {size} tokens but {len(numbers)} numbers")
        return pad(own, torch.float32)

    def arrays(self, numbers: Tensor) -> list[Numbers]:
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
    numbers: dict[object, int] = {}
    for row in staying:
        numbers.setdefault(rows.groups[row], len(numbers))
    masks = [mask_of(rows.loss_masks[row]) for row in staying]
    taught = [rows.taught is None or rows.taught[row] for row in staying]
    counts = [1.0 if rows.counts is None else rows.counts[row] for row in staying]
    different = {id(mask): mask for mask in masks}  # texts of one length share theirs
    lengths = {key: np.count_nonzero(mask) for key, mask in different.items()}
    last = {key: _last_true(mask) for key, mask in different.items()}
    return StayingRows(
        index=staying,
        masks=masks,
        groups=torch.tensor([numbers[rows.groups[row]] for row in staying], dtype=torch.long),
        is_taught=torch.tensor(taught, dtype=torch.bool),
        lengths=torch.tensor([lengths[id(mask)] for mask in masks], dtype=torch.long),
        last=torch.tensor([last[id(mask)] for mask in masks], dtype=torch.long),
        counts=torch.tensor(counts, dtype=torch.float32),
    )


def _last_true(mask: Mask) -> int:
    behind = int(mask[::-1].argmax()) if len(mask) else 0
    return len(mask) - 1 - behind if len(mask) and mask[-1 - behind] else 0


def pad(rows: Sequence[NDArray[Any]], dtype: torch.dtype) -> Tensor:
    """Rows of numbers as (B, T), T at least 1, 0 where a row has ended."""
    width = max((len(row) for row in rows), default=0) or 1
    full = torch.zeros((len(rows), width), dtype=dtype)
    view = full.numpy()
    for place, row in enumerate(rows):
        view[place, : len(row)] = row
    return full


def balanced_counts(
    counts: Sequence[int], sizes: Sequence[float], *, to: int, by: str, seed: int
) -> list[int]:
    """How often each row of a group stands in the update, `to` in all; 0: it leaves.

    `counts`: of draws. `sizes`: how much each would teach, the greatest first where `by` is
    `advantage`; with `random` the seed decides.
    """
    draws = [row for row, count in enumerate(counts) for _ in range(count)]
    if not draws:
        return [0] * len(counts)
    if by == "advantage":
        order = sorted(draws, key=lambda row: -sizes[row])
    else:
        order = random.Random(seed).sample(draws, len(draws))
    rounds, rest = divmod(to, len(order))
    found = [0] * len(counts)
    for place, row in enumerate(order):
        found[row] += rounds + (place < rest)
    return found


# Names of the numbers with which a row of `rewards` says for whom it is.

ADVANTAGES = "advantages"
OF_OTHERS = "of_others"  # 1 for a row that others wrote, 0 for an own one


def advantages_of(number: int) -> str:
    """Where the advantages of the algorithm at this place stand."""
    return ADVANTAGES if number == 0 else f"{ADVANTAGES}.{number}"


def rows_of_algorithm(rows: Sequence[TokenSequence], number: int) -> list[TokenSequence]:
    """The rows that the algorithm at this place learns from, with its advantages."""
    if number == 0:
        return [row for row in rows if row.advantages is not None]
    name = advantages_of(number)
    return [replace(row, advantages=row.numbers[name]) for row in rows if name in row.numbers]


def own_tokens(batch: Batch) -> Tensor:
    """Trained tokens of rows that the learner wrote. (B, T) bool."""
    of_others = batch.given(OF_OTHERS)
    return batch.loss_mask if of_others is None else batch.loss_mask & (of_others == 0)[:, None]


# Credit over rounds, R = own + discount * mean of R over the next round's rows below it, as
# MAGRPO's returns over a tree of turns (arXiv 2508.04652). Without a score of its own a row has
# what comes from below; with neither it stays without.


def returns_over_rounds(
    scores: Sequence[Score],
    *,
    rounds: Sequence[int],
    below: Sequence[Sequence[int]],
    last_tokens: Sequence[int],
    discount: float,
) -> list[Score]:
    """R of each row of one role.

    Args:
        rounds: in which the rows were written.
        below: of each row the places of the next round's rows that descend from it.
        last_tokens: of each completion the position of the last trained token, on which later
            rewards
            land where a row's own score is one by the token.
    """
    found = list(scores)
    for place in sorted(range(len(scores)), key=lambda one: -rounds[one]):
        later = [total for one in below[place] if (total := _total(found[one])) is not None]
        if later and discount:
            found[place] = _plus(found[place], discount * fmean(later), last_tokens[place])
    return found


def _plus(score: Score, more: float, position: int) -> Score:
    if score is None or isinstance(score, float | int):
        return (score or 0.0) + more
    return {**score, position: score.get(position, 0.0) + more}


def _total(score: Score) -> float | None:
    if score is None or isinstance(score, float | int):
        return score
    return float(sum(score.values()))
