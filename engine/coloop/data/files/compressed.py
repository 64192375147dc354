"""Decompresses files by their suffix."""

import bz2
import gzip
import lzma
import mmap
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from coloop.spec.data import compression_of

Buffer = bytes | mmap.mmap

PROBLEMS: Final = (EOFError, zlib.error, lzma.LZMAError)
"""Errors of a damaged file, besides an OSError without errno."""


def mapped(path: Path) -> Buffer:
    """The contents of a file, memory-mapped; of a compressed one, from a temporary copy.

    Raises:
        RowProblem: it cannot be decompressed.
    """
    if compression_of(path) is None:
        with path.open("rb") as file:
            return _map(file)
    with tempfile.TemporaryFile() as copy, plain(path) as (stream, _):
        shutil.copyfileobj(stream, copy, 2**20)
        copy.flush()
        return _map(copy)


def _map(file: IO[bytes]) -> Buffer:
    if not file.seek(0, 2):
        return b""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@contextmanager
def plain(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The decompressed stream of a file, and the file itself; raises RowProblem if it is
    damaged."""
    try:
        with path.open("rb") as raw, _decompressed(raw, compression_of(path)) as stream:
            yield stream, raw
    except (*PROBLEMS, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RowProblem(f"cannot be decompressed: {error}") from None


def _decompressed(raw: IO[bytes], suffix: str | None) -> Any:
    match suffix:
        case ".gz":
            return gzip.open(raw)
        case ".bz2":
            return bz2.open(raw)
        case ".xz":
            return lzma.open(raw)
        case ".zst":
            # A process that reads no such file does without some 40 MiB and a thread.
            import pyarrow as pa

            return pa.CompressedInputStream(raw, "zstd")
    return raw


class RowProblem(ValueError):
    """A problem in a file; `line` counts from 1, None means the whole file."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
