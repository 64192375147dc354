"""What each end of a channel says of its weights: the bits as a number, and the log-probs of a
fixed probe.

B rows, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.workers.fingerprint import fingerprint
from coloop.workers.sync.protocol import WeightChecksum, WeightReceiver, Weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Probe = tuple[tuple[int, ...], ...]
Part = Literal["all", "bits", "scores", "nothing"]
"""Of what an end says."""

ROWS, TOKENS = 4, 16
ROWS_BESIDE_BITS = 1
"""Where the bits of both ends are compared as well: log-probs then show that an engine computes
with what it holds, and each of them reads every weight but those of other tokens."""
WHOLE = (torch.float32, torch.float64)


def probe_of(model: PreTrainedModel, *, has_bits: bool = False) -> Probe:
    """Token ids that are the same for all models of one vocabulary, (B, T).

    Args:
        has_bits: the engine that is to score them tells its bits.
    """
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
    """What a source says of its weights.

    Args:
        dtype: that they travel in.
        autocast: the type that the model computes in where it is not that of its weights.
        has_bits: the engine that gets them tells its bits.
        part: of it, where processes that hold the same weights say it together.
    """
    probe = probe_of(model, has_bits=has_bits)
    is_counted, is_scored = part in ("all", "bits"), part in ("all", "scores")
    return WeightChecksum(
        version=version,
        fingerprint=fingerprint(model.named_parameters(), dtype) if is_counted else None,
        probe=probe,
        scores=score_source(model, probe, autocast=autocast).numpy() if is_scored else None,
        is_half=dtype not in WHOLE,
    )


def checksum_of_engine(
    engine: WeightReceiver, probe: Probe, *, part: Part = "all"
) -> WeightChecksum:
    """What a rollout engine says of the weights that it holds.

    Args:
        part: `bits`: no more than these of an engine that tells them.
    """
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
    """Weights that are counted as they pass, once: their fingerprint, when all have come."""

    def __init__(
        self, weights: Weights, dtype: torch.dtype | None = None, *, is_wanted: bool = True
    ) -> None:
        """
        Args:
            dtype: that they are counted in; None: as they are.
            is_wanted: somebody asks for the fingerprint.
        """
        self._weights, self._dtype = iter(weights), dtype
        self.fingerprint: int | None = 0 if is_wanted else None

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        return self

    def __next__(self) -> tuple[str, Tensor]:
        name, weight = next(self._weights)
        if self.fingerprint is not None:
            own = fingerprint([(name, weight)], self._dtype)
            self.fingerprint = (self.fingerprint + own) % 2**64
        return name, weight

    def read(self) -> None:
        """Count all of them."""
        for _ in self:
            pass

    def finish(self) -> None:
        """Read what nobody has read: ranks that gather weights do so to the end."""
        for _ in self._weights:
            pass


def score_source(
    model: PreTrainedModel,
    sequences: Sequence[Sequence[int]],
    *,
    autocast: torch.dtype | None = None,
) -> Tensor:
    """Log-prob of every token by the model's own forward, without dropout. (B, T) float64"""
    tokens = torch.tensor(sequences, device=model.device)
    was_training = model.training
    if any(module.training for module in model.modules()):  # it takes long to tell them all
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
