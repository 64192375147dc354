"""Proof of update: after a transfer both sides must agree, and the engine must have moved.

A run whose weights never reach the engine looks healthy for a long time, because rewards still
rise and fall. So after each transfer a fixed probe is scored by the trainer's model and by the
engine, and the bits of both are compared where the engine can tell them. The push fails when

- the engine carries another version than was pushed,
- the trainer's log-probs moved since the last push and the engine's did not by a single bit,
- both sides' log-probs differ by more than the tolerance, or one is not finite,
- the fingerprints differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from coloop.errors import WeightsNotUpdated
from coloop.models import fingerprint
from coloop.sync.protocol import WeightReceiver

ROWS, TOKENS = 4, 16
TOLERANCES = {torch.float32: 1e-3, torch.float64: 1e-3}
HALF_TOLERANCE = 0.25
"""Where weights have 16 bits, both sides round differently."""
ROUNDING = 1e-5
"""A move of the trainer's log-probs that is surely no rounding."""


class Probe:
    """A fixed batch of tokens and what both sides said of it last."""

    def __init__(self, autocast: torch.dtype | None = None) -> None:
        """
        Args:
            autocast: the type that the source computes in where it is not that of its weights.
        """
        self._autocast = autocast
        self._tokens: list[list[int]] | None = None
        self._last: tuple[int, Tensor, Tensor] | None = None  # version, trainer's, engine's scores
        self.tolerance = 0.0
        self.moved: float | None = None
        self.fingerprint: int | None = None

    def check(self, source: PreTrainedModel, engine: WeightReceiver, version: int) -> float:
        """The difference between both sides; raises `WeightsNotUpdated` where they do not agree."""
        tokens = self._tokens = self._tokens or _draw_tokens(source)
        trainer = score_source(source, tokens, autocast=self._autocast)
        written = torch.tensor(engine.score(tokens), dtype=torch.float64)
        if engine.version != version:
            raise WeightsNotUpdated(
                f"version {version} was pushed, the rollout engine says {engine.version}"
            )
        self._check_moved(trainer, written)
        self.tolerance = TOLERANCES.get(engine.dtype, HALF_TOLERANCE)
        difference = float((trainer - written).abs().max())
        if not difference <= self.tolerance:
            raise WeightsNotUpdated(
                f"after the sync to version {version} the rollout engine's log-probs differ from"
                f" the trainer's by up to {difference:.3g} on the probe; at most"
                f" {self.tolerance:.3g} is expected"
            )
        self._check_fingerprints(source, engine, version)
        self._last = (version, trainer, written)
        return difference

    def _check_moved(self, trainer: Tensor, written: Tensor) -> None:
        self.moved = None
        if self._last is None:
            return
        version, trainer_before, written_before = self._last
        self.moved = float((trainer - trainer_before).abs().max())
        if self.moved > ROUNDING and torch.equal(written, written_before):
            raise WeightsNotUpdated(
                f"the trainer's log-probs moved by {self.moved:.3g} on the probe since version"
                f" {version}, the rollout engine's by 0: it still holds the weights of that version"
            )

    def _check_fingerprints(
        self, source: PreTrainedModel, engine: WeightReceiver, version: int
    ) -> None:
        self.fingerprint = engine.fingerprint()
        if self.fingerprint is None:
            return
        own = fingerprint(
            (name, weight.detach().to(engine.dtype)) for name, weight in source.named_parameters()
        )
        if own != self.fingerprint:
            raise WeightsNotUpdated(
                f"after the sync to version {version} the rollout engine's weights are not the"
                f" trainer's: fingerprint {self.fingerprint:016x}, {own:016x} is expected"
            )


def score_source(
    model: PreTrainedModel,
    sequences: Sequence[Sequence[int]],
    *,
    autocast: torch.dtype | None = None,
) -> Tensor:
    """Log-prob of every token by the trainer's own forward, without dropout. (B, T) float64"""
    tokens = torch.tensor(sequences, device=model.device)
    was_training = model.training
    model.train(False)
    try:
        casting = torch.autocast(model.device.type, dtype=autocast, enabled=autocast is not None)
        with torch.inference_mode(), casting:
            logits = model(input_ids=tokens, use_cache=False).logits[:, :-1]
            log_p = torch.log_softmax(logits.double(), dim=-1)
            scores = log_p.gather(2, tokens[:, 1:, None]).squeeze(2)
    finally:
        model.train(was_training)
    return torch.nn.functional.pad(scores, (1, 0)).cpu()


def _draw_tokens(source: PreTrainedModel) -> list[list[int]]:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(source.config.vocab_size, (ROWS, TOKENS), generator=generator)
    return [row.tolist() for row in tokens]
