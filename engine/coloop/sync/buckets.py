"""Weights in portions: a transfer never holds more than one portion twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch import Tensor

BUCKET_BYTES = 64 * 2**20


def in_buckets(
    weights: Iterable[tuple[str, Tensor]], bucket_bytes: int = BUCKET_BYTES
) -> Iterator[list[tuple[str, Tensor]]]:
    """The weights in order, at most so many bytes at a time; a larger weight comes alone."""
    bucket: list[tuple[str, Tensor]] = []
    size = 0
    for name, weight in weights:
        if bucket and size + weight.nbytes > bucket_bytes:
            yield bucket
            bucket, size = [], 0
        bucket.append((name, weight))
        size += weight.nbytes
    if bucket:
        yield bucket
