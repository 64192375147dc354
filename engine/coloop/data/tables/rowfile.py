"""Rows in a file of their own: what they say as JSON, the numbers of their arrays behind it.

    coloop rows 1\\n | length of the head, 8 bytes | head: JSON | arrays, each at a multiple of 8

The head gives each row by the number under which it is kept; an array that several rows or columns
share stands there once. Nothing in such a file is code.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from coloop.data.arrays import owned
from coloop.data.tables.serialize import Kinds, from_plain, to_plain
from coloop.errors import CheckpointError

MAGIC: Final = b"coloop rows 1\n"
COUNT_BYTES: Final = 8
ALIGNMENT: Final = 8


def write_rows(path: Path, rows: Mapping[int, Any]) -> str:
    """Write rows by number; gives the SHA-256 of the file.

    Raises:
        OSError: the file was not written whole.
    """
    body = bytearray()
    places: dict[int, list[Any]] = {}
    shared: list[NDArray[Any]] = []  # keeps them alive, so that no two have one id

    def keep(array: NDArray[Any]) -> list[Any]:
        if id(array) not in places:
            body.extend(b"\0" * (-len(body) % ALIGNMENT))
            places[id(array)] = [array.dtype.str, len(body), len(array)]
            body.extend(array.tobytes())
            shared.append(array)
        return places[id(array)]

    plain = [[number, to_plain(row, keep)] for number, row in rows.items()]
    head = json.dumps(plain).encode()
    data = MAGIC + len(head).to_bytes(COUNT_BYTES, "little") + head + bytes(body)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def read_rows(path: Path, kinds: Kinds, sha256: str) -> dict[int, Any]:
    """The rows that `write_rows` wrote, by number.

    Args:
        kinds: the dataclasses that may stand in it.

    Raises:
        CheckpointError: the file is not there, or is not what was written.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256 or not data.startswith(MAGIC):
        raise CheckpointError(
            f"{path} is not what was written: its SHA-256 is {found}, the manifest says {sha256}"
        )
    start = len(MAGIC) + COUNT_BYTES
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    known: dict[tuple[str, int, int], NDArray[Any]] = {}

    def fetch(place: list[Any]) -> NDArray[Any]:
        dtype, offset, count = place
        if (dtype, offset, count) not in known:
            array = np.frombuffer(data, dtype=dtype, count=count, offset=end + offset)
            known[dtype, offset, count] = owned(array)
        return known[dtype, offset, count]

    return {number: from_plain(row, fetch, kinds) for number, row in json.loads(data[start:end])}
