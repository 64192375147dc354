"""Checksums of files, atomic writes, and flushing to disk.

Comparing the checksums of writer and reader shows that a file that was written on one machine can
be read on another.
"""

import errno
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Size and SHA-256 of a file."""

    size: int
    sha256: str
    by: str = field(default="", compare=False)
    """Name of the process that computed it, for messages."""


class Marks:
    """Hashes files. A file that the previous call hashed is not read again if it is unchanged, also
    under another name: frozen weights are hard links between checkpoints."""

    def __init__(self, by: str = "") -> None:
        self._by = by
        self._known: dict[tuple[int, ...], Mark] = {}

    def of(self, files: Iterable[Path]) -> dict[Path, Mark]:
        """The mark of each file; raises OSError if one cannot be read."""
        marks: dict[Path, Mark] = {}
        known: dict[tuple[int, ...], Mark] = {}
        for path in files:
            stat = path.stat()
            identity = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
            mark = self._known.get(identity) or known.get(identity)
            if mark is None:
                with path.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                mark = Mark(size=stat.st_size, sha256=sha256, by=self._by)
            marks[path] = known[identity] = mark
        self._known = known
        return marks


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: after a kill or power cut, it is either complete or the old one.

    Raises:
        OSError: it could not be written; the old file is unchanged.
    """
    aside = aside_of(path)
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
        settle_one(aside)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    settle_one(path.parent)


def aside_of(path: Path) -> Path:
    """Temporary name of a file before it is renamed; a kill may leave it behind."""
    return path.with_name(f".{path.name}.new")


def settle(folder: Path) -> None:
    """Flush all files and folders below a folder to disk; may raise OSError."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            settle_one(Path(parent, name))
        settle_one(Path(parent))


def settle_one(path: Path) -> None:
    """Flush one file, or the entries of one folder, to disk; may raise OSError."""
    if path.is_symlink() and not path.is_dir():
        return
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # a disk that cannot be asked
            raise
    finally:
        os.close(file)
