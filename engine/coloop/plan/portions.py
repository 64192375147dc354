"""In what portions weights go through memory: gathered from ranks, handed to engines, written to
disk. Nobody holds a second copy of a model, only portions of it."""

from __future__ import annotations

MIB = 2**20
CPU_BYTES = 64 * MIB
"""On a CPU, and of files: larger portions go no faster."""
GPU_BYTES = 1024 * MIB
"""On a GPU, where each portion costs a few milliseconds of agreement."""


def portion_bytes(device: str) -> int:
    """Most bytes of a portion where weights lie; a larger weight goes alone.

    Args:
        device: its type, such as `cuda`.
    """
    return GPU_BYTES if device == "cuda" else CPU_BYTES


def gathering_bytes(largest: float, total: float, device: str, ranks: int) -> float:
    """Most memory that a rank needs beside its parts while weights are put together, portion by
    portion: what it gives, what all gave, and one weight as it is handed on.

    Args:
        largest: bytes of the largest weight, in the type in which they are gathered.
        total: of all of them.
    """
    portion = min(max(float(portion_bytes(device)), largest), total)
    return portion + portion / ranks + largest
