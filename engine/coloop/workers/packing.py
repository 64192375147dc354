"""Calls and replies between processes as bytes, with the numbers of their arrays beside them.

    value ──pack──> head, buffers ──(object store)──> head, buffers ──unpack──> value

The head is a pickle of everything but the numbers of larger arrays; a buffer is the memory of one
such array and is never copied here, neither on the way out nor on the way in: what is unpacked
reads the memory that arrived, for as long as it lives. Small arrays travel in the head, where they
cost less than a buffer of their own. What is unpacked is read-only.
"""

import copyreg
import io
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PROTOCOL = 5
IN_HEAD_BYTES = 1024
"""Most bytes of an array that travels in the head."""


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A value on its way."""

    head: bytes
    buffers: list[Any]
    """Whatever gives its memory: `pickle.PickleBuffer` on the way out, what the carrier makes of
    it on the way in."""

    def size(self) -> int:
        """Bytes in all."""
        return len(self.head) + sum(memoryview(buffer).nbytes for buffer in self.buffers)


def pack(value: Any) -> Packed:
    """The value as bytes and buffers; the buffers are the arrays' own memory."""
    buffers: list[pickle.PickleBuffer] = []
    head = io.BytesIO()
    _Packer(head, PROTOCOL, buffer_callback=buffers.append).dump(value)
    return Packed(head=head.getvalue(), buffers=buffers)


def unpack(packed: Packed) -> Any:
    """The value that was packed."""
    return pickle.loads(packed.head, buffers=packed.buffers)


def _reduced(array: NDArray[Any]) -> Any:
    """An array by its memory; numpy's own way costs several times as much, which is felt where
    texts are short."""
    if array.ndim != 1 or not array.flags.c_contiguous or array.dtype.kind not in "biuf":
        return array.__reduce_ex__(PROTOCOL)
    if array.nbytes <= IN_HEAD_BYTES:
        return np.frombuffer, (array.tobytes(), array.dtype.str)
    return np.frombuffer, (pickle.PickleBuffer(array), array.dtype.str)  # type: ignore[arg-type]


class _Packer(pickle.Pickler):
    """Pickles arrays as `_reduced` says."""

    dispatch_table = copyreg.dispatch_table | {np.ndarray: _reduced}
