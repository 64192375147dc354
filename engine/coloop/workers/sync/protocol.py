"""The seam over which weights travel: two ends, and what each end says of what it holds.

    home of the source                       home that takes them
      send ─────── WeightTransfer ───(driver)──────> receive
        └── WeightChecksum ──> driver compares <── WeightChecksum ──┘

`send` has done its part when it returns: the source may learn on while its transfer is on the way.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from coloop.workers.rollout import RolloutEngine

Weights = Iterable[tuple[str, Tensor]]  # under the names of the Hugging Face model
Opened = Generator[tuple[str, Tensor], None, None]  # the weights of a transfer as they are read


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTransfer:
    channel: str  # of `CHANNELS`: who can open it
    version: int
    place: Any  # where the weights are, in the channel's own words
    size_bytes: int
    is_part: bool = False
    """Whether only weights are in it that have changed; who takes it has the others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightChecksum:
    """What one end says of the weights that it holds or got; picklable."""

    version: int
    fingerprint: int | None
    """In the type that weights travel in; None where an engine cannot tell its own."""
    probe: tuple[tuple[int, ...], ...] = ()  # token ids of the rows that were scored, (B, T)
    scores: NDArray[np.float64] | None = None  # log-prob of each token of the probe, (B, T)
    is_half: bool = False
    """Whether the weights have 16 bits: then both ends round differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What showed that both ends hold the same weights."""

    version: int
    difference: float  # greatest distance between both ends' log-probs on the probe
    tolerance: float
    moved: float | None
    """How far the source's log-probs moved since the last transfer; None at the first."""
    fingerprint: int | None
    """Of the weights at both ends; None where the engine cannot tell its own."""


def completed(part: Weights, holder: RolloutEngine) -> Iterator[tuple[str, Tensor]]:
    """All weights of who has got a part of them: those, and the others as it holds them."""
    came = set()
    for name, weight in part:
        came.add(name)
        yield name, weight
    yield from ((name, weight) for name, weight in holder.held_weights() if name not in came)


class WeightChannel(Protocol):
    """A way for weights. Each end may be in a process of its own and has an object of its own."""

    def send(
        self,
        weights: Weights,
        *,
        version: int,
        dtype: torch.dtype | None = None,
        size_bytes: int | None = None,
    ) -> WeightTransfer:
        """Put weights on their way.

        Args:
            dtype: that they travel in; None: the one that each has.
            size_bytes: upper bound of them all; None: they are counted first, all in memory.

        Raises `StorageFull`, `WeightsNotUpdated`; nothing is left of them then.
        """

    def receive(self, transfer: WeightTransfer) -> Opened:
        """The weights of a transfer, a bucket at a time, until it is forgotten; who does not read
        to the end closes it. Raises `WeightsNotUpdated` where a part is missing or unreadable."""

    def forget(self, transfer: WeightTransfer) -> None:
        """Nobody wants the transfer any more: nothing of it is left behind."""


# Weights in portions: a transfer never holds more than one portion twice.


def in_buckets(
    weights: Iterable[tuple[str, Tensor]], bucket_bytes: int, dtype: torch.dtype | None = None
) -> Iterator[list[tuple[str, Tensor]]]:
    """The weights in order, at most so many bytes (in `dtype`) at a time, or a larger one alone."""
    bucket: list[tuple[str, Tensor]] = []
    size = 0
    for name, weight in weights:
        own = bytes_of(weight, dtype or weight.dtype)
        if bucket and size + own > bucket_bytes:
            yield bucket
            bucket, size = [], 0
        bucket.append((name, weight))
        size += own
    if bucket:
        yield bucket


def bytes_of(weight: Tensor, dtype: torch.dtype) -> int:
    return weight.numel() * dtype.itemsize
