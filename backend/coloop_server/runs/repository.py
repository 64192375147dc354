"""The SQL of runs."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Integer,
    Text,
    Update,
    and_,
    bindparam,
    cast,
    delete,
    func,
    literal,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, defer

from coloop.runtime.run_files.events import RunError, RunStateName
from coloop_server.database.tables import RunLogRow, RunRow, UtcDateTime
from coloop_server.errors import Invalid, NotFound
from coloop_server.runs.folder import Stamp
from coloop_server.runs.summary import Summary

OUTLINE = defer(RunRow.yaml, raiseload=True)
"""Lists and watchers do not need the loop's text."""
MOST_RELATED = 200
"""Runs of one loop that are compared."""
UNFINISHED = tuple(state.value for state in RunStateName if not state.is_final)


def get_run(session: Session, run_id: str) -> RunRow:
    return found(session.get(RunRow, run_id), run_id)


def get_outline(session: Session, run_id: str) -> RunRow:
    return found(find_outline(session, run_id), run_id)


def find_outline(session: Session, run_id: str) -> RunRow | None:
    return session.get(RunRow, run_id, options=[OUTLINE])


def found(row: RunRow | None, run_id: str) -> RunRow:
    if row is None:
        raise NotFound("run.not_found", f"there is no run {run_id!r}")
    return row


def delete_run(session: Session, run_id: str) -> bool:
    """Remove the row of an ended run; False if it is in progress."""
    remove = delete(RunRow).where(RunRow.id == run_id, RunRow.state.not_in(UNFINISHED))
    result = session.execute(remove, execution_options={"synchronize_session": False})
    return isinstance(result, CursorResult) and result.rowcount == 1


def list_naming(session: Session, run_id: str) -> Sequence[RunRow]:
    """Other runs whose loop contains the id of a run, oldest first."""
    query = select(RunRow).where(RunRow.yaml.contains(run_id, autoescape=True), RunRow.id != run_id)
    return session.scalars(query.order_by(RunRow.created_at, RunRow.id)).all()


def list_containing(session: Session, text: str) -> Sequence[RunRow]:
    """The newest runs whose loop contains a text, newest first."""
    query = select(RunRow).where(RunRow.yaml.contains(text, autoescape=True))
    return session.scalars(query.order_by(RunRow.created_at.desc(), RunRow.id).limit(1000)).all()


def list_children(session: Session, ids: Sequence[str]) -> Sequence[RunRow]:
    """Runs that started from checkpoints of some others, oldest first."""
    query = select(RunRow).where(RunRow.parent_id.in_(ids))
    return session.scalars(query.order_by(RunRow.created_at, RunRow.id).limit(MOST_RELATED)).all()


def list_finished_naming(session: Session, name: str) -> Sequence[RunRow]:
    """The newest finished runs whose loop contains a name, oldest first."""
    query = select(RunRow).where(
        RunRow.state == RunStateName.FINISHED, RunRow.yaml.contains(name, autoescape=True)
    )
    newest = query.order_by(RunRow.created_at.desc(), RunRow.id).limit(MOST_RELATED)
    return session.scalars(newest).all()[::-1]


def list_unfinished(session: Session) -> Sequence[RunRow]:
    query = select(RunRow).where(RunRow.state.in_(UNFINISHED)).order_by(RunRow.created_at)
    return session.scalars(query).all()


QUEUED = RunRow.state == RunStateName.QUEUED
QUEUE_ORDER = (RunRow.priority.desc(), RunRow.queue_place, RunRow.created_at, RunRow.id)


def list_queue(session: Session) -> Sequence[RunRow]:
    query = select(RunRow).options(OUTLINE).where(QUEUED)
    return session.scalars(query.order_by(*QUEUE_ORDER)).all()


def queue_ids(session: Session) -> Sequence[str]:
    return session.scalars(select(RunRow.id).where(QUEUED).order_by(*QUEUE_ORDER)).all()


def next_place(session: Session) -> int:
    """The place after all queued runs."""
    query = select(func.max(RunRow.queue_place)).where(QUEUED)
    last = session.scalars(query).one()
    return 0 if last is None else last + 1


def claim_queued(session: Session, count: int, launcher: str) -> list[RunRow]:
    """Move the next queued runs to `starting`, without those stopped meanwhile."""
    query = select(RunRow.id).where(QUEUED).order_by(*QUEUE_ORDER).limit(count)
    claimed = []
    for run_id in session.scalars(query).all():
        start = update(RunRow).where(RunRow.id == run_id, QUEUED)
        start = start.values(
            state=RunStateName.STARTING.value,
            launcher=func.coalesce(RunRow.launcher, launcher),
            message=None,
            error=None,
            ended_at=None,
        )
        if changed(session, start) and (row := session.get(RunRow, run_id)) is not None:
            claimed.append(row)
    return claimed


def unqueue(session: Session, run_id: str) -> bool:
    """Stop a queued run; False if it is no longer queued."""
    stop = update(RunRow).where(RunRow.id == run_id, QUEUED)
    return changed(
        session,
        stop.values(
            state=RunStateName.STOPPED.value,
            message="stopped before it was started",
            ended_at=datetime.now(UTC),
        ),
    )


def mark_stopping(session: Session, run_id: str) -> bool:
    """Note that a run was asked to stop; False if it has ended."""
    ask = update(RunRow).where(RunRow.id == run_id, RunRow.state.in_(UNFINISHED))
    asked_at = func.coalesce(RunRow.stop_asked_at, bindparam(None, datetime.now(UTC), UtcDateTime))
    return changed(session, ask.values(state=RunStateName.STOPPING.value, stop_asked_at=asked_at))


def requeue(session: Session, run_id: str, *, attempt: int, forced: bool) -> bool:
    """Queue an ended run for another attempt; False if it is no longer ended."""
    again = update(RunRow).where(RunRow.id == run_id, RunRow.state.not_in(UNFINISHED))
    return changed(
        session,
        again.values(
            state=RunStateName.QUEUED.value,
            queue_place=next_place(session),
            attempt=attempt,
            resume_of=run_id,
            forced=forced,
            launcher=None,
            handle=null(),
            message=None,
            error=null(),
            ended_at=None,
            stop_asked_at=None,
        ),
    )


def changed(session: Session, statement: Update) -> bool:
    """Whether an update with a condition on the row's state changed a row."""
    result = session.execute(statement, execution_options={"synchronize_session": "fetch"})
    return isinstance(result, CursorResult) and result.rowcount == 1


def find_in(session: Session, folder: str) -> RunRow | None:
    return session.scalars(select(RunRow).where(RunRow.folder == folder).limit(1)).one_or_none()


def list_stamps(session: Session) -> dict[str, Stamp]:
    """Stamps of the event files when they were last read, by run folder."""
    query = select(RunRow.folder, RunLogRow.size, RunLogRow.mtime_ns)
    rows = session.execute(query.join(RunLogRow, RunLogRow.run_id == RunRow.id))
    return {folder: Stamp(size, mtime_ns) for folder, size, mtime_ns in rows}


def get_kept(session: Session, run_id: str) -> dict[str, Any] | None:
    """Saved state of the last reader of the run's event file."""
    return session.scalars(select(RunLogRow.kept).where(RunLogRow.run_id == run_id)).one_or_none()


def put_kept(session: Session, run_id: str, stamp: Stamp, kept: dict[str, Any]) -> None:
    session.merge(RunLogRow(run_id=run_id, size=stamp.size, mtime_ns=stamp.mtime_ns, kept=kept))


def new_row(
    *, id: str, name: str, folder: str, yaml: str, created_at: datetime | None = None
) -> RunRow:
    """A row with only the text of the loop."""
    return RunRow(
        id=id,
        name=name,
        state=RunStateName.QUEUED.value,
        folder=folder,
        yaml=yaml,
        forced=False,
        tags=[],
        priority=0,
        queue_place=0,
        attempt=1,
        metrics={},
        raised_alerts=[],
        acknowledged={},
        created_at=created_at or datetime.now(UTC),
    )


def apply_summary(row: RunRow, summary: Summary, last_seq: int) -> None:
    """Update a row from the run's own files."""
    row.last_seq = last_seq or row.last_seq
    row.heartbeat_at = summary.heartbeat_at or row.heartbeat_at
    if summary.attempt < row.attempt:
        return  # the files still tell of the attempt before
    row.attempt = summary.attempt
    row.step, row.steps_total = summary.step, summary.steps_total
    if row.metrics != summary.metrics:
        row.metrics = dict(summary.metrics)
    if row.raised_alerts != summary.alerts:
        row.raised_alerts = list(summary.alerts)
    row.started_at = summary.started_at or row.started_at
    if summary.state is None:
        return
    is_asked = row.stop_asked_at is not None and not summary.state.is_final
    row.state = (RunStateName.STOPPING if is_asked else summary.state).value
    row.message, row.error = summary.message, summary.error
    row.ended_at = summary.ended_at


def end(row: RunRow, state: RunStateName, message: str, error: RunError | None = None) -> None:
    """Close a run whose files have no final event."""
    row.state = state.value
    row.message = message
    row.error = error.model_dump(exclude_none=True) if error is not None else None
    row.ended_at = datetime.now(UTC)


NEVER = datetime.fromisoformat("9999-01-01T00:00:00+00:00")


class Sort(StrEnum):
    """Order of a list of runs: `name` and `state` ascending, the others descending."""

    CREATED = "created"
    ENDED = "ended"
    NAME = "name"
    STATE = "state"
    STEP = "step"

    @property
    def is_rising(self) -> bool:
        return self in (Sort.NAME, Sort.STATE)

    def key(self) -> ColumnElement[Any]:
        """The sort key, never null. Runs in progress come before ended ones."""
        match self:
            case Sort.CREATED:
                return RunRow.created_at.expression
            case Sort.ENDED:
                return func.coalesce(RunRow.ended_at, literal(NEVER, UtcDateTime()))
            case Sort.NAME:
                return func.lower(RunRow.name)
            case Sort.STATE:
                return RunRow.state.expression
            case Sort.STEP:
                return func.coalesce(RunRow.step, -1)

    def read(self, given: Any) -> ColumnElement[Any]:
        """A key from a cursor."""
        if self in (Sort.CREATED, Sort.ENDED):
            return literal(datetime.fromisoformat(given), UtcDateTime())
        if self is Sort.STEP:
            return literal(int(given), Integer())
        return literal(str(given), Text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    state: RunStateName | None = None
    loop_id: str | None = None
    tag: str | None = None
    search: str | None = None
    """Words, each in name, id, state or a tag."""

    def conditions(self) -> list[ColumnElement[bool]]:
        wanted: list[ColumnElement[bool]] = []
        if self.state is not None:
            wanted.append(RunRow.state == self.state)
        if self.loop_id is not None:
            wanted.append(RunRow.loop_id == self.loop_id)
        tags = cast(RunRow.tags, Text)
        if self.tag is not None:
            wanted.append(tags.contains(json.dumps(self.tag), autoescape=True))
        for word in (self.search or "").split():
            columns = (RunRow.name, RunRow.id, RunRow.state, tags)
            wanted.append(or_(*(column.icontains(word, autoescape=True) for column in columns)))
        return wanted


@dataclass(frozen=True, slots=True)
class Page:
    rows: Sequence[RunRow]
    total: int
    next: str | None
    """Cursor of the next page; None for the last page."""


def list_page(
    session: Session,
    wanted: Filter,
    *,
    limit: int,
    offset: int = 0,
    sort: Sort = Sort.CREATED,
    cursor: str | None = None,
) -> Page:
    """Runs without the texts of their loops. A page starts after the last run of the previous page
    by sort key and id, so that new and deleted runs shift nothing."""
    conditions = wanted.conditions()
    total = session.scalars(select(func.count()).select_from(RunRow).where(*conditions)).one()
    key = sort.key()
    query = select(RunRow, key).options(OUTLINE).where(*conditions)
    if cursor is not None:
        query = query.where(behind(sort, key, cursor))
    order = (key.asc(), RunRow.id.asc()) if sort.is_rising else (key.desc(), RunRow.id.desc())
    page = session.execute(query.order_by(*order).limit(limit + 1).offset(offset)).all()
    rows = [row for row, _ in page[:limit]]
    has_more = len(page) > limit
    return Page(rows, total, write_cursor(sort, *page[limit - 1]) if has_more else None)


def behind(sort: Sort, key: ColumnElement[Any], cursor: str) -> ColumnElement[bool]:
    """Only runs after the one that the cursor describes."""
    try:
        told, given, run_id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        value = sort.read(given)
        is_ours = told == sort.value and isinstance(run_id, str)
    except (ValueError, TypeError):
        is_ours = False
    if not is_ours:
        raise Invalid(
            "run.cursor",
            f"the cursor {cursor!r} does not belong to a list sorted by {sort}; start without one",
        )
    if sort.is_rising:
        return or_(key > value, and_(key == value, RunRow.id > run_id))
    return or_(key < value, and_(key == value, RunRow.id < run_id))


def write_cursor(sort: Sort, row: RunRow, key: Any) -> str:
    given = key.isoformat() if isinstance(key, datetime) else key
    text = json.dumps([sort.value, given, row.id])
    return base64.urlsafe_b64encode(text.encode()).decode()


def list_tags(session: Session) -> list[str]:
    texts = session.scalars(select(cast(RunRow.tags, Text)).distinct())
    return sorted({tag for text in texts for tag in json.loads(text)})
