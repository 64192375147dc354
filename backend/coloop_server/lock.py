"""One server at a time: two would start the same queued runs twice and bury each other's.

    data folder   a file lock      the system lets go of it even when the server is killed
    database      a row that beats  several machines may reach one database

A second server refuses to start. Where the row's owner gave no sign of life for long, or used this
very data folder, which is locked by now, it is taken over.
"""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from sqlalchemy import CursorResult, delete, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from coloop_server.database.connect import Sessions
from coloop_server.database.tables import ServerRow
from coloop_server.errors import Conflict
from coloop_server.private import ensure_private_folder, read_or_write

logger = logging.getLogger(__name__)

BEAT_SECONDS = 10.0
ONLY = 1
"""Id of the only row, which names the server that owns the database."""
LEASE = timedelta(seconds=45)


class DataLock:
    """Held while the server runs; reentrant for its holder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.descriptor: int | None = None
        self.depth = 0

    def __enter__(self) -> Self:
        if self.depth == 0:
            self.acquire()
        self.depth += 1
        return self

    def acquire(self) -> None:
        import fcntl

        try:
            ensure_private_folder(self.folder)
            descriptor = os.open(self.folder / "server.lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise Conflict("data.unusable", f"{self.folder} cannot be used: {error}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if not isinstance(error, BlockingIOError):
                raise Conflict("data.unusable", f"{self.folder} cannot be used: {error}") from error
            raise Conflict(
                "data.in_use",
                f"another coloop server uses {self.folder}; choose another folder with --data",
            ) from error
        self.descriptor = descriptor

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0 and self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class DatabaseLease:
    """The right to start and close runs of a database: its one row of `servers`, renewed by a
    heartbeat."""

    def __init__(self, sessions: Sessions, folder: Path) -> None:
        self.sessions = sessions
        self.folder_id = read_or_write(folder / "folder-id", secrets.token_hex(8))
        """Identifies the data folder across restarts."""
        self.token = secrets.token_hex(8)
        """Identifies this process."""
        self.place = f"{folder} on {socket.gethostname()} (process {os.getpid()})"
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    def claim(self) -> None:
        """Take the database; raises Conflict if another server has it."""
        try:
            with self.sessions.begin() as session:
                if (known := session.get(ServerRow, ONLY)) is not None:
                    self.check(known, datetime.now(UTC) - known.beat_at)
                    session.expunge(known)
                    session.execute(delete(ServerRow).where(ServerRow.token == known.token))
                session.add(
                    ServerRow(
                        id=ONLY,
                        folder_id=self.folder_id,
                        token=self.token,
                        place=self.place,
                        beat_at=datetime.now(UTC),
                    )
                )
        except IntegrityError as error:
            raise in_use("another coloop server, which has just started,") from error

    def check(self, other: ServerRow, age: timedelta) -> None:
        if other.folder_id == self.folder_id or age > LEASE:
            return
        rest = (LEASE - max(age, timedelta())).total_seconds()
        raise in_use(
            f"another coloop server, with {other.place},",
            f"; where it is gone for good, this one can start in {rest:.0f} s",
        )

    def keep(self, on_lost: Callable[[], None]) -> None:
        """Send heartbeats from now on; `on_lost` is called if another server took over."""
        self.thread = threading.Thread(target=self.run, args=(on_lost,), name="lease", daemon=True)
        self.thread.start()

    def run(self, on_lost: Callable[[], None]) -> None:
        while not self.ended.wait(BEAT_SECONDS):
            if not self.is_ours():
                logger.critical("another server took over the database; this one stops its work")
                on_lost()
                return

    def is_ours(self) -> bool:
        """Send a heartbeat; False if another server owns the row."""
        try:
            with self.sessions.begin() as session:
                ours = update(ServerRow).where(ServerRow.id == ONLY, ServerRow.token == self.token)
                result = session.execute(ours.values(beat_at=datetime.now(UTC)))
                return isinstance(result, CursorResult) and result.rowcount == 1
        except SQLAlchemyError as error:
            logger.warning("the database cannot be told that this server lives: %s", error)
            return True

    def close(self) -> None:
        self.ended.set()
        if self.thread is not None:
            self.thread.join(timeout=30)
        try:
            with self.sessions.begin() as session:
                session.execute(delete(ServerRow).where(ServerRow.token == self.token))
        except SQLAlchemyError as error:
            logger.warning("the database could not be released: %s", error)


def in_use(who: str, more: str = "") -> Conflict:
    return Conflict(
        "database.in_use",
        f"{who} uses this database; end it, or give this one a COLOOP_DATABASE_URL of its own"
        + more,
    )
