"""Random numbers by counter: number t of seed s is a pure function of (s, t).

Nothing is carried from draw to draw, so a row's numbers depend neither on the other rows of a
batch nor on when the row came in, and a whole block of them is computed at once. The function is
the finaliser of SplitMix64 (Steele, Lea, Flood 2014), applied once to the seed and once to seed
and counter.

N rows, T draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_MASK_64 = (1 << 64) - 1


def _signed(value: int) -> int:
    """The int64 with the low 64 bits of a value."""
    value &= _MASK_64
    return value - (1 << 64) if value >= 1 << 63 else value


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)
_MANTISSA_BITS = 24


def _shift_right(bits: Tensor, by: int) -> Tensor:
    """Logical shift; the shift of int64 would drag the sign along."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def _mix(bits: Tensor) -> Tensor:
    bits = (bits ^ _shift_right(bits, 30)) * _FIRST
    bits = (bits ^ _shift_right(bits, 27)) * _SECOND
    return bits ^ _shift_right(bits, 31)


def uniforms(
    seeds: Sequence[int],
    draws: int,
    device: torch.device | str = "cpu",
    *,
    starts: Sequence[int] | None = None,
) -> Tensor:
    """Draws s .. s+T-1 of each seed, s from `starts` or 0: float32 in [0, 1), in steps of 2^-24.
    (N, T)"""
    streams = torch.tensor([_signed(seed) for seed in seeds], dtype=torch.int64, device=device)
    places = torch.arange(1, draws + 1, dtype=torch.int64, device=device)[None, :]
    if starts is not None and any(starts):
        places = places + torch.tensor(starts, dtype=torch.int64, device=device)[:, None]
    bits = _mix(_mix(streams + _GOLDEN)[:, None] + places * _GOLDEN)  # (N, T)
    return _shift_right(bits, 64 - _MANTISSA_BITS).to(torch.float32) * 2.0**-_MANTISSA_BITS
