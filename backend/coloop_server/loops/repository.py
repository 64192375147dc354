"""The SQL of loops."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import CursorResult, delete, select, update
from sqlalchemy.orm import Session

from coloop_server.database.tables import LoopRow, LoopVersionRow
from coloop_server.errors import NotFound


def get_loop(session: Session, loop_id: str) -> LoopRow:
    row = session.get(LoopRow, loop_id)
    if row is None:
        raise NotFound("loop.not_found", f"there is no loop {loop_id!r}")
    return row


def list_loops(session: Session, limit: int) -> Sequence[LoopRow]:
    query = select(LoopRow).order_by(LoopRow.updated_at.desc(), LoopRow.id).limit(limit)
    return session.scalars(query).all()


def add_loop(session: Session, row: LoopRow) -> None:
    session.add(row)
    session.flush()
    add_version(session, row)


def replace(
    session: Session,
    row: LoopRow,
    *,
    name: str,
    yaml: str,
    revision: str,
    at: datetime,
) -> bool:
    """Save over exactly the revision that `row` shows; False when someone else was faster."""
    save = (
        update(LoopRow)
        .where(LoopRow.id == row.id, LoopRow.revision == row.revision)
        .values(name=name, yaml=yaml, revision=revision, version=row.version + 1, updated_at=at)
    )
    result = session.execute(save, execution_options={"synchronize_session": False})
    session.refresh(row)
    if not (isinstance(result, CursorResult) and result.rowcount == 1):
        return False
    add_version(session, row)
    return True


def add_version(session: Session, row: LoopRow) -> None:
    session.add(
        LoopVersionRow(
            loop_id=row.id,
            version=row.version,
            revision=row.revision,
            name=row.name,
            yaml=row.yaml,
            saved_at=row.updated_at,
        )
    )
    session.flush()


def delete_loop(session: Session, row: LoopRow) -> None:
    session.execute(delete(LoopVersionRow).where(LoopVersionRow.loop_id == row.id))
    session.execute(delete(LoopRow).where(LoopRow.id == row.id))


def list_versions(session: Session, loop_id: str, limit: int) -> Sequence[LoopVersionRow]:
    query = select(LoopVersionRow).where(LoopVersionRow.loop_id == loop_id)
    query = query.order_by(LoopVersionRow.version.desc()).limit(limit)
    return session.scalars(query).all()


def get_version(session: Session, loop_id: str, version: int) -> LoopVersionRow:
    query = select(LoopVersionRow).where(
        LoopVersionRow.loop_id == loop_id, LoopVersionRow.version == version
    )
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound("loop.version_not_found", f"loop {loop_id!r} has no version {version}")
    return row
