"""A number that two sets of weights share when, and practically only when, all their bits are
equal.

Each weight's bits are read as integers, weighted by their place, and summed modulo 2^64; names
keep weights apart, and the order in which they come does not matter. It runs where the weights
are, at memory speed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import torch
from torch import Tensor

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_MASK_64 = (1 << 64) - 1
_AT_ONCE = 1 << 22


def fingerprint(weights: Iterable[tuple[str, Tensor]]) -> int:
    """A 64-bit number of named weights."""
    total = 0
    for name, weight in weights:
        total += (zlib.crc32(name.encode()) * 2 + 1) * _of_bits(weight)
    return total & _MASK_64


def _of_bits(weight: Tensor) -> int:
    bits = weight.detach().contiguous().view(-1).view(_INTEGERS[weight.element_size()])
    total = 0
    for start in range(0, len(bits), _AT_ONCE):
        part = bits[start : start + _AT_ONCE].to(torch.int64)
        places = torch.arange(start, start + len(part), device=part.device).mul_(2).add_(1)
        total += int(part.mul_(places).sum())
    return total
