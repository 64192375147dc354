"""A file format for rows in checkpoints: JSON, followed by the arrays as bytes.

    coloop rows 1\\n | length of the head, 8 bytes | head: JSON | arrays, each at a multiple of 8

The head lists (number, row) pairs; an array that several rows or columns share is written once.
Reading a file runs no code, unlike pickle.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from coloop.data.arrays import owned
from coloop.data.tables.row import Row, Tokens
from coloop.errors import CheckpointError

# Values of rows as JSON and back.
#
# Values that JSON lacks are marked: dataclasses, arrays, and numbers by position, whose keys would
# become strings. The caller stores arrays: `Keep` returns what represents an array in the JSON, and
# `Fetch` the array for that. Tuples come back as lists, except in fields of rows.

Keep = Callable[[NDArray[Any]], Any]
Fetch = Callable[[Any], NDArray[Any]]
Kinds = Mapping[str, Callable[..., Any]]

KIND: Final = "__kind__"
ARRAY: Final = "__array__"
POSITIONS: Final = "__positions__"
PLAIN: Final = "__plain__"
"""Wraps a dictionary whose only key is one of these marks."""
MARKS: Final = ({KIND}, {ARRAY}, {POSITIONS}, {PLAIN})


def to_plain(value: Any, keep: Keep) -> Any:
    if isinstance(value, np.ndarray):
        return {ARRAY: keep(value)}
    if isinstance(value, list | tuple):
        return [to_plain(part, keep) for part in value]
    if is_dataclass(value):
        own = {each.name: to_plain(getattr(value, each.name), keep) for each in fields(value)}
        return {KIND: [type(value).__name__, own]}
    if not isinstance(value, Mapping):
        return value
    if any(isinstance(key, int) for key in value):
        return {POSITIONS: list(value.items())}
    plain = {key: to_plain(part, keep) for key, part in value.items()}
    return {PLAIN: plain} if value.keys() in MARKS else plain


def from_plain(plain: Any, fetch: Fetch, kinds: Kinds) -> Any:
    """The value that `to_plain` wrote, tuples as lists; `kinds` makes dataclasses by name."""
    if isinstance(plain, list):
        return [from_plain(part, fetch, kinds) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.keys() == {ARRAY}:
        return fetch(plain[ARRAY])
    if plain.keys() == {POSITIONS}:
        return dict(plain[POSITIONS])
    if plain.keys() == {KIND}:
        name, own = plain[KIND]
        return kinds[name](**_values(own, fetch, kinds))
    return _values(plain.get(PLAIN, plain) if len(plain) == 1 else plain, fetch, kinds)


def _values(plain: Mapping[str, Any], fetch: Fetch, kinds: Kinds) -> dict[str, Any]:
    return {key: from_plain(value, fetch, kinds) for key, value in plain.items()}


def _row(**known: Any) -> Row:
    """A row from JSON; the lists of `parents`, `trail` and `places` become tuples."""
    ways, places = known["trail"], known["places"]
    known["parents"] = tuple(known["parents"])
    known["trail"] = {name: tuple((step, k) for step, k in way) for name, way in ways.items()}
    known["places"] = {name: tuple(tuple(way) for way in own) for name, own in places.items()}
    return Row(**known)


ROW_KINDS: Final[Kinds] = {"Row": _row, "Tokens": Tokens}


MAGIC: Final = b"coloop rows 1\n"
COUNT_BYTES: Final = 8
ALIGNMENT: Final = 8


def write_rows(path: Path, rows: Mapping[int, Any]) -> str:
    """Write rows by number, and return the SHA-256 of the file; OSError if it cannot be written."""
    body = bytearray()
    places: dict[int, list[Any]] = {}
    shared: list[NDArray[Any]] = []  # keeps them alive, so that no two have one id

    def keep(array: NDArray[Any]) -> list[Any]:
        if id(array) not in places:
            body.extend(b"\0" * (-len(body) % ALIGNMENT))
            size = len(array) if array.ndim == 1 else list(array.shape)
            places[id(array)] = [array.dtype.str, len(body), size]
            body.extend(array.tobytes())
            shared.append(array)
        return places[id(array)]

    plain = [[number, to_plain(row, keep)] for number, row in rows.items()]
    head = json.dumps(plain).encode()
    data = MAGIC + len(head).to_bytes(COUNT_BYTES, "little") + head + bytes(body)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def read_rows(path: Path, kinds: Kinds, sha256: str) -> dict[int, Any]:
    """The rows that `write_rows` wrote, by number; `kinds` makes dataclasses by name.

    Raises:
        CheckpointError: the file cannot be read, or its SHA-256 is another one.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    checksum = hashlib.sha256(data).hexdigest()
    if checksum != sha256 or not data.startswith(MAGIC):
        raise CheckpointError(
            f"{path} was changed after it was written: its SHA-256 is {checksum}, but {sha256} in "
            "the manifest"
        )
    start = len(MAGIC) + COUNT_BYTES
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    known: dict[tuple[str, int, tuple[int, ...]], NDArray[Any]] = {}

    def fetch(entry: list[Any]) -> NDArray[Any]:
        dtype, offset, size = entry
        shape = (size,) if isinstance(size, int) else tuple(size)
        key = (dtype, offset, shape)
        if key not in known:
            array = np.frombuffer(data, dtype=dtype, count=prod(shape), offset=end + offset)
            known[key] = owned(array) if len(shape) == 1 else array.reshape(shape).copy()
        return known[key]

    return {number: from_plain(row, fetch, kinds) for number, row in json.loads(data[start:end])}
