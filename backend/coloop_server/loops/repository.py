"""The SQL of loops."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import CursorResult, Select, delete, func, select, update
from sqlalchemy.orm import Session, defer

from coloop_server.database.tables import LoopRow, LoopVersionRow, RunRow
from coloop_server.errors import NotFound


def get_loop(session: Session, loop_id: str) -> LoopRow:
    row = session.get(LoopRow, loop_id)
    if row is None:
        raise NotFound("loop.not_found", f"there is no loop {loop_id!r}")
    return row


def list_loops(session: Session, limit: int) -> Sequence[LoopRow]:
    query = (
        select(LoopRow)
        .options(defer(LoopRow.yaml, raiseload=True))
        .order_by(LoopRow.updated_at.desc(), LoopRow.id)
        .limit(limit)
    )
    return session.scalars(query).all()


def mentioning(session: Session, words: Sequence[str]) -> Iterator[LoopRow]:
    """Loops whose name and text contain all words, in any case, last saved first; read lazily."""
    text = LoopRow.name + "\n" + LoopRow.yaml
    query = (
        select(LoopRow)
        .where(*(text.icontains(word, autoescape=True) for word in words))
        .order_by(LoopRow.updated_at.desc(), LoopRow.id)
    )
    yield from session.scalars(query.execution_options(yield_per=20))


def add_loop(session: Session, row: LoopRow) -> None:
    session.add(row)
    session.flush()
    add_version(session, row, reason="created")


def replace(
    session: Session,
    row: LoopRow,
    *,
    name: str,
    yaml: str,
    version: int,
    revision: str,
    at: datetime,
) -> bool:
    """Overwrite exactly the revision in `row`; False if it was changed meanwhile."""
    save = (
        update(LoopRow)
        .where(LoopRow.id == row.id, LoopRow.revision == row.revision)
        .values(name=name, yaml=yaml, revision=revision, version=version, updated_at=at)
    )
    result = session.execute(save, execution_options={"synchronize_session": False})
    session.refresh(row)
    return isinstance(result, CursorResult) and result.rowcount == 1


def add_version(
    session: Session,
    row: LoopRow,
    *,
    reason: str,
    edit_session: str | None = None,
    restored_from: int | None = None,
) -> None:
    """Add the loop's current state as a version."""
    session.add(
        LoopVersionRow(
            loop_id=row.id,
            version=row.version,
            revision=row.revision,
            name=row.name,
            yaml=row.yaml,
            label=None,
            reason=reason,
            edit_session=edit_session,
            restored_from=restored_from,
            started_at=row.updated_at,
            saved_at=row.updated_at,
        )
    )
    session.flush()


def rewrite_version(session: Session, row: LoopRow) -> None:
    """Overwrite the newest version with the loop's current state."""
    session.execute(
        update(LoopVersionRow)
        .where(LoopVersionRow.loop_id == row.id, LoopVersionRow.version == row.version)
        .values(name=row.name, yaml=row.yaml, revision=row.revision, saved_at=row.updated_at)
    )


def is_working(session: Session, row: LoopRow, edit_session: str, *, since: datetime) -> bool:
    """Whether this session began the newest version after `since`, and the version is loose."""
    query = loose(row.id).where(
        LoopVersionRow.version == row.version,
        LoopVersionRow.edit_session == edit_session,
        LoopVersionRow.started_at > since,
    )
    return session.scalars(query).first() is not None


def loose(loop_id: str) -> Select[int]:
    """Numbers of versions that may be pruned: no label, no run, and only an edit."""
    has_run = select(RunRow.id).where(
        RunRow.loop_id == loop_id, RunRow.loop_version == LoopVersionRow.version
    )
    return select(LoopVersionRow.version).where(
        LoopVersionRow.loop_id == loop_id,
        LoopVersionRow.label.is_(None),
        LoopVersionRow.reason == "edited",
        ~has_run.exists(),
    )


def prune_versions(session: Session, loop_id: str, keep: int) -> None:
    """Remove loose versions except the newest ones."""
    query = loose(loop_id).order_by(LoopVersionRow.version.desc()).offset(keep).limit(1)
    last = session.scalars(query).first()
    if last is None:
        return
    old = loose(loop_id).where(LoopVersionRow.version <= last)
    session.execute(
        delete(LoopVersionRow).where(
            LoopVersionRow.loop_id == loop_id, LoopVersionRow.version.in_(old)
        ),
        execution_options={"synchronize_session": False},
    )


def delete_loop(session: Session, row: LoopRow) -> None:
    session.execute(delete(LoopVersionRow).where(LoopVersionRow.loop_id == row.id))
    session.execute(delete(LoopRow).where(LoopRow.id == row.id))


def list_versions(
    session: Session, loop_id: str, *, limit: int, before: int | None
) -> list[tuple[LoopVersionRow, int]]:
    """Versions without text, newest first, with their numbers of runs."""
    runs = (
        select(func.count())
        .where(RunRow.loop_id == loop_id, RunRow.loop_version == LoopVersionRow.version)
        .correlate(LoopVersionRow)
        .scalar_subquery()
    )
    query = select(LoopVersionRow, runs).options(defer(LoopVersionRow.yaml, raiseload=True))
    query = query.where(LoopVersionRow.loop_id == loop_id)
    if before is not None:
        query = query.where(LoopVersionRow.version < before)
    query = query.order_by(LoopVersionRow.version.desc()).limit(limit)
    return [(row, count) for row, count in session.execute(query)]


def count_versions(session: Session, loop_id: str) -> int:
    query = select(func.count()).where(LoopVersionRow.loop_id == loop_id)
    return session.scalars(query).one()


def count_runs(session: Session, loop_id: str, version: int) -> int:
    query = select(func.count()).where(RunRow.loop_id == loop_id, RunRow.loop_version == version)
    return session.scalars(query).one()


def version_of(session: Session, loop_id: str, yaml: str) -> int | None:
    """The newest version with exactly this text."""
    query = select(func.max(LoopVersionRow.version)).where(
        LoopVersionRow.loop_id == loop_id, LoopVersionRow.yaml == yaml
    )
    return session.scalars(query).one()


def get_version(session: Session, loop_id: str, version: int) -> LoopVersionRow:
    query = select(LoopVersionRow).where(
        LoopVersionRow.loop_id == loop_id, LoopVersionRow.version == version
    )
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound("loop.version_not_found", f"loop {loop_id!r} has no version {version}")
    return row
