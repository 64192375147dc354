"""Bucket sizes for moving weights: gathering them from ranks, sending them to engines, writing
them to disk. No process holds a second full copy of a model, only buckets of it."""

from __future__ import annotations

MIB = 2**20
CPU_BYTES = 64 * MIB
"""On CPUs and for files: larger buckets are no faster."""
GPU_BYTES = 1024 * MIB
"""On GPUs, where each bucket adds a few milliseconds of synchronization."""


def weight_bucket_bytes(device: str) -> int:
    """Maximum bucket size for weights on a device type such as `cuda`; a larger weight gets a
    bucket of its own."""
    return GPU_BYTES if device == "cuda" else CPU_BYTES


def gather_buffer_bytes(largest: float, total: float, device: str, ranks: int) -> float:
    """Peak memory that a rank needs beyond its shards while full weights are gathered in buckets:
    its own contribution, the gathered bucket, and one weight that is being passed on.

    Args:
        largest: bytes of the largest weight, in the dtype in which they are gathered.
        total: bytes of all weights.
    """
    portion = min(max(float(weight_bucket_bytes(device)), largest), total)
    return portion + portion / ranks + largest
