"""Weights in portions: a transfer never holds more than one portion twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor


def in_buckets(
    weights: Iterable[tuple[str, Tensor]],
    bucket_bytes: int,
    dtype: torch.dtype | None = None,
) -> Iterator[list[tuple[str, Tensor]]]:
    """The weights in order, at most so many bytes at a time; a larger weight comes alone.

    Args:
        dtype: that they are counted in; None: the one that each has.
    """
    bucket: list[tuple[str, Tensor]] = []
    size = 0
    for name, weight in weights:
        own = bytes_of(weight, dtype or weight.dtype)
        if bucket and size + own > bucket_bytes:
            yield bucket
            bucket, size = [], 0
        bucket.append((name, weight))
        size += own
    if bucket:
        yield bucket


def bytes_of(weight: Tensor, dtype: torch.dtype) -> int:
    """Of a weight, in a type."""
    return weight.numel() * dtype.itemsize
