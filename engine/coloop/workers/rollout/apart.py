"""Memory that goes back to the system when it is not used any more.

A process that trains keeps what it frees, as it wants it again at once (`cluster.environment`);
a large cache that sleeps while others work must not stay in its heap.
"""

from __future__ import annotations

import mmap
from math import prod

import torch
from torch import Tensor

LEAST_BYTES = 64 * 2**20
"""Less is not worth pages of its own."""


def zeros_apart(*size: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros; on a CPU, where they are many, in pages of their own that go with the tensor."""
    count = prod(size)
    if device.type != "cpu" or count * dtype.itemsize < LEAST_BYTES:
        return torch.zeros(size, device=device, dtype=dtype)
    pages = mmap.mmap(-1, count * dtype.itemsize)  # zeros, and none of them there before it is used
    return torch.frombuffer(pages, dtype=dtype).view(size)
