"""Finds runs that the server did not start: folders that `coloop run` wrote when it was typed."""

import logging
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy.orm import Session

from coloop.events import RunStateName
from coloop_server.database.connect import Sessions
from coloop_server.database.tables import RunRow
from coloop_server.errors import Conflict, Invalid
from coloop_server.runs import repository
from coloop_server.runs.folder import RunFolder
from coloop_server.runs.watch import Watch
from coloop_server.settings import Settings

logger = logging.getLogger(__name__)

SCAN_SECONDS = 2.0
MAX_FOLDERS = 2000


class Scanner:
    """Looks through the runs folder for new runs, and for ended ones that go on again."""

    def __init__(self, settings: Settings, sessions: Sessions) -> None:
        self.settings = settings
        self.sessions = sessions
        self.lock = threading.Lock()
        self.scanned_at = -SCAN_SECONDS
        self.stamps: dict[Path, float] = {}

    def is_due(self) -> bool:
        return time.monotonic() - self.scanned_at >= SCAN_SECONDS

    def scan(self, known_live: set[str]) -> list[RunRow]:
        """External runs that go on and are not watched yet. New folders get their row."""
        with self.lock:
            self.scanned_at = time.monotonic()
            changed = [path for path in self.folders() if self.is_changed(path)]
            if not changed:
                return []
            with self.sessions.begin() as session:
                rows = {row.folder: row for row in repository.rows_in(session, map(str, changed))}
                found = [rows.get(str(path)) or take_up(session, path) for path in changed]
                return [
                    row
                    for row in found
                    if row is not None and row.id not in known_live and self.goes_on(row)
                ]

    def folders(self) -> list[Path]:
        try:
            found = [path for path in self.settings.runs_dir.iterdir() if path.is_dir()]
        except OSError:
            return []
        return sorted(found)[:MAX_FOLDERS]

    def is_changed(self, path: Path) -> bool:
        """Whether the event file was written since the last look."""
        try:
            stamp = (path / "events.jsonl").stat().st_mtime
        except OSError:
            return False
        is_changed = self.stamps.get(path) != stamp
        self.stamps[path] = stamp
        return is_changed

    def goes_on(self, row: RunRow) -> bool:
        """Bring the row of a run that is not watched up to date; whether it goes on."""
        is_final = RunStateName(row.state).is_final
        if row.launcher is not None and not is_final:
            return False  # queued or being started by this server
        watch = Watch(Path(row.folder))
        watch.poll()
        summary = watch.summary
        if row.launcher is not None:
            if summary.attempt <= row.attempt:
                return False
            row.launcher = None  # resumed from a terminal: not ours any more
        repository.apply_summary(row, summary, watch.log.last_seq)
        if summary.state is not None and summary.state.is_final:
            return False
        limit = datetime.now(UTC) - timedelta(seconds=self.settings.stale_seconds)
        if summary.heartbeat_at is not None and summary.heartbeat_at >= limit:
            return True
        message = "it ended without saying so: there is no sign of life"
        repository.end(row, RunStateName.FAILED, message, "run.no_sign_of_life")
        row.ended_at = summary.heartbeat_at or row.ended_at
        return False


def take_up(session: Session, path: Path) -> RunRow | None:
    """A row for a run folder that has none yet."""
    folder = RunFolder(path)
    if not folder.is_run or session.get(RunRow, path.name) is not None:
        return None
    row = repository.new_row(
        id=path.name,
        name=path.name,
        folder=str(path),
        yaml=folder.spec_text() or "",
        created_at=datetime.fromtimestamp((path / "spec.yaml").stat().st_mtime, UTC),
    )
    row.state = RunStateName.STARTING.value
    session.add(row)
    session.flush()
    return row


def import_folder(session: Session, path: Path) -> RunRow:
    """The row of a run folder that lies elsewhere."""
    if not RunFolder(path).is_run:
        raise Invalid(
            "run.no_folder", f"{path} is no run folder: expected spec.yaml and events.jsonl in it"
        )
    known = session.get(RunRow, path.name)
    if known is not None and known.folder != str(path):
        raise Conflict(
            "run.id_taken", f"there is another run with the id {path.name!r}; rename the folder"
        )
    row = known or take_up(session, path)
    assert row is not None
    return row
