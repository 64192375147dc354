"""One-dimensional, read-only numpy arrays with one number per token.

    token ids    int32
    masks        bool
    numbers      float32 from a model, float64 if computed in Python

Rows, messages and batches share arrays, so they are never changed in place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.float32] | NDArray[np.float64]

_IDS, _MASK, _SINGLE = np.dtype(np.int32), np.dtype(np.bool_), np.dtype(np.float32)


def ids_of(values: ArrayLike) -> Ids:
    if _is_held(values, _IDS):
        return values  # type: ignore[return-value]
    return _read_only(np.asarray(values, dtype=_IDS))


def mask_of(values: ArrayLike) -> Mask:
    """One flag per token."""
    if _is_held(values, _MASK):
        return values  # type: ignore[return-value]
    return _read_only(np.asarray(values, dtype=_MASK))


def numbers_of(values: ArrayLike) -> Numbers:
    """One number per token; float32 arrays stay float32, everything else becomes float64."""
    if _is_held(values, _SINGLE):
        return values  # type: ignore[return-value]
    is_single = isinstance(values, np.ndarray) and values.dtype == np.float32
    return _read_only(np.asarray(values, dtype=np.float32 if is_single else np.float64))


def fresh(values: Sequence[float], dtype: type[np.int32] | type[np.float32]) -> NDArray[Any]:
    """A new read-only array of Python numbers."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


def joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The parts concatenated, read-only."""
    whole = np.concatenate(parts)
    whole.flags.writeable = False  # its own memory, so no view of it is needed
    return whole


def owned(array: NDArray[Any]) -> NDArray[Any]:
    """The array, or a copy if it is a view that would keep a larger buffer in memory."""
    base = array.base
    if base is None or (isinstance(base, np.ndarray) and base.base is None):
        is_whole = base is None or base.nbytes == array.nbytes
        return array if is_whole else _read_only(array.copy())
    return _read_only(array.copy())


def are_equal(value: object, other: object) -> bool:
    """Whether two dataclass instances have the same type and equal fields and arrays."""
    if type(value) is not type(other):
        return False
    return all(
        _same(getattr(value, field.name), getattr(other, field.name))
        for field in fields(value)  # type: ignore[arg-type]
    )


def _same(value: object, other: object) -> bool:
    if isinstance(value, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(value, other, equal_nan=value.dtype.kind == other.dtype.kind == "f")
    if isinstance(value, np.ndarray) or isinstance(other, np.ndarray):
        return False
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(_same(value[key], other[key]) for key in value)
    return bool(value == other)


def _is_held(values: ArrayLike, dtype: np.dtype[Any]) -> bool:
    """Whether it is already an array of this kind, which needs no conversion."""
    return (
        type(values) is np.ndarray
        and values.dtype == dtype
        and values.ndim == 1
        and not values.flags.writeable
    )


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1:
        raise ValueError(f"per-token numbers have one dimension, found shape {array.shape}")
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array
