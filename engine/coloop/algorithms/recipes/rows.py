"""Rows for credit assignment: scores, masks and groups, also as tensors.

Legend: ``B`` rows, ``T`` completion tokens.
Tensors of shape (B, T) are created on demand only.
"""

import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.algorithms.batch import Batch
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.batch.collating import padded
from coloop.algorithms.recipes.protocol import EdgeScores, Score, total_of
from coloop.data.arrays import Mask, Numbers, mask_of, numbers_of

BY_ROW = (
    *("rows", "groups", "loss_masks", "taught", "counts", "of_others", "greedy_scores"),
    *("log_probs_reference", "log_prob_differences", "values", "baseline_keys"),
)
"""Fields of a `CreditBatch` with one entry per row, if given."""


@dataclass(frozen=True, kw_only=True)
class CreditBatch:
    """Rows of a role and step for the credit assignment of one algorithm, and its results.
    Sequences have one entry per row."""

    rows: Sequence[Any] = ()  # what the caller knows them by; recipes do not look at it
    edges: Sequence[EdgeScores]
    groups: Sequence[Hashable] = ()  # group key of each row; rows of one key share a baseline
    loss_masks: Sequence[Mask]  # trained tokens of each completion
    taught: Sequence[bool] | None = None
    """False for rows that only count in the baseline of their group; None: all are trained on."""
    counts: Sequence[float] | None = None  # how often each row was drawn; None: once
    of_others: Sequence[bool] | None = None
    """True for rows of other writers, for which one scoring edge is enough; None: there are
    none."""
    log_probs_reference: Sequence[Numbers | None] | None = None
    """Log-probs of each completion by the reference; None for rows that it has not scored."""
    log_prob_differences: Sequence[Numbers] | None = None
    """log policy - log reference at each token of each completion; for KL in the reward."""
    values: Sequence[Numbers] | None = None  # a critic's value at each token of each completion
    critic_lambdas: Sequence[float] = ()
    """Lambdas of critics that have one of their own, for `returns_at`."""
    greedy_scores: Sequence[float] | None = None
    """Score of the greedy completion of each row's prompt."""
    baseline_keys: Sequence[Hashable] | None = None
    """What each row's moving baseline belongs to: its dataset and role, or as `credit.group_by`
    says. None: one baseline for all rows."""
    baselines: Mapping[Hashable, float] = field(default_factory=dict)
    """Moving baselines by edge and key: given those of earlier steps, found those after this."""

    # What an algorithm finds.

    settings: Any = None
    """Of the algorithm: `ResolvedRewards`."""
    advantages: tuple[float | Numbers | None, ...] = ()
    """Per row: a number for all trained tokens, or one per token of the completion; None for rows
    that leave the update or are not taught."""
    returns: tuple[Numbers | None, ...] | None = None
    """Per row: returns with the lambda of the advantages, per token; None without values."""
    returns_at: Mapping[float, tuple[Numbers | None, ...]] = field(default_factory=dict)
    """Returns by the lambdas of `critic_lambdas`, as `returns`."""
    rewards: tuple[float | None, ...] = ()  # the combined reward, before any baseline and KL
    kl: float | None = None
    """Mean KL per trained token, without the coefficient; None if KL is not in the reward."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    alerts: tuple[tuple[str, str], ...] = ()  # (code, message) of what a person should look at
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of rows that were left out, by what they lack."""
    why_left_out: str = ""
    """Explanation, if rows were left out because an edge to the critic is missing."""

    def __len__(self) -> int:
        return len(self.loss_masks)

    def only(self, index: Sequence[int]) -> Self:
        """The rows with these indices; for a batch without results."""
        given = {name: getattr(self, name) for name in BY_ROW}
        picked: dict[str, Any] = {
            name: [values[row] for row in index] for name, values in given.items() if values
        }
        edges = [replace(edge, scores=[edge.scores[row] for row in index]) for edge in self.edges]
        return replace(self, edges=edges, **picked)

    def scored(self) -> Self:
        """Without rows that no edge scores."""
        return self.only(
            [
                row
                for row in range(len(self))
                if any(edge.scores[row] is not None for edge in self.edges)
            ]
        )

    # As tensors.

    @cached_property
    def masks(self) -> list[Mask]:
        """Per row, a mask of trained tokens."""
        return [mask_of(mask) for mask in self.loss_masks]

    @cached_property
    def sizes(self) -> list[int]:
        """Completion tokens of each row, trained or not."""
        return [len(mask) for mask in self.masks]

    @cached_property
    def group_numbers(self) -> Tensor:
        """(B,) long: index of each row's group, from 0 without gaps."""
        numbers: dict[Hashable, int] = {}
        return torch.tensor(
            [numbers.setdefault(group, len(numbers)) for group in self.groups], dtype=torch.long
        )

    @cached_property
    def is_taught(self) -> Tensor:
        """(B,) bool: `taught` as a tensor."""
        return torch.tensor(self.taught or [True] * len(self), dtype=torch.bool)

    @cached_property
    def draws(self) -> Tensor:
        """(B,) float32: how often each row was drawn."""
        return torch.tensor(self.counts or [1.0] * len(self), dtype=torch.float32)

    @cached_property
    def lengths(self) -> Tensor:
        """(B,) long: number of trained tokens."""
        return self._of_masks(np.count_nonzero)

    @cached_property
    def last(self) -> Tensor:
        """(B,) long: index of the last trained token, which gets the score of the row; 0 without
        any."""
        return self._of_masks(_last_true)

    def _of_masks(self, count: Callable[[Mask], int]) -> Tensor:
        different = {id(mask): mask for mask in self.masks}  # texts of one length share theirs
        counts = {key: count(mask) for key, mask in different.items()}
        return torch.tensor([counts[id(mask)] for mask in self.masks], dtype=torch.long)

    @cached_property
    def mask(self) -> Tensor:
        """(B, T) bool: true for trained tokens."""
        return pad(self.masks, torch.bool)

    @cached_property
    def taught_mask(self) -> Tensor:
        """(B, T) bool: `mask` of the rows in `is_taught`."""
        return self.mask & self.is_taught[:, None]

    def at_taught_tokens(self, numbers: Tensor) -> Tensor:
        """Each row's number, repeated for each token of `taught_mask`. (B,) -> (N,)."""
        times = torch.where(self.is_taught, self.lengths, 0)
        return torch.from_numpy(np.repeat(numbers.numpy(), times.numpy()))

    def arrays(self, numbers: Tensor) -> list[Numbers]:
        """The rows of (B, T) as arrays without padding."""
        full = numbers.numpy()
        return [numbers_of(full[row, :size]) for row, size in enumerate(self.sizes)]

    def numbers_or_arrays(self, numbers: Tensor) -> list[float | Numbers]:
        """Per row: a number if all trained tokens have the same, else an array of one per token."""
        high = numbers.masked_fill(~self.mask, -torch.inf).amax(1).tolist()
        low = numbers.masked_fill(~self.mask, torch.inf).amin(1).tolist()
        return [
            own if most > least else (most if math.isfinite(most) else 0.0)
            for own, most, least in zip(self.arrays(numbers), high, low, strict=True)
        ]


def _last_true(mask: Mask) -> int:
    behind = int(mask[::-1].argmax()) if len(mask) else 0
    return len(mask) - 1 - behind if len(mask) and mask[-1 - behind] else 0


def pad(rows: Sequence[NDArray[Any]], dtype: torch.dtype) -> Tensor:
    """Rows of numbers as (B, T), padded with 0; T is at least 1."""
    sizes = [len(row) for row in rows]
    return padded(rows, sizes, max(sizes, default=0) or 1, 0, dtype)


def balanced_counts(
    counts: Sequence[int], sizes: Sequence[float], *, to: int, by: str, seed: int
) -> list[int]:
    """How often each row of a group counts in the update, `to` in total; 0: it leaves.

    `counts`: how often each was drawn. `sizes`: its priority if `by` is `advantage`, the largest
    first; with `random` the seed decides.
    """
    draws = [row for row, count in enumerate(counts) for _ in range(count)]
    if not draws:
        return [0] * len(counts)
    if by == "advantage":
        order = sorted(draws, key=lambda row: -sizes[row])
    else:
        order = random.Random(seed).sample(draws, len(draws))
    rounds, rest = divmod(to, len(order))
    new_counts = [0] * len(counts)
    for index, row in enumerate(order):
        new_counts[row] += rounds + (index < rest)
    return new_counts


# Names of numbers of rows of `rewards`: by which algorithm they are used, and who wrote them.

ADVANTAGES = "advantages"
OF_OTHERS = "of_others"  # 1 for a row that others wrote, 0 for an own one


def advantages_of(number: int) -> str:
    """Name of the advantages of the algorithm with this index."""
    return ADVANTAGES if number == 0 else f"{ADVANTAGES}.{number}"


def rows_of_algorithm(rows: Sequence[TokenSequence], number: int) -> list[TokenSequence]:
    """The rows that the algorithm with this index trains on, with its advantages."""
    if number == 0:
        return [row for row in rows if row.advantages is not None]
    name = advantages_of(number)
    return [replace(row, advantages=row.numbers[name]) for row in rows if name in row.numbers]


def own_tokens(batch: Batch) -> Tensor:
    """Trained tokens of rows that the learner itself generated. (B, T) bool."""
    of_others = batch.given(OF_OTHERS)
    return batch.loss_mask if of_others is None else batch.loss_mask & (of_others == 0)[:, None]


# Credit over rounds, R = own + discount * mean of R over the next round's rows below it, as
# MAGRPO's returns over a tree of turns (arXiv 2508.04652). A row without a score of its own gets
# the discounted mean; without scored rows below it stays as it is.


def returns_over_rounds(
    scores: Sequence[Score],
    *,
    rounds: Sequence[int],
    below: Sequence[Sequence[int]],
    last_tokens: Sequence[int],
    discount: float,
) -> list[Score]:
    """R of each row of a role.

    Args:
        rounds: the round of each row.
        below: for each row, indices of the next round's rows that descend from it.
        last_tokens: for each row, the index of its last trained token; if its own score is by
            token, this token gets the rewards of later rounds.
    """
    returns = list(scores)
    for row in sorted(range(len(scores)), key=lambda row: -rounds[row]):
        later = [total for child in below[row] if (total := total_of(returns[child])) is not None]
        if later and discount:
            returns[row] = _plus(returns[row], discount * fmean(later), last_tokens[row])
    return returns


def _plus(score: Score, more: float, position: int) -> Score:
    if score is None or isinstance(score, float | int):
        return (score or 0.0) + more
    return {**score, position: score.get(position, 0.0) + more}
