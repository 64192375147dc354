"""The seam over which new weights reach a rollout engine, and the words of its proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel


class WeightReceiver(Protocol):
    """What a channel needs of a rollout engine."""

    @property
    def version(self) -> int: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None: ...

    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]: ...

    def fingerprint(self) -> int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What showed that the engine holds the trainer's weights."""

    version: int
    difference: float
    """Greatest distance between both sides' log-probs on the probe."""
    tolerance: float
    moved: float | None
    """How far the trainer's log-probs moved since the last push; None at the first."""
    fingerprint: int | None
    """Of the weights on both sides; None where the engine cannot tell its own."""
    size_bytes: int
    seconds: float


class WeightChannel(Protocol):
    """Brings one model's weights to one engine, again and again."""

    def push(self, source: PreTrainedModel, engine: WeightReceiver, *, version: int) -> Proof:
        """Transfers all weights, then proves that they arrived; else raises `WeightsNotUpdated`."""
        ...
