"""Sequences as columns, so that a message of many short ones has few objects."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import accumulate, repeat
from typing import Any

import numpy as np

from coloop.algorithms.batch.sequences import Sequence, Unit

NAMES = tuple(one.name for one in fields(Sequence))
LONGEST_BYTES = 1024
"""Maximum bytes of an array that is copied into a column; longer ones are sent as they are."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Sequences, field by field; each field is in one of the three dicts."""

    rows: int
    values: dict[str, Any]
    """By field, a list of the values; for fields in neither `shared` nor `arrays`."""
    shared: dict[str, Any]
    arrays: dict[str, tuple[bytes, str, list[int]]]
    """By field, short arrays: their concatenated bytes, dtype, and the length of each."""


def columns_of(items: tuple[Unit, ...]) -> Columns | None:
    """The items as columns; None if one of them is not a `Sequence`."""
    if not all(type(item) is Sequence for item in items):
        return None
    states = [vars(item) for item in items]
    values: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    arrays: dict[str, tuple[bytes, str, list[int]]] = {}
    for name in NAMES:
        own = [state[name] for state in states]
        first = own[0] if own else None
        if all(value is first for value in own):
            shared[name] = first
        elif type(first) is np.ndarray and _are_short(own, first.dtype):
            whole = np.concatenate(own)
            arrays[name] = whole.tobytes(), whole.dtype.str, [len(value) for value in own]
        else:
            values[name] = own
    return Columns(rows=len(items), values=values, shared=shared, arrays=arrays)


def items_of(columns: Columns) -> tuple[Sequence, ...]:
    """The sequences of columns; their arrays are views of one buffer per field."""
    by_name: dict[str, Iterable[Any]] = {
        **columns.values,
        **{name: repeat(value, columns.rows) for name, value in columns.shared.items()},
        **{name: _apart(*column) for name, column in columns.arrays.items()},
    }
    sequences = []
    for row in zip(*(by_name[name] for name in NAMES), strict=True):
        sequence = object.__new__(Sequence)  # all arrays are what they were
        vars(sequence).update(zip(NAMES, row, strict=True))
        sequences.append(sequence)
    return tuple(sequences)


def _are_short(own: list[Any], dtype: np.dtype[Any]) -> bool:
    return all(
        type(array) is np.ndarray and array.dtype == dtype and array.nbytes <= LONGEST_BYTES
        for array in own
    )


def _apart(numbers: bytes, kind: str, lengths: list[int]) -> Iterable[Any]:
    whole = np.frombuffer(numbers, dtype=kind)  # read-only, and so is every part of it
    ends = list(accumulate(lengths))
    return [whole[end - length : end] for end, length in zip(ends, lengths, strict=True)]
