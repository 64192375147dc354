"""Deleting a run: its row, its folder and what the server keeps beside it.

    folder --rename--> .deleted-<id> --commit--> removed for good
                             '--rollback--> renamed back

A run that goes on is not deleted. A folder outside of the runs folder was only shown here and stays
where it is, as do files that the run put elsewhere (`run.storage`).
"""

import shutil
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.orm import Session

from coloop.runtime.run_files.events import RunStateName
from coloop_server.database.tables import RunRow
from coloop_server.errors import Conflict
from coloop_server.runs import repository
from coloop_server.runs.service import require_no_writer
from coloop_server.runs.supervisor import Supervisor
from coloop_server.settings import Settings

DELETED = ".deleted-"


def delete(session: Session, settings: Settings, supervisor: Supervisor, run_id: str) -> None:
    """Remove an ended run with everything that belongs to it."""
    row = repository.get_outline(session, run_id)
    if not RunStateName(row.state).is_final or supervisor.is_live(run_id):
        raise Conflict("run.going_on", f"the run is {row.state}; stop it before it is deleted")
    if Path(row.folder).parent == settings.runs_dir:
        require_no_writer(Path(row.folder))
    if not repository.delete_run(session, run_id):
        raise Conflict("run.going_on", "the run has just been resumed")
    aside = set_aside(settings, row)
    event.listen(session, "after_commit", lambda _: remove_files(supervisor, row, aside), once=True)
    event.listen(session, "after_rollback", lambda _: put_back(row, aside), once=True)


def set_aside(settings: Settings, row: RunRow) -> Path | None:
    """The run's folder under a name that no scan takes for a run."""
    folder = Path(row.folder)
    if folder.parent != settings.runs_dir or not folder.exists():
        return None
    aside = folder.with_name(f"{DELETED}{row.id}")
    try:
        folder.rename(aside)
    except OSError as error:
        raise Conflict("run.not_deleted", f"{folder} cannot be removed: {error}") from error
    return aside


def put_back(row: RunRow, aside: Path | None) -> None:
    if aside is not None and aside.exists():
        aside.rename(row.folder)


def remove_files(supervisor: Supervisor, row: RunRow, aside: Path | None) -> None:
    supervisor.forget(row.id)
    if aside is None:
        return
    if aside.is_symlink():
        aside.unlink()
    else:
        shutil.rmtree(aside, ignore_errors=True)
