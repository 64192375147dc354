"""Interface of weight transfers: a channel with two ends, and a checksum from each of them.

    sending process                             receiving process
      send ─────── WeightTransfer ───(driver)──────> receive
        └── WeightChecksum ──> driver compares <── WeightChecksum ──┘

When `send` returns, the sender may learn again, also before its transfer is received.
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
    channel: str  # name in `CHANNELS`
    version: int
    place: Any  # where the weights are; its type depends on the channel
    size_bytes: int
    is_part: bool = False
    """Whether it has only weights that have changed; the receiver keeps the others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightChecksum:
    """Fingerprint and probe log-probs of the weights at one end; picklable."""

    version: int
    fingerprint: int | None
    """Of the weights in the type of the transfer; None: this end does not compute it."""
    probe: tuple[tuple[int, ...], ...] = ()  # token ids of the rows that were scored, (B, T)
    scores: NDArray[np.float64] | None = None  # log-prob of each token of the probe, (B, T)
    is_half: bool = False
    """Whether the weights have 16 bits, so that both ends round differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Result of the check that both ends hold the same weights."""

    version: int
    difference: float  # greatest distance between both ends' log-probs on the probe
    tolerance: float
    moved: float | None
    """How far the source's log-probs moved since the last transfer; None at the first."""
    fingerprint: int | None
    """Of the weights at both ends; None: the engine does not report it."""


def completed(part: Weights, engine: RolloutEngine) -> Iterator[tuple[str, Tensor]]:
    """All weights of an engine that received a part: the part, then the others as it has them."""
    received = set()
    for name, weight in part:
        received.add(name)
        yield name, weight
    yield from ((name, weight) for name, weight in engine.held_weights() if name not in received)


class WeightChannel(Protocol):
    """A way to transfer weights. Each end has its own object and may be a separate process."""

    def send(
        self,
        weights: Weights,
        *,
        version: int,
        dtype: torch.dtype | None = None,
        size_bytes: int | None = None,
    ) -> WeightTransfer:
        """Start a transfer.

        Args:
            dtype: that weights are converted to; None: each keeps its own.
            size_bytes: upper bound of their total size; None: all are held in memory to add it up.

        Raises `StorageFull` or `WeightsNotUpdated`; then nothing of the transfer is left.
        """

    def receive(self, transfer: WeightTransfer) -> Opened:
        """The weights of a transfer, a bucket at a time; a caller that stops before the end closes
        the generator. Raises `WeightsNotUpdated` if a part is missing or unreadable."""

    def forget(self, transfer: WeightTransfer) -> None:
        """Remove what is left of a transfer that is no longer needed."""


# Weights in buckets: a transfer has a second copy of at most one bucket.


def in_buckets(
    weights: Iterable[tuple[str, Tensor]], bucket_bytes: int, dtype: torch.dtype | None = None
) -> Iterator[list[tuple[str, Tensor]]]:
    """The weights in order, in lists of at most `bucket_bytes` in `dtype`; a larger one alone."""
    bucket: list[tuple[str, Tensor]] = []
    size = 0
    for name, weight in weights:
        weight_bytes = bytes_of(weight, dtype or weight.dtype)
        if bucket and size + weight_bytes > bucket_bytes:
            yield bucket
            bucket, size = [], 0
        bucket.append((name, weight))
        size += weight_bytes
    if bucket:
        yield bucket


def bytes_of(weight: Tensor, dtype: torch.dtype) -> int:
    return weight.numel() * dtype.itemsize
