"""Proof of update: after a transfer both ends must agree, and the engine must have moved.

A run whose weights never reach the engine looks healthy for a long time, because rewards still
rise and fall. So after each transfer a fixed probe is scored at both ends, and the bits of both are
compared where the engine can tell them; the ends give checksums, the driver compares. A transfer
fails when

- the engine carries another version than was sent,
- the source's log-probs moved since the last transfer and the engine's did not by a single bit,
- both ends' log-probs differ by more than the tolerance, or one is not finite,
- the fingerprints differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coloop.errors import WeightsNotUpdated
from coloop.workers.sync.protocol import Proof, WeightChecksum

TOLERANCE = 1e-3
HALF_TOLERANCE = 2.0**-5
"""Of the greatest log-prob, where weights have 16 bits and both ends round differently: eight times
the spacing of bfloat16."""
LEAST_SCALE = 8.0
"""Log-probs of a vocabulary are about as large before anything is learned; they grow with how sure
a model is."""
ROUNDING = 1e-5
"""A move of the source's log-probs that is surely no rounding."""
SPACINGS = 8
"""Of the engine's type in the tolerance where that has 16 bits; what moves by less may move nothing
there. It counts where the bits are compared as well, which show the smallest move."""


class ChecksumVerifier:
    """Compares the ends of one engine's transfers, and knows what they said last."""

    def __init__(self) -> None:
        self._last: tuple[WeightChecksum, WeightChecksum] | None = None

    def check(self, sent: WeightChecksum, received: WeightChecksum) -> Proof:
        """Raises `WeightsNotUpdated` where the ends do not agree."""
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
    """Raises `WeightsNotUpdated` where the bits that came are not those that were sent."""
    if sent.fingerprint != received.fingerprint:
        raise WeightsNotUpdated(
            f"after the transfer of version {sent.version} {whose} differ from those sent: "
            f"fingerprint {received.fingerprint or 0:016x}, expected {sent.fingerprint or 0:016x}"
        )


def _scale(scores: NDArray[np.float64] | None) -> float:
    """How large log-probs are, by which their rounding counts."""
    assert scores is not None
    greatest = float(np.abs(scores).max())
    return max(LEAST_SCALE, greatest) if np.isfinite(greatest) else LEAST_SCALE


def _distance(left: NDArray[np.float64] | None, right: NDArray[np.float64] | None) -> float:
    assert left is not None
    assert right is not None
    return float(np.abs(left - right).max())
