"""Operations on runs. Specs are checked like on the command line."""

import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from coloop.runtime.run_files.events import EditRequest, RunStateName, utc_now
from coloop.runtime.run_files.run_lock import holder
from coloop.spec.io import content_hash
from coloop_server import language
from coloop_server.database.tables import RunRow
from coloop_server.errors import Conflict, Invalid, NotFound
from coloop_server.loops.repository import get_loop, get_version, version_of
from coloop_server.runs import repository
from coloop_server.runs.comparing import compare
from coloop_server.runs.folder import RunFolder
from coloop_server.runs.forking import choose_checkpoint, prepare_fork, require_steps_left
from coloop_server.runs.schemas import ChangeRun, EditRun, ForkRun, NewRun, Run, SpecChange
from coloop_server.runs.supervisor import Supervisor
from coloop_server.settings import Settings

MAX_NAME = 200
MAX_ID_STEM = 60

SEED, STEPS = "run.seed", "schedule.steps"


def create(supervisor: Supervisor, settings: Settings, new: NewRun) -> Run:
    checkpoint = None
    if new.resume is not None:
        with supervisor.sessions() as session:
            folder = require_folder(repository.get_run(session, new.resume))
        checkpoint = choose_checkpoint(folder, None)
    return queue(supervisor, settings, new, checkpoint)


def queue(supervisor: Supervisor, settings: Settings, new: NewRun, checkpoint: Path | None) -> Run:
    """Slow work is done before the transaction, so that no other request waits while a loop is
    checked or a checkpoint is copied.

    Args:
        checkpoint: of the run `resume`, from which this one goes on.
    """
    supervisor.require_owner()
    if new.in_one_process and settings.ray_address is not None:
        raise Invalid(
            "run.not_here",
            f"in_one_process: this server sends its runs to the Ray cluster at "
            f"{settings.ray_address}; leave it out",
        )
    overrides = new.set if new.seed is None else {**new.set, SEED: new.seed}
    text = language.with_overrides(new.yaml, overrides)
    language.require_own_code(text, settings, is_confirmed=new.trust)
    spec = language.require_runnable(text, force=new.force, roots=settings.roots)
    run_id = new_run_id(spec.name)
    folder = settings.runs_dir / run_id
    row = repository.new_row(
        id=run_id, name=clean_name(new.name) or spec.name, folder=str(folder), yaml=text
    )
    row.spec_hash = content_hash(spec)
    row.loop_id, row.parent_id = new.loop_id, new.resume
    row.forced = new.force
    row.launcher = "process" if new.in_one_process else None
    row.tags = unique(new.tags)
    if checkpoint is not None:
        prepare_fork(checkpoint, folder, text, settings.roots)
        row.resume_of = run_id
    try:
        with supervisor.sessions.begin() as session:
            supervisor.wake_after(session)
            return add(session, row, new)
    except BaseException:
        if checkpoint is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def add(session: Session, row: RunRow, new: NewRun) -> Run:
    if new.loop_id is not None:
        row.loop_version = version_of(session, new.loop_id, new.yaml)
    row.priority, row.queue_place = new.priority, repository.next_place(session)
    session.add(row)
    return show(session, row)


def shown(session: Session, rows: Sequence[RunRow]) -> list[Run]:
    """Runs as in responses; queued ones with their place in the queue."""
    is_queued = any(row.state == RunStateName.QUEUED for row in rows)
    ids = repository.queue_ids(session) if is_queued else ()
    places = {run_id: number for number, run_id in enumerate(ids, start=1)}
    told = (Run.model_validate(row) for row in rows)
    return [run.model_copy(update={"place": places.get(run.id)}) for run in told]


def show(session: Session, row: RunRow) -> Run:
    session.flush()
    return shown(session, [row])[0]


def change(session: Session, run_id: str, changes: ChangeRun) -> RunRow:
    row = repository.get_outline(session, run_id)
    if changes.name is not None:
        row.name = clean_name(changes.name) or row.name
    if changes.tags is not None:
        row.tags = unique(changes.tags)
    if changes.priority is not None:
        require_queued(row)
        row.priority = changes.priority
    return row


def move(session: Session, run_id: str, before: str | None) -> RunRow:
    """Put a queued run before another, or last; it takes over the priority there."""
    queue = [row for row in repository.list_queue(session) if row.id != run_id]
    row = repository.get_outline(session, run_id)
    require_queued(row)
    at = next((at for at, other in enumerate(queue) if other.id == before), len(queue))
    if before is not None and at == len(queue):
        raise Conflict("run.not_queued", f"run {before!r} is not queued; name one that is, or null")
    if at < len(queue):
        row.priority = queue[at].priority
    elif queue:
        row.priority = min(row.priority, queue[-1].priority)
    queue.insert(at, row)
    for number, other in enumerate(queue):
        other.queue_place = number
    return row


def require_queued(row: RunRow) -> None:
    if row.state != RunStateName.QUEUED:
        raise Conflict("run.not_queued", f"the run is {row.state}; only a queued one has a place")


def acknowledge(session: Session, run_id: str, seq: int) -> RunRow:
    row = repository.get_outline(session, run_id)
    raised = {str(alert["seq"]) for alert in row.raised_alerts}
    if str(seq) not in raised:
        raise NotFound("run.no_alert", f"the run has no alert that event {seq} raised")
    kept = {key: at for key, at in row.acknowledged.items() if key in raised}
    row.acknowledged = {str(seq): utc_now(), **kept}
    return row


def text_of(session: Session, run_id: str) -> str:
    """The loop that a run was started with."""
    row = repository.get_run(session, run_id)
    return RunFolder(Path(row.folder)).spec_text() or row.yaml


def compare_with(
    session: Session, run_id: str, *, run: str | None, loop: str | None, version: int | None
) -> list[SpecChange]:
    """Differences from the run's loop to that of another run, or to a saved loop."""
    if (run is None) == (loop is None):
        raise Invalid("run.compare", "name one of `run` and `loop` to compare with")
    if run is not None:
        other = text_of(session, run)
    elif version is not None:
        other = get_version(session, str(loop), version).yaml
    else:
        other = get_loop(session, str(loop)).yaml
    return compare(text_of(session, run_id), other)


def compare_values(session: Session, run_id: str, values: Mapping[str, Any]) -> list[SpecChange]:
    """Differences from the run's loop to the same with other values; invalid ones are refused."""
    text = text_of(session, run_id)
    return compare(text, language.with_overrides(text, values))


def unique(tags: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(tags))


def stop(session: Session, run_id: str) -> RunRow:
    """Ask a run to write a checkpoint and stop. A queued run leaves the queue."""
    row = repository.get_run(session, run_id)
    if RunStateName(row.state).is_final:
        raise Conflict("run.ended", f"the run is {row.state} already")
    if not (repository.unqueue(session, run_id) or repository.mark_stopping(session, run_id)):
        raise Conflict("run.ended", "the run has just ended")
    session.refresh(row)
    return row


def resume(
    session: Session, settings: Settings, run_id: str, *, force: bool, trust: bool
) -> RunRow:
    """Queue an ended run for another attempt from its last checkpoint, in the same folder."""
    row = repository.get_run(session, run_id)
    if not RunStateName(row.state).is_final:
        raise Conflict("run.going_on", f"the run is {row.state}; only an ended run is resumed")
    if row.state == RunStateName.FINISHED:
        raise Conflict("run.finished", "the run has finished; fork it to continue from its end")
    folder = require_folder(row)
    if folder.parent != settings.runs_dir:
        raise Conflict("run.elsewhere", "an imported run cannot be resumed in place; fork it")
    require_no_writer(folder)
    is_forced = force or row.forced
    language.require_own_code(row.yaml, settings, is_confirmed=trust)
    language.require_runnable(row.yaml, force=is_forced, roots=settings.roots)
    if not repository.requeue(session, run_id, attempt=row.attempt + 1, forced=is_forced):
        raise Conflict("run.going_on", "the run has already been resumed")
    session.refresh(row)
    return row


def fork(supervisor: Supervisor, settings: Settings, run_id: str, new: ForkRun) -> Run:
    """Queue a new run that starts from a checkpoint of another one."""
    with supervisor.sessions() as session:
        source = repository.get_run(session, run_id)
        folder = require_folder(source)
    checkpoint = choose_checkpoint(folder, new.step)
    require_steps_left(checkpoint, new.set.get(STEPS))
    begun_anew = NewRun.model_construct(
        yaml=new.yaml if new.yaml is not None else source.yaml,
        set=new.set,
        name=new.name or f"{source.name} (fork)",
        force=new.force or source.forced,
        trust=new.trust,
        loop_id=source.loop_id,
        resume=source.id,
    )
    return queue(supervisor, settings, begun_anew, checkpoint)


def edit(
    session: Session, settings: Settings, supervisor: Supervisor, run_id: str, change: EditRun
) -> RunRow:
    """Change hot fields of a run in progress, which reports them in an `edit` event."""
    row = repository.get_run(session, run_id)
    if RunStateName(row.state).is_final:
        raise Conflict("run.ended", f"the run is {row.state}; it can no longer be changed")
    language.check_edit(row.yaml, change.changes, settings)
    if not supervisor.ask(run_id, EditRequest(changes=dict(change.changes), by=change.by)):
        raise Conflict("run.not_ready", f"the run is {row.state} and accepts no changes yet")
    return row


def require_no_writer(folder: Path) -> None:
    """A run has only one writer: refuse to start another or to remove its folder."""
    if (by := holder(folder)) is not None:
        raise Conflict(
            "run.held",
            f"the run is still being written by {by.words}; it can be resumed or deleted when that "
            "process has ended",
        )


def require_folder(row: RunRow) -> Path:
    folder = Path(row.folder)
    if not folder.is_dir():
        raise Conflict("run.no_folder", f"the folder of run {row.id} is gone: {folder}")
    return folder


def new_run_id(name: str) -> str:
    """`grpo-arithmetic-20260102-030405-1a2b`: readable, sortable, safe in paths and commands."""
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_ID_STEM].strip("-") or "run"
    return f"{stem}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def clean_name(name: str | None) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", name or "").strip()[:MAX_NAME]


DELETED = ".deleted-"


def delete(session: Session, settings: Settings, supervisor: Supervisor, run_id: str) -> None:
    """Remove an ended run. Its folder is renamed first, removed after the commit and renamed back
    after a rollback. Folders outside of the runs folder stay, and so do files in `run.storage`."""
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
    """The run's folder, renamed so that no scan finds it."""
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
