"""Calls and replies between processes as bytes, with the numbers of their arrays beside them.

    value ──pack──> head, buffers ──(object store)──> head, buffers ──unpack──> value

The head is a pickle of all but larger arrays, whose memory the buffers are, without a copy on
either side. What is unpacked is read-only.
"""

import copyreg
import io
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PROTOCOL = 5
IN_HEAD_BYTES = 1024  # most bytes of an array that travels in the head


@dataclass(frozen=True, kw_only=True)
class Packed:
    head: bytes
    buffers: list[Any]
    """`pickle.PickleBuffer` on the way out, whatever the carrier makes of it on the way in."""

    def size(self) -> int:
        return len(self.head) + sum(memoryview(buffer).nbytes for buffer in self.buffers)


def pack(value: Any) -> Packed:
    """The value as bytes and buffers; the buffers are the arrays' own memory."""
    buffers: list[pickle.PickleBuffer] = []
    head = io.BytesIO()
    _Packer(head, PROTOCOL, buffer_callback=buffers.append).dump(value)
    return Packed(head=head.getvalue(), buffers=buffers)


def unpack(packed: Packed) -> Any:
    return pickle.loads(packed.head, buffers=packed.buffers)


def _reduced(array: NDArray[Any]) -> Any:
    """An array by its memory; numpy's own way takes several times as long."""
    if array.ndim != 1 or not array.flags.c_contiguous or array.dtype.kind not in "biuf":
        return array.__reduce_ex__(PROTOCOL)
    if array.nbytes <= IN_HEAD_BYTES:
        return np.frombuffer, (array.tobytes(), array.dtype.str)
    return np.frombuffer, (pickle.PickleBuffer(array), array.dtype.str)  # type: ignore[arg-type]


class _Packer(pickle.Pickler):
    dispatch_table = copyreg.dispatch_table | {np.ndarray: _reduced}
