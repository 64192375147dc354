"""One server at a time on one data folder: two would start the same queued runs twice."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from coloop_server.errors import Conflict


class DataLock:
    """Held while the server runs; the system lets go of it even when the server is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.descriptor: int | None = None

    def __enter__(self) -> Self:
        import fcntl

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.descriptor = os.open(self.folder / "server.lock", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(
                "data.in_use",
                f"another coloop server uses {self.folder}; choose another folder with --data",
            ) from error
        except OSError as error:
            raise Conflict("data.unusable", f"{self.folder} cannot be used: {error}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
