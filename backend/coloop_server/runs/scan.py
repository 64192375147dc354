"""Finds runs that the server did not start: folders that `coloop run` wrote when it was typed.

    scanner thread:  stamps of all event files --changed--> read --> row, stamp --> supervisor

Folders whose stamp is the one of their last reading are not opened. Files are read outside of
transactions, so that nobody waits for them.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy.orm import Session

from coloop.runtime.run_files.events import RunError, RunStateName
from coloop.runtime.run_files.run_lock import is_held
from coloop_server.database.connect import Sessions
from coloop_server.database.tables import RunRow
from coloop_server.runs import repository
from coloop_server.runs.folder import RunFolder, Stamp, stamp_of
from coloop_server.runs.series import sidecar_of
from coloop_server.runs.watch import Watch
from coloop_server.settings import Settings

logger = logging.getLogger(__name__)

SCAN_SECONDS = 2.0
MAX_FOLDERS = 2000
CLOCK_NS = 100_000_000
ARRIVING_SECONDS = 60.0
"""A folder this young that is not a run may be one that is still being copied or unpacked."""


class Scanner:
    """Scans the runs folder for new runs, and for ended ones that were resumed."""

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        *,
        is_live: Callable[[str], bool],
        take: Callable[[RunRow], None],
    ) -> None:
        self.settings = settings
        self.sessions = sessions
        self.is_live = is_live
        """Whether a run is already watched, by id."""
        self.take = take
        """Called with the row of each run in progress that is not watched yet."""
        self.stamps: dict[str, Stamp] | None = None
        self.folder_stamp: int | None = None
        """Modification time before the last scan; None if uncertain or if a run is arriving."""
        self.asked = self.done = 0
        """Requested scans, and completed ones."""
        self.changed = threading.Condition()
        self.is_ended = False
        self.thread = threading.Thread(target=self.run, name="scanner", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def close(self) -> None:
        with self.changed:
            self.is_ended = True
            self.changed.notify_all()
        if self.thread.ident is not None:
            self.thread.join(timeout=30)

    def wait_for_look(self, seconds: float) -> None:
        """Wait for one complete scan, or at most this long."""
        with self.changed:
            self.asked += 1
            ticket = self.asked
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.is_ended or self.done >= ticket, timeout=seconds)

    def wait_for_new(self, seconds: float) -> None:
        """Like `wait_for_look`, but return at once if no folder was added or removed since the last
        scan."""
        if self.folder_stamp is None or self.folder_stamp != self.stamp_of_folder():
            self.wait_for_look(seconds)

    def stamp_of_folder(self) -> int | None:
        """Modification time of the runs folder. None if it is very recent, since a coarse clock of
        the file system could hide further changes."""
        try:
            changed = self.settings.runs_dir.stat().st_mtime_ns
        except OSError:
            return None
        return changed if time.time_ns() - changed > CLOCK_NS else None

    def run(self) -> None:
        while not self.is_ended:
            ticket = self.asked
            try:
                self.scan()
            except Exception:
                # The boundary to disks and the database: one look that fails is followed by others.
                logger.exception("a look through the runs folder failed; trying again")
            with self.changed:
                self.done = ticket
                self.changed.notify_all()
                self.changed.wait_for(
                    lambda: self.is_ended or self.asked > self.done, timeout=SCAN_SECONDS
                )

    def scan(self) -> None:
        if self.stamps is None:
            with self.sessions() as session:
                self.stamps = repository.list_stamps(session)
        folder_stamp = self.stamp_of_folder()
        for path in self.folders():
            if self.is_ended:
                return
            stamp = stamp_of(path / "events.jsonl")
            if stamp is None or not RunFolder(path).is_run:
                folder_stamp = None if is_arriving(path) else folder_stamp
                continue
            if self.stamps.get(str(path)) == stamp or self.is_live(path.name):
                continue
            self.look(path)
            self.stamps[str(path)] = stamp
        self.folder_stamp = folder_stamp

    def folders(self) -> list[Path]:
        try:
            folders = [
                path
                for path in self.settings.runs_dir.iterdir()
                if not path.name.startswith(".") and path.is_dir()
            ]
        except OSError:
            return []
        return sorted(folders)[:MAX_FOLDERS]

    def look(self, path: Path) -> None:
        """Update the row of a folder; pass it on if its run is in progress."""
        with self.sessions() as session:
            row = repository.find_in(session, str(path))
            if row is not None and is_ours(row):
                return
            run_id = path.name if row is None else row.id
            watch_kept = None if row is None else repository.get_kept(session, row.id)
        watch = Watch(path, watch_kept, sidecar_of(self.settings.data_dir, run_id))
        stamp, kept = watch.keep()
        with self.sessions.begin() as session:
            row = repository.find_in(session, str(path)) or take_up(session, path)
            if row is None or is_ours(row) or self.is_live(row.id):
                return
            goes_on = self.bring_up(row, watch)
            if not goes_on and stamp is not None:
                repository.put_kept(session, row.id, stamp, kept)
        if goes_on:
            self.take(row)

    def bring_up(self, row: RunRow, watch: Watch) -> bool:
        """Update the row from the files; returns whether the run is in progress."""
        summary = watch.summary
        if row.launcher is not None:
            if summary.attempt <= row.attempt:
                return False
            row.launcher = None  # resumed from a terminal: not ours any more
        repository.apply_summary(row, summary, watch.log.last_seq)
        if summary.state is not None and summary.state.is_final:
            return False
        limit = datetime.now(UTC) - timedelta(seconds=self.settings.stale_seconds)
        is_fresh = summary.heartbeat_at is not None and summary.heartbeat_at >= limit
        if is_fresh or is_held(Path(row.folder)):
            return True
        message = "it ended without a final event: there is no sign of life"
        error = RunError(code="run.no_sign_of_life", message=message)
        repository.end(row, RunStateName.FAILED, message, error)
        row.ended_at = summary.heartbeat_at or row.ended_at
        return False


def is_arriving(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_ctime < ARRIVING_SECONDS
    except OSError:
        return False


def is_ours(row: RunRow) -> bool:
    """Whether this server handles the run: it is queued, or started here and not over."""
    return row.state == RunStateName.QUEUED or (
        row.launcher is not None and not RunStateName(row.state).is_final
    )


def take_up(session: Session, path: Path) -> RunRow | None:
    """The row of a run folder, created if needed; None if another folder has the id."""
    folder = RunFolder(path)
    if not folder.is_run:
        return None
    known = session.get(RunRow, path.name)
    if known is not None:
        return known if known.folder == str(path) else None
    row = repository.new_row(
        id=path.name,
        name=path.name,
        folder=str(path),
        yaml=folder.spec_text() or "",
        created_at=datetime.fromtimestamp((path / "spec.yaml").stat().st_mtime, UTC),
    )
    row.state = RunStateName.STARTING.value
    parent = folder.parent()
    row.parent_id = None if parent is None else parent.run
    session.add(row)
    session.flush()
    return row
