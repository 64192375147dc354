"""The tables. They hold what the files of a run do not: loops, their versions, who started what.

The events of a run are never copied here; a row of `runs` has only a summary of them, so that
lists need no files. Rows have no relationships: a repository asks for what it needs.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """Times are UTC everywhere. SQLite forgets the zone, so it is put back on reading; PostgreSQL
    gives times in the zone of its session, so they are brought back to UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone; times are kept in UTC")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        datetime: UtcDateTime(),
        dict[str, Any]: JSON(),
        list[dict[str, Any]]: JSON(),
        list[str]: JSON(),
        str: Text(),
    }


class LoopRow(Base):
    __tablename__ = "loops"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str]
    version: Mapped[int]
    revision: Mapped[str] = mapped_column(String(32))
    yaml: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class LoopVersionRow(Base):
    __tablename__ = "loop_versions"
    __table_args__ = (UniqueConstraint("loop_id", "version", name="uq_loop_versions_version"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    loop_id: Mapped[str] = mapped_column(
        String(32), ForeignKey("loops.id", ondelete="CASCADE"), index=True
    )
    version: Mapped[int]
    revision: Mapped[str] = mapped_column(String(32))
    name: Mapped[str]
    yaml: Mapped[str]
    label: Mapped[str | None]
    reason: Mapped[str] = mapped_column(String(16))
    edit_session: Mapped[str | None] = mapped_column(String(64))
    restored_from: Mapped[int | None]
    started_at: Mapped[datetime]
    saved_at: Mapped[datetime]


class BlockRow(Base):
    """A part of a loop that a user saved."""

    __tablename__ = "blocks"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    title: Mapped[str]
    description: Mapped[str]
    yaml: Mapped[str]
    """Its nodes, edges, layout and open ports."""
    created_at: Mapped[datetime]


class RunRow(Base):
    __tablename__ = "runs"
    __table_args__ = (Index("ix_runs_state", "state"), Index("ix_runs_created_at", "created_at"))

    id: Mapped[str] = mapped_column(String(128), primary_key=True)
    name: Mapped[str]
    state: Mapped[str] = mapped_column(String(16))
    folder: Mapped[str]
    yaml: Mapped[str]
    spec_hash: Mapped[str | None] = mapped_column(String(128))
    loop_id: Mapped[str | None] = mapped_column(String(32), index=True)
    loop_version: Mapped[int | None]
    parent_id: Mapped[str | None] = mapped_column(String(128))
    resume_of: Mapped[str | None] = mapped_column(String(128))
    forced: Mapped[bool]
    tags: Mapped[list[str]]
    priority: Mapped[int]
    """Of queued runs the greatest starts first."""
    queue_place: Mapped[int]
    """Within a priority, the lowest starts first."""
    launcher: Mapped[str | None] = mapped_column(String(32))
    handle: Mapped[dict[str, Any] | None]
    attempt: Mapped[int]
    step: Mapped[int | None]
    steps_total: Mapped[int | None]
    last_seq: Mapped[int | None]
    metrics: Mapped[dict[str, Any]]
    raised_alerts: Mapped[list[dict[str, Any]]]
    """In the format of `Summary.alerts`."""
    acknowledged: Mapped[dict[str, Any]]
    """Times at which a user acknowledged alerts, by their `seq`."""
    message: Mapped[str | None]
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    stop_asked_at: Mapped[datetime | None]

    @property
    def alerts(self) -> list[dict[str, Any]]:
        """The alerts, with their time of acknowledgement."""
        return [
            {**alert, "acknowledged_at": self.acknowledged.get(str(alert["seq"]))}
            for alert in self.raised_alerts
        ]


class RunLogRow(Base):
    """How far a run's event file was read; the next server resumes there."""

    __tablename__ = "run_logs"

    run_id: Mapped[str] = mapped_column(
        String(128), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    size: Mapped[int] = mapped_column(BigInteger)
    mtime_ns: Mapped[int] = mapped_column(BigInteger)
    kept: Mapped[dict[str, Any]]
    """State of a `Watch`."""


class ServerRow(Base):
    """The one server that starts and closes the runs of this database."""

    __tablename__ = "servers"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    folder_id: Mapped[str] = mapped_column(String(32))
    token: Mapped[str] = mapped_column(String(32))
    place: Mapped[str]
    beat_at: Mapped[datetime]
