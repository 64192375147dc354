"""Which sequences pass through a model together: micro-batches of like length, and rows that hold
several.

Legend: ``B`` sequences, ``T`` token positions, ``R`` packed rows of ``S`` positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from coloop.algorithms.batch.padded import Batch

# Which texts of a batch begin alike, by token ids before the first token that any of them trains.

NO_TOKEN = -1


@dataclass(frozen=True, slots=True)
class Prompts:
    numbers: list[int]  # units with one number begin alike
    lengths: list[int]  # tokens of it

    def of(self, units: Sequence[int]) -> "Prompts":
        """Those of some units, in their order."""
        return Prompts([self.numbers[one] for one in units], [self.lengths[one] for one in units])

    @property
    def are_shared(self) -> bool:
        """Whether any two units begin alike."""
        return len(set(self.numbers)) < len(self.numbers)

    def read(self, units: Sequence[int], lengths: Sequence[int]) -> int:
        """Tokens of these units, of these lengths, where each prompt is read once."""
        own = sum(lengths[unit] - self.lengths[unit] for unit in units)
        once = {self.numbers[unit]: self.lengths[unit] for unit in units}
        return own + sum(once.values())


def prompts_of(batch: Batch) -> Prompts:
    """What stands before the first trained token of each row; all of a row that trains none."""
    ids, mask = batch.token_ids.cpu().numpy(), batch.loss_mask.cpu().numpy()
    lengths = np.where(mask.any(1), mask.argmax(1), batch.lengths())
    begun = np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, NO_TOKEN)
    whole, size = begun.tobytes(), begun.itemsize * begun.shape[1]
    known: dict[bytes, int] = {}
    numbers = [
        known.setdefault(whole[start : start + size], len(known))
        for start in range(0, len(whole), size)
    ]
    return Prompts(numbers, lengths.tolist())


def split_units(
    lengths: Sequence[int],
    prompts: Prompts | None = None,
    *,
    rows: int | None = None,
    tokens: int | None = None,
    is_padded: bool = True,
) -> list[list[int]]:
    """Unit numbers in micro-batches of at most `rows` units and `tokens` tokens.

    Units of like length stand together; one longer than `tokens` is alone.

    Args:
        prompts: read once in each micro-batch: those alike stand together, unpadded.
        is_padded: padding counts as tokens; else units are packed.
    """
    if prompts is not None:
        return _split_alike(lengths, prompts, rows, tokens)
    order = sorted(range(len(lengths)), key=lambda unit: lengths[unit])
    parts: list[list[int]] = []
    filled = 0
    for unit in order:
        size = lengths[unit]
        wanted = (len(parts[-1]) + 1) * size if parts and is_padded else filled + size
        is_full = not parts or (rows is not None and len(parts[-1]) >= rows)
        if is_full or (tokens is not None and wanted > tokens):
            parts.append([])
            filled = 0
        parts[-1].append(unit)
        filled += size
    return parts


def _split_alike(
    lengths: Sequence[int], prompts: Prompts, rows: int | None, tokens: int | None
) -> list[list[int]]:
    longest: dict[int, int] = {}
    for number, length in zip(prompts.numbers, lengths, strict=True):
        longest[number] = max(longest.get(number, 0), length)

    def place(unit: int) -> tuple[int, int, int]:
        number = prompts.numbers[unit]
        return longest[number], number, lengths[unit]

    parts: list[list[int]] = []
    filled, there = 0, set[int]()
    for unit in sorted(range(len(lengths)), key=place):
        number, before = prompts.numbers[unit], prompts.lengths[unit]
        own = lengths[unit] - before
        wanted = filled + own + (0 if number in there else before)
        is_full = not parts or (rows is not None and len(parts[-1]) >= rows)
        if is_full or (tokens is not None and wanted > tokens):
            parts.append([])
            there = set()
            wanted = own + before
        parts[-1].append(unit)
        there.add(number)
        filled = wanted
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Several sequences in each row; positions that begin anew tell a model to keep them apart."""

    token_ids: Tensor  # (R, S) long
    position_ids: Tensor
    """(R, S) long; starts at 0 in every sequence and at every place of the padding."""
    places: Tensor
    """(B, T) long; flat position of each token in R x S, 0 where the batch is padded."""


def pack(batch: Batch, *, row_tokens: int) -> Packed:
    """Put sequences into rows of `row_tokens` positions, longest first into the first that fits."""
    lengths = batch.lengths()
    free: list[int] = []
    place: dict[int, tuple[int, int]] = {}
    for unit in sorted(range(len(lengths)), key=lambda unit: -lengths[unit]):
        if lengths[unit] > row_tokens:
            raise ValueError(
                f"sequence {batch.ids[unit]!r} has {lengths[unit]} tokens, "
                f"a packed row holds {row_tokens}"
            )
        row = next((r for r, room in enumerate(free) if room >= lengths[unit]), len(free))
        if row == len(free):
            free.append(row_tokens)
        place[unit] = (row, row_tokens - free[row])
        free[row] -= lengths[unit]
    shape = (len(free), row_tokens)
    token_ids = torch.zeros(shape, dtype=torch.long)
    position_ids = torch.zeros(shape, dtype=torch.long)
    places = torch.zeros_like(batch.token_ids)
    for unit, (row, start) in place.items():
        end = start + lengths[unit]
        token_ids[row, start:end] = batch.token_ids[unit, : lengths[unit]]
        position_ids[row, start:end] = torch.arange(lengths[unit])
        places[unit, : lengths[unit]] = torch.arange(start, end) + row * row_tokens
    return Packed(token_ids=token_ids, position_ids=position_ids, places=places)
