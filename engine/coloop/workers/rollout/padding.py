"""Ragged sequences as rectangles: padding, and batches of similar length.

B sequences, T longest length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


def pad_right(
    sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Token ids with zeros behind each end (B, T), and lengths (B,)."""
    lengths = [len(sequence) for sequence in sequences]
    tokens = torch.zeros(len(lengths), max(lengths, default=0), dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, : lengths[row]] = torch.as_tensor(sequence, dtype=torch.int64)
    return tokens.to(device), torch.tensor(lengths, device=device)


def pad_left(
    sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Token ids with zeros before each start (B, T), and which of them are real (B, T) int64."""
    longest = max(map(len, sequences))
    tokens = torch.zeros(len(sequences), longest, dtype=torch.int64)
    is_real = torch.zeros(len(sequences), longest, dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, longest - len(sequence) :] = torch.as_tensor(sequence, dtype=torch.int64)
        is_real[row, longest - len(sequence) :] = 1
    return tokens.to(device), is_real.to(device)


def similar_lengths(
    sequences: Sequence[Sequence[int]], tokens: int
) -> Iterator[tuple[list[int], list[Sequence[int]]]]:
    """Batches of at most so many tokens, padding included, longest first: places and sequences."""
    order = sorted(range(len(sequences)), key=lambda place: -len(sequences[place]))
    while order:
        longest = max(len(sequences[order[0]]), 1)
        places, order = order[: max(tokens // longest, 1)], order[max(tokens // longest, 1) :]
        yield places, [sequences[place] for place in places]
