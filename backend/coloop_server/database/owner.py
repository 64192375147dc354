"""The SQL of the one row that says which server owns the database."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import CursorResult, delete, update
from sqlalchemy.orm import Session

from coloop_server.database.tables import ServerRow

ONLY = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    folder_id: str
    """Of the data folder: the same folder, the same id."""
    token: str
    """Of the process."""
    place: str
    """Where it runs, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOwner:
    owner: Owner
    beat_at: datetime


def read_owner(session: Session) -> KnownOwner | None:
    row = session.get(ServerRow, ONLY)
    if row is None:
        return None
    owner = Owner(folder_id=row.folder_id, token=row.token, place=row.place)
    return KnownOwner(owner=owner, beat_at=row.beat_at)


def take(session: Session, owner: Owner, before: Owner | None) -> None:
    """Become the owner after `before`; IntegrityError where somebody else was faster."""
    if before is not None:
        session.expunge_all()
        session.execute(delete(ServerRow).where(ServerRow.token == before.token))
    session.add(
        ServerRow(
            id=ONLY,
            folder_id=owner.folder_id,
            token=owner.token,
            place=owner.place,
            beat_at=datetime.now(UTC),
        )
    )
    session.flush()


def beat(session: Session, owner: Owner) -> bool:
    """Say that the owner lives; False when the row is somebody else's."""
    tell = update(ServerRow).where(ServerRow.id == ONLY, ServerRow.token == owner.token)
    result = session.execute(tell.values(beat_at=datetime.now(UTC)))
    return isinstance(result, CursorResult) and result.rowcount == 1


def release(session: Session, owner: Owner) -> None:
    session.execute(delete(ServerRow).where(ServerRow.token == owner.token))
