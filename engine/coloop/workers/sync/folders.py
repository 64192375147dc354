"""Folders of one run through which weights go from process to process.

    <root>/coloop-weights-<random>/      gone when the run ends, however it ends
      owner                              locked as long as the run's driver lives
      parcel-<random>/...

Who opens folders first clears away those whose lock is free: their owner was killed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

logger = logging.getLogger(__name__)

SHARED_MEMORY = Path("/dev/shm")  # where Linux shows the memory that processes share as a folder
PREFIX = "coloop-weights-"
OWNER = "owner"


class TransferFolders:
    def __init__(self, roots: Sequence[Path]) -> None:
        """`roots`: the best first; missing ones are left out."""
        self._roots = roots
        self._open: list[tuple[Path, IO[bytes]]] | None = None

    @property
    def paths(self) -> list[Path]:
        if self._open is None:
            self._open = []
            for root in self._roots:
                clear_up(root)
                with suppress(OSError):
                    self._open.append(_make(root))
        return [path for path, _ in self._open]

    def close(self) -> None:
        for path, owner in self._open or ():
            shutil.rmtree(path, ignore_errors=True)
            owner.close()
        self._open = None


def can_use(folder: Path) -> bool:
    """Whether this process sees a run's folder and may write to it."""
    return (folder / OWNER).is_file() and os.access(folder, os.W_OK | os.X_OK)


def clear_up(root: Path) -> None:
    """Remove what killed runs left under a root."""
    for folder in root.glob(f"{PREFIX}*") if root.is_dir() else ():
        try:
            with (folder / OWNER).open("rb") as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                logger.info("removing %s, left by a killed run", folder)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its run is alive, or the file system does not tell
            continue


def _make(root: Path) -> tuple[Path, IO[bytes]]:
    """A folder under its name only once its owner is locked."""
    aside = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=root))
    owner = (aside / OWNER).open("wb")
    with suppress(OSError):  # a file system without locks: then nobody clears it away either
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    path = root / aside.name.removeprefix(".")
    aside.rename(path)
    return path, owner
