"""The angles of rotary positions as unit complex numbers, one table for all rows.

Takes the frequencies that the Hugging Face model computed for its own variant, so every variant
whose angles do not depend on the length of the text is right by construction.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Rotary:
    """Position p turns pair i by p * frequency[i]."""

    def __init__(self, frequencies: Tensor, scale: float) -> None:
        """`frequencies` (D / 2,) float32; `scale` stretches query and key (yarn)."""
        self._frequencies = frequencies
        self._scale = scale
        self._table = self._compute(256)

    @classmethod
    def of(cls, module: Any, device: torch.device) -> Rotary:
        """The angles of a Hugging Face rotary module."""
        frequencies = module.inv_freq
        assert isinstance(frequencies, Tensor)
        return cls(
            frequencies.detach().float().to(device),
            float(getattr(module, "attention_scaling", 1.0)),
        )

    def first(self, positions: int) -> Tensor:
        """Angles of positions 0 .. n-1, (n, D / 2) complex64."""
        if positions > len(self._table):
            self._table = self._compute(max(positions, 2 * len(self._table)))
        return self._table[:positions]

    def _compute(self, positions: int) -> Tensor:
        places = torch.arange(positions, device=self._frequencies.device, dtype=torch.float32)
        angles = places[:, None] * self._frequencies[None, :]
        return torch.complex(angles.cos() * self._scale, angles.sin() * self._scale)
