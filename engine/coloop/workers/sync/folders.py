"""Folders of one run for transfers of weights between processes.

    <root>/coloop-weights-<random>/      removed when the run ends
      owner                              locked as long as the run's driver lives
      parcel-<random>/...                a transfer

Before folders are made, those of killed runs are removed: their lock is free.
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

SHARED_MEMORY = Path("/dev/shm")  # where Linux mounts shared memory
PREFIX = "coloop-weights-"
OWNER = "owner"


class TransferFolders:
    def __init__(self, roots: Sequence[Path]) -> None:
        """`roots`: where folders are made, the best first; missing ones are left out."""
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
    """Whether this process sees a transfer folder and may write to it."""
    return (folder / OWNER).is_file() and os.access(folder, os.W_OK | os.X_OK)


def clear_up(root: Path) -> None:
    """Remove the folders of killed runs under a root."""
    for folder in root.glob(f"{PREFIX}*") if root.is_dir() else ():
        try:
            with (folder / OWNER).open("rb") as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                logger.info("removing %s, left by a killed run", folder)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its run is alive, or the file system has no locks
            continue


def _make(root: Path) -> tuple[Path, IO[bytes]]:
    """Make a folder, renamed to its final name once its owner file is locked."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=root))
    owner = (temporary / OWNER).open("wb")
    with suppress(OSError):  # without locks nobody removes it either
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    path = root / temporary.name.removeprefix(".")
    temporary.rename(path)
    return path, owner
