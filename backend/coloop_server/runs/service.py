"""What can be done with runs. Specs are checked here exactly as the command line checks them."""

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from coloop.events import EditRequest, RunStateName
from coloop.run_lock import holder
from coloop.spec.io import content_hash
from coloop_server import language
from coloop_server.database.tables import RunRow
from coloop_server.errors import Conflict
from coloop_server.loops.repository import version_of
from coloop_server.runs import repository
from coloop_server.runs.forking import choose_checkpoint, prepare_fork
from coloop_server.runs.schemas import EditRun, ForkRun, NewRun
from coloop_server.runs.supervisor import Supervisor
from coloop_server.settings import Settings

MAX_NAME = 200
MAX_ID_STEM = 60

SEED = "run.seed"


def create(session: Session, settings: Settings, new: NewRun) -> RunRow:
    """Check a loop and queue a run of it."""
    checkpoint = None
    if new.resume is not None:
        source = repository.get_run(session, new.resume)
        checkpoint = choose_checkpoint(require_folder(source), None)
    return queue(
        session,
        settings,
        yaml=new.yaml,
        overrides=new.set if new.seed is None else {**new.set, SEED: new.seed},
        name=new.name,
        force=new.force,
        trust=new.trust,
        loop_id=new.loop_id,
        parent_id=new.resume,
        checkpoint=checkpoint,
    )


def queue(
    session: Session,
    settings: Settings,
    *,
    yaml: str,
    overrides: Mapping[str, Any],
    name: str | None,
    force: bool,
    trust: bool,
    loop_id: str | None,
    parent_id: str | None,
    checkpoint: Path | None,
) -> RunRow:
    text = language.with_overrides(yaml, overrides)
    language.require_own_code(text, settings, is_confirmed=trust)
    spec = language.require_runnable(text, force=force, roots=settings.roots)
    run_id = new_run_id(spec.name)
    row = repository.new_row(
        id=run_id,
        name=clean_name(name) or spec.name,
        folder=str(settings.runs_dir / run_id),
        yaml=text,
    )
    row.spec_hash = content_hash(spec)
    row.loop_id = loop_id
    row.loop_version = None if loop_id is None else version_of(session, loop_id, yaml)
    row.parent_id = parent_id
    row.forced = force
    if checkpoint is not None:
        prepare_fork(checkpoint, settings.runs_dir / run_id, text)
        row.resume_of = run_id
    session.add(row)
    session.flush()
    return row


def rename(session: Session, run_id: str, name: str) -> RunRow:
    row = repository.get_outline(session, run_id)
    row.name = clean_name(name) or row.name
    return row


def stop(session: Session, run_id: str) -> RunRow:
    """Ask a run to write a checkpoint and stop. A queued one is taken out of the queue."""
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
        raise Conflict("run.finished", "the run has finished; fork it to go on from its end")
    folder = require_folder(row)
    if folder.parent != settings.runs_dir:
        raise Conflict("run.elsewhere", "an imported run cannot be resumed in place; fork it")
    require_no_writer(folder)
    is_forced = force or row.forced
    language.require_own_code(row.yaml, settings, is_confirmed=trust)
    language.require_runnable(row.yaml, force=is_forced, roots=settings.roots)
    if not repository.requeue(session, run_id, attempt=row.attempt + 1, forced=is_forced):
        raise Conflict("run.going_on", "the run goes on again already")
    session.refresh(row)
    return row


def fork(session: Session, settings: Settings, run_id: str, new: ForkRun) -> RunRow:
    """Queue a new run that starts from a checkpoint of another one."""
    source = repository.get_run(session, run_id)
    checkpoint = choose_checkpoint(require_folder(source), new.step)
    return queue(
        session,
        settings,
        yaml=new.yaml if new.yaml is not None else source.yaml,
        overrides=new.set,
        name=new.name or f"{source.name} (fork)",
        force=new.force or source.forced,
        trust=new.trust,
        loop_id=source.loop_id,
        parent_id=source.id,
        checkpoint=checkpoint,
    )


def edit(
    session: Session, settings: Settings, supervisor: Supervisor, run_id: str, change: EditRun
) -> RunRow:
    """Change hot fields of a run that goes on; the run tells of it by an `edit` event."""
    row = repository.get_run(session, run_id)
    if RunStateName(row.state).is_final:
        raise Conflict("run.ended", f"the run is {row.state}; nothing can be changed any more")
    language.check_edit(row.yaml, change.changes, settings)
    if not supervisor.ask(run_id, EditRequest(changes=dict(change.changes), by=change.by)):
        raise Conflict("run.not_ready", f"the run is {row.state} and takes no changes yet")
    return row


def require_no_writer(folder: Path) -> None:
    """A run has one writer: nobody starts another beside it, or takes its folder away."""
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
