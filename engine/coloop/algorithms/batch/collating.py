"""Collates sequences and pairs into padded tensors.

Legend: ``B`` sequences, ``T`` token positions, ``P`` pairs.
"""

from collections.abc import Collection
from collections.abc import Sequence as Many
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.algorithms.batch.padded import Batch, PairBatch, TeacherRows
from coloop.algorithms.batch.sequences import TOKEN_FIELDS, Pair, Sequence, Unit
from coloop.data.distributions import Teacher

_BY_TOKEN = ("loss_mask", *TOKEN_FIELDS)
NO_TOKEN = -1
TEACHERS = "teachers"
"""Name by which a recipe reads the teachers of rows."""


def collate(sequences: Many[Sequence], *, reads: Collection[str] | None = None) -> Batch:
    """Sequences as one batch, padded on the right. `reads`: names of the numbers to include; None:
    all. Raises ValueError for an invalid sequence, or a number that only some rows have."""
    for sequence in sequences:
        _check_sequence(sequence)
    sizes = [len(sequence.token_ids) for sequence in sequences]
    width = max(sizes, default=0)
    lengths = torch.tensor(sizes, dtype=torch.long)
    masks = [sequence.loss_mask for sequence in sequences]
    loss_mask = padded(masks, sizes, width, False, torch.bool)
    fields = [name for name in TOKEN_FIELDS if reads is None or name in reads]
    own = {name: [getattr(row, name) for row in sequences] for name in fields}
    by_token = {
        name: _token_numbers(values, sizes, width, loss_mask)
        for name, values in own.items()
        if _is_given(sequences, name, values)
    }
    token_ids = padded([row.token_ids for row in sequences], sizes, width, 0, torch.long)
    prompts, prompt_lengths = _prompts_of(token_ids, loss_mask, lengths)
    names = [name for name in _names(sequences) if reads is None or name in reads]
    named = {name: [row.numbers.get(name) for row in sequences] for name in names}
    return Batch(
        ids=tuple(sequence.id for sequence in sequences),
        groups=tuple(sequence.group for sequence in sequences),
        token_ids=token_ids,
        attention_mask=torch.arange(width)[None, :] < lengths[:, None],
        loss_mask=loss_mask,
        row_weights=torch.tensor([sequence.weight for sequence in sequences]),
        row_counts=torch.tensor([sequence.count for sequence in sequences]),
        prompts=prompts,
        prompt_lengths=prompt_lengths,
        numbers={
            name: _row_or_token_numbers(values, sizes, width, loss_mask)
            for name, values in named.items()
            if _is_given(sequences, name, values)
        },
        teachers=_teachers(sequences) if reads is not None and TEACHERS in reads else (),
        choices=_choices(sequences),
        **by_token,
    )


def collate_pairs(pairs: Many[Pair]) -> PairBatch:
    """Pairs as one batch; both sides are padded to the longest side of all."""
    sides = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
    named = {name: [pair.numbers.get(name) for pair in pairs] for name in _names(pairs)}
    extra = [text for pair in pairs for text in pair.extra]
    return PairBatch(
        sides=collate(sides),
        probability=torch.tensor([pair.probability for pair in pairs]),
        margin=torch.tensor([pair.margin for pair in pairs]),
        row_weights=torch.tensor([pair.weight for pair in pairs]),
        row_counts=torch.tensor([pair.count for pair in pairs]),
        numbers={
            name: torch.tensor(values)
            for name, values in named.items()
            if _is_given(pairs, name, values)
        },
        extra=collate(extra) if extra else None,
    )


def _teachers(sequences: Many[Sequence]) -> tuple[TeacherRows, ...]:
    """By teacher what it says of each row. Raises ValueError where it says it of other tokens."""
    names = dict.fromkeys(teacher.node for row in sequences for teacher in row.teachers)
    rows_of = [{teacher.node: teacher for teacher in row.teachers} for row in sequences]
    for sequence in sequences:
        for teacher in sequence.teachers:
            _check_teacher(sequence, teacher)
    return tuple(_teacher_rows(name, [known.get(name) for known in rows_of]) for name in names)


def _teacher_rows(name: str, rows: Many[Teacher | None]) -> TeacherRows:
    words = [None if row is None else row.words for row in rows]
    ids = [None if own is None else own.ids for own in words]
    return TeacherRows(
        node=name,
        weights=torch.tensor([0.0 if row is None else row.weight for row in rows]),
        log_probs=tuple(
            None if row is None else torch.as_tensor(row.log_probs.astype(np.float32))
            for row in rows
        ),
        words=tuple(None if own is None else _tensor(own.log_probs) for own in words)
        if any(own is not None for own in words)
        else (),
        word_ids=tuple(None if own is None else _tensor(own).long() for own in ids)
        if any(own is not None for own in ids)
        else (),
    )


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _check_teacher(sequence: Sequence, teacher: Teacher) -> None:
    trained = int(np.count_nonzero(sequence.loss_mask))
    words = () if teacher.words is None else (teacher.words.log_probs,)
    for numbers in (teacher.log_probs, *words):
        if len(numbers) != trained:
            raise ValueError(
                f"sequence {sequence.id!r} has {trained} trained tokens, but its teacher "
                f"{teacher.node!r} has scored {len(numbers)}"
            )


def _prompts_of(token_ids: Tensor, loss_mask: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """`prompts` and `prompt_lengths` of a batch, (B,) each; prompts are numbered as they appear."""
    if not len(lengths):
        return lengths, lengths
    ids, mask = token_ids.numpy(), loss_mask.numpy()
    prompt_lengths = np.where(mask.any(1), mask.argmax(1), lengths.numpy())
    begun = np.where(np.arange(ids.shape[1]) < prompt_lengths[:, None], ids, NO_TOKEN)
    known: dict[bytes, int] = {}
    prompts = [known.setdefault(row.tobytes(), len(known)) for row in begun]
    return torch.tensor(prompts), torch.from_numpy(prompt_lengths)


def _choices(sequences: Many[Sequence]) -> Tensor | None:
    given = [sequence.choices for sequence in sequences]
    if not _is_given(sequences, "choices", given):
        return None
    return torch.from_numpy(np.stack(given).astype(np.int64))  # type: ignore[arg-type]


def _check_sequence(sequence: Sequence) -> None:
    size = len(sequence.token_ids)
    if size == 0:
        raise ValueError(f"sequence {sequence.id!r} has no tokens")
    for name in _BY_TOKEN:
        _check_size(sequence, name, getattr(sequence, name), size)
    for name, value in sequence.numbers.items():
        _check_size(sequence, name, value, size)
    if sequence.loss_mask[0]:
        raise ValueError(
            f"sequence {sequence.id!r} trains its first token, which nothing predicts; "
            "a prompt needs at least one token"
        )


def _check_size(sequence: Sequence, name: str, value: object, size: int) -> None:
    if isinstance(value, np.ndarray) and len(value) != size:
        raise ValueError(
            f"sequence {sequence.id!r} has {size} tokens but {len(value)} entries in {name}"
        )


def _names(units: Many[Unit]) -> list[str]:
    return list(dict.fromkeys(name for unit in units for name in unit.numbers))


def _is_given(units: Many[Unit], name: str, values: Many[Any]) -> bool:
    given = [value is not None for value in values]
    if any(given) and not all(given):
        unit = units[given.index(False)]
        kind = "pair" if isinstance(unit, Pair) else "sequence"
        raise ValueError(f"{kind} {unit.id!r} has no {name}, others of its batch have")
    return bool(given) and all(given)


def _row_or_token_numbers(
    values: Many[Any], lengths: Many[int], width: int, loss_mask: Tensor
) -> Tensor:
    """(B,) if all rows have one number, else (B, width)."""
    if any(isinstance(value, np.ndarray) for value in values):
        return _token_numbers(values, lengths, width, loss_mask)
    return torch.tensor(values, dtype=torch.float32)


def _token_numbers(values: Many[Any], lengths: Many[int], width: int, loss_mask: Tensor) -> Tensor:
    numbers = padded(values, lengths, width, 0.0, torch.float32)
    return torch.where(loss_mask, numbers, 0.0)


def padded(
    rows: Many[NDArray[Any] | float],
    lengths: Many[int],
    width: int,
    filler: float,
    dtype: torch.dtype,
) -> Tensor:
    """(B, width): each row at its first positions, repeated if it is one number, then `filler`."""
    full = torch.full((len(rows), width), filler, dtype=dtype)
    view = full.numpy()
    for index, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        view[index, :length] = row
    return full
