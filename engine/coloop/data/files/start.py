"""The start of a file, and the rows in it: what a check or an estimate reads of a file that may be
huge."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from coloop.data.files.compressed import RowProblem, plain
from coloop.data.files.files import open_buffer
from coloop.spec.data import FileFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a file begins with, decompressed."""

    data: bytes
    is_whole: bool
    """Whether the file holds no more."""
    size: int
    """Bytes of the whole file; of a compressed one that is not read whole about so many."""


def start_of(path: Path, most: int) -> Start:
    """Up to so many bytes of a file, decompressed.

    Raises:
        RowProblem: it cannot be decompressed.
        OSError: it cannot be read.
    """
    whole = os.stat(path).st_size
    with plain(path) as (stream, raw):
        parts, size = [], 0
        while size <= most and (part := stream.read(min(2**20, most + 1 - size))):
            parts.append(part)
            size += len(part)
        read = size if stream is raw else raw.tell()
    data = b"".join(parts)
    if size <= most:
        return Start(data=data, is_whole=True, size=size)
    return Start(data=data[:most], is_whole=False, size=round(whole * size / max(1, read)))


def first_rows(start: Start, form: FileFormat) -> Iterator[dict[str, Any]]:
    """The rows that stand whole in the start of a file; of a longer one those up to the first that
    cannot be read, which may be cut.

    Raises:
        RowProblem: a row of a whole file cannot be read.
    """
    data = start.data if start.is_whole else start.data[: start.data.rfind(b"\n") + 1]
    try:
        rows = open_buffer(data, form)
        for index in count():
            if index >= len(rows):
                return
            yield rows.row(index)
    except RowProblem:
        if start.is_whole:
            raise
