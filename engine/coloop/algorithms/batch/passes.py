"""Splits a batch into micro-batches of similar length, and packs sequences into rows.

Legend: ``B`` sequences, ``T`` token positions, ``R`` packed rows of ``S`` positions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from coloop.algorithms.batch.padded import Batch


def split_units(
    units: Sequence[int],
    lengths: Sequence[int],
    batch: Batch | None = None,
    *,
    rows: int | None = None,
    tokens: int | None = None,
    is_padded: bool = True,
) -> list[list[int]]:
    """Split units into micro-batches of at most `rows` units and `tokens` tokens.

    Units of similar length are together; one longer than `tokens` is alone.

    Args:
        lengths: tokens of every unit.
        batch: to share prompts: a prompt's tokens count once per micro-batch, and rows with equal
            prompts are together, without padding. None: prompts are not shared.
        is_padded: whether padding counts as tokens; without it, units are packed.
    """
    if batch is not None:
        return _split_alike(units, lengths, batch, rows, tokens)
    parts: list[list[int]] = []
    filled = 0
    for unit in sorted(units, key=lambda unit: lengths[unit]):
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
    units: Sequence[int],
    lengths: Sequence[int],
    batch: Batch,
    rows: int | None,
    tokens: int | None,
) -> list[list[int]]:
    prompts, prompt_lengths = batch.prompts.tolist(), batch.prompt_lengths.tolist()
    longest: dict[int, int] = {}
    for unit in units:
        longest[prompts[unit]] = max(longest.get(prompts[unit], 0), lengths[unit])

    def rank(unit: int) -> tuple[int, int, int]:
        return longest[prompts[unit]], prompts[unit], lengths[unit]

    parts: list[list[int]] = []
    filled, there = 0, set[int]()
    for unit in sorted(units, key=rank):
        prompt, before = prompts[unit], prompt_lengths[unit]
        own = lengths[unit] - before
        wanted = filled + own + (0 if prompt in there else before)
        is_full = not parts or (rows is not None and len(parts[-1]) >= rows)
        if is_full or (tokens is not None and wanted > tokens):
            parts.append([])
            there = set()
            wanted = own + before
        parts[-1].append(unit)
        there.add(prompt)
        filled = wanted
    return parts


def tokens_of(
    parts: Sequence[Sequence[int]],
    lengths: Sequence[int],
    batch: Batch | None = None,
    *,
    is_padded: bool = False,
) -> list[int]:
    """Tokens in each micro-batch of `parts`; other arguments as for `split_units`."""
    if batch is None:
        sizes = [[lengths[unit] for unit in part] for part in parts]
        return [len(size) * max(size) if is_padded else sum(size) for size in sizes]
    prompts, prompt_lengths = batch.prompts.tolist(), batch.prompt_lengths.tolist()
    return [
        sum(lengths[unit] - prompt_lengths[unit] for unit in part)
        + sum({prompts[unit]: prompt_lengths[unit] for unit in part}.values())
        for part in parts
    ]


def pack(batch: Batch, *, row_tokens: int) -> tuple[dict[str, Tensor], Tensor]:
    """Pack sequences into R rows of S = `row_tokens` positions, by first-fit decreasing.

    Returns the model's inputs, and for each token of the batch its flat position in the packed
    rows, (B, T) long, 0 for padding. The `position_ids` (R, S) start at 0 for each sequence, by
    which a model keeps them apart, and are 0 for padding. Raises ValueError for a sequence longer
    than a row.
    """
    lengths = batch.lengths()
    free: list[int] = []
    starts: dict[int, tuple[int, int]] = {}  # row and first position of each unit
    for unit in sorted(range(len(lengths)), key=lambda unit: -lengths[unit]):
        if lengths[unit] > row_tokens:
            raise ValueError(
                f"sequence {batch.ids[unit]!r} has {lengths[unit]} tokens, "
                f"a packed row holds {row_tokens}"
            )
        row = next((r for r, room in enumerate(free) if room >= lengths[unit]), len(free))
        if row == len(free):
            free.append(row_tokens)
        starts[unit] = (row, row_tokens - free[row])
        free[row] -= lengths[unit]
    shape = (len(free), row_tokens)
    token_ids = torch.zeros(shape, dtype=torch.long)
    position_ids = torch.zeros(shape, dtype=torch.long)
    places = torch.zeros_like(batch.token_ids)
    for unit, (row, start) in starts.items():
        end = start + lengths[unit]
        token_ids[row, start:end] = batch.token_ids[unit, : lengths[unit]]
        position_ids[row, start:end] = torch.arange(lengths[unit])
        places[unit, : lengths[unit]] = torch.arange(start, end) + row * row_tokens
    return {"input_ids": token_ids, "position_ids": position_ids}, places
