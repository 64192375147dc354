"""What a file is known by: its size and its SHA-256, as its writer saw it and as a reader finds it.

Who compares both knows that what was written on one machine can be read back on another.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One file at one moment."""

    size: int
    sha256: str
    by: str = field(default="", compare=False)
    """Who wrote it, for messages."""


class Marks:
    """Reads files; one that is as it was when it was read last is not read again, whatever its name
    is by now: what is frozen is linked from checkpoint to checkpoint."""

    def __init__(self, by: str = "") -> None:
        self._by = by
        self._known: dict[tuple[int, ...], Mark] = {}

    def of(self, files: Iterable[Path]) -> dict[Path, Mark]:
        """The mark of each file.

        Raises:
            OSError: one of them cannot be read.
        """
        found: dict[Path, Mark] = {}
        known: dict[tuple[int, ...], Mark] = {}
        for path in files:
            stat = path.stat()
            place = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
            mark = self._known.get(place) or known.get(place)
            if mark is None:
                with path.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                mark = Mark(size=stat.st_size, sha256=sha256, by=self._by)
            found[path] = known[place] = mark
        self._known = known
        return found
