"""Checksums of the weights at both ends of a transfer: a fingerprint of their bits, and log-probs
of a fixed probe. Shapes: B rows, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.errors import WeightsNotUpdated
from coloop.workers.fingerprint import fingerprint
from coloop.workers.sync.protocol import Proof, WeightChecksum, Weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from coloop.workers.rollout import RolloutEngine

Probe = tuple[tuple[int, ...], ...]
Part = Literal["all", "bits", "scores", "nothing"]  # of a checksum, that a process computes

ROWS, TOKENS = 4, 16
ROWS_BESIDE_BITS = 1
"""If bits are compared, log-probs only show that the engine computes with these weights."""
WHOLE = (torch.float32, torch.float64)


def probe_of(model: PreTrainedModel, *, has_bits: bool = False) -> Probe:
    """Token ids (B, T) by vocabulary size alone; fewer rows if engines report fingerprints
    (`has_bits`)."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    tokens = torch.randint(vocabulary, (ROWS, TOKENS), generator=generator)
    rows = ROWS_BESIDE_BITS if has_bits else ROWS
    return tuple(tuple(row) for row in tokens[:rows].tolist())


def checksum_of_model(
    model: PreTrainedModel,
    version: int,
    *,
    dtype: torch.dtype,
    autocast: torch.dtype | None = None,
    has_bits: bool = False,
    part: Part = "all",
) -> WeightChecksum:
    """Checksum of the sender's weights.

    Args:
        dtype: of the transfer.
        autocast: the type that the model computes in; None: that of its weights.
        has_bits: the receiving engine reports a fingerprint.
        part: what this process computes, as processes with the same weights share the work.
    """
    probe = probe_of(model, has_bits=has_bits)
    has_fingerprint, has_scores = part in ("all", "bits"), part in ("all", "scores")
    return WeightChecksum(
        version=version,
        fingerprint=fingerprint(model.named_parameters(), dtype) if has_fingerprint else None,
        probe=probe,
        scores=score_source(model, probe, autocast=autocast).numpy() if has_scores else None,
        is_half=dtype not in WHOLE,
    )


def checksum_of_engine(
    engine: RolloutEngine, probe: Probe, *, part: Part = "all"
) -> WeightChecksum:
    """Checksum of an engine's weights. `part` is `bits`: no log-probs if it has a fingerprint."""
    bits = engine.fingerprint()
    scores: NDArray[np.float64] | None = None
    if part != "bits" or bits is None:
        scores = np.array(engine.score(probe), dtype=np.float64)
    return WeightChecksum(
        version=engine.version,
        fingerprint=bits,
        probe=probe,
        scores=scores,
        is_half=engine.dtype not in WHOLE,
    )


class Counted:
    """An iterator over weights that adds up their fingerprint, which is complete at its end."""

    def __init__(
        self, weights: Weights, dtype: torch.dtype | None = None, *, is_wanted: bool = True
    ) -> None:
        """`dtype`: of the fingerprint. `is_wanted`: whether there is one; else it is None."""
        self._weights, self._dtype = iter(weights), dtype
        self.fingerprint: int | None = 0 if is_wanted else None

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        return self

    def __next__(self) -> tuple[str, Tensor]:
        name, weight = next(self._weights)
        if self.fingerprint is not None:
            addend = fingerprint([(name, weight)], self._dtype)
            self.fingerprint = (self.fingerprint + addend) % 2**64
        return name, weight

    def finish(self) -> None:
        """Read the remaining weights: all ranks must gather them to the end."""
        for _ in self._weights:
            pass


def score_source(
    model: PreTrainedModel,
    sequences: Sequence[Sequence[int]],
    *,
    autocast: torch.dtype | None = None,
) -> Tensor:
    """Log-prob of each token by the model's own forward, without dropout; (B, T) float64."""
    tokens = torch.tensor(sequences, device=model.device)
    was_training = model.training
    if any(module.training for module in model.modules()):  # setting it is slow
        model.train(False)
    try:
        casting = torch.autocast(model.device.type, dtype=autocast, enabled=autocast is not None)
        with torch.inference_mode(), casting:
            logits = model(input_ids=tokens, use_cache=False).logits[:, :-1]
            log_p = torch.log_softmax(logits.double(), dim=-1)
            scores = log_p.gather(2, tokens[:, 1:, None]).squeeze(2)
    finally:
        if was_training:
            model.train()
    return torch.nn.functional.pad(scores, (1, 0)).cpu()


# A run whose weights never reach the engine looks healthy for a long time, so each transfer is
# checked by a fixed probe, and by fingerprints if the engine reports them. It fails if
# - the engine has another version than was sent,
# - the sender's log-probs moved since the last transfer and the engine's are the same bit for bit,
# - the log-probs of both ends differ by more than the tolerance, or one is not finite,
# - the fingerprints differ.

TOLERANCE = 1e-3
HALF_TOLERANCE = 2.0**-5
"""As a share of the greatest log-prob, for 16-bit weights: eight times the spacing of bfloat16."""
LEAST_SCALE = 8.0  # least scale of log-probs, about that of an untrained model
ROUNDING = 1e-5  # smaller moves of the sender's log-probs may be rounding
SPACINGS = 8
"""The half tolerance in spacings of the type: a move below one may not show in the engine."""


class ChecksumVerifier:
    """Compares the checksums of both ends of an engine's transfers, and remembers the last ones."""

    def __init__(self) -> None:
        self._last: tuple[WeightChecksum, WeightChecksum] | None = None

    def check(self, sent: WeightChecksum, received: WeightChecksum) -> Proof:
        if received.version != sent.version:
            raise WeightsNotUpdated(
                f"version {sent.version} was sent, but the rollout engine reports "
                f"{received.version}"
            )
        tolerance = HALF_TOLERANCE * _scale(sent.scores) if received.is_half else TOLERANCE
        is_coarse = received.is_half and received.fingerprint is not None
        moved = self._check_moved(sent, received, tolerance / SPACINGS if is_coarse else ROUNDING)
        difference = _distance(sent.scores, received.scores)
        if not difference <= tolerance:
            raise WeightsNotUpdated(
                f"after the sync to version {sent.version} the rollout engine's log-probs differ"
                f" from the trainer's by up to {difference:.3g} on the probe; at most"
                f" {tolerance:.3g} is expected"
            )
        if received.fingerprint is not None:
            check_bits(sent, received, "the rollout engine's weights")
        self._last = (sent, received)
        return Proof(
            version=sent.version,
            difference=difference,
            tolerance=tolerance,
            moved=moved,
            fingerprint=received.fingerprint,
        )

    def _check_moved(
        self, sent: WeightChecksum, received: WeightChecksum, rounding: float
    ) -> float | None:
        if self._last is None:
            return None
        sent_before, received_before = self._last
        moved = _distance(sent.scores, sent_before.scores)
        assert received.scores is not None
        assert received_before.scores is not None
        if moved > rounding and np.array_equal(received.scores, received_before.scores):
            raise WeightsNotUpdated(
                f"the trainer's log-probs moved by {moved:.3g} on the probe since version "
                f"{sent_before.version}, the rollout engine's by 0: it still has the weights of "
                "that version"
            )
        return moved


def check_bits(sent: WeightChecksum, received: WeightChecksum, whose: str) -> None:
    if sent.fingerprint != received.fingerprint:
        raise WeightsNotUpdated(
            f"after the transfer of version {sent.version} {whose} differ from those sent: "
            f"fingerprint {received.fingerprint or 0:016x}, expected {sent.fingerprint or 0:016x}"
        )


def _scale(scores: NDArray[np.float64] | None) -> float:
    assert scores is not None
    greatest = float(np.abs(scores).max())
    return max(LEAST_SCALE, greatest) if np.isfinite(greatest) else LEAST_SCALE


def _distance(left: NDArray[np.float64] | None, right: NDArray[np.float64] | None) -> float:
    assert left is not None
    assert right is not None
    return float(np.abs(left - right).max())
