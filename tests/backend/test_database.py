"""The database: migrations, SQLite's settings, and PostgreSQL where it is installed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.dialects import sqlite
from tests.backend.postgres import is_up, running
from tests.backend.signed_in import signed_in

from coloop_server.database.connect import migrate, open_engine, open_sessions
from coloop_server.database.tables import Base, UtcDateTime
from coloop_server.errors import Unavailable
from coloop_server.runs import repository
from coloop_server.settings import Settings


def test_migrations_make_the_tables_that_the_code_knows(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'coloop.db'}")
    migrate(engine)
    migrate(engine)

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, Base.metadata)

    assert differences == []
    engine.dispose()


def test_sqlite_writes_ahead_and_keeps_references(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'coloop.db'}")

    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert connection.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
    engine.dispose()


def test_times_come_back_as_utc(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'coloop.db'}")
    migrate(engine)
    sessions = open_sessions(engine)
    noon = datetime(2026, 1, 2, 12, tzinfo=timezone(timedelta(hours=2)))
    with sessions.begin() as session:
        session.add(repository.new_row(id="r", name="r", folder="/r", yaml="", created_at=noon))

    with sessions() as session:
        assert repository.get_run(session, "r").created_at == noon
        assert repository.get_run(session, "r").created_at.tzinfo == UTC
    engine.dispose()


EAST = timezone(timedelta(hours=5, minutes=30))
MOMENT = datetime(2026, 1, 2, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize("zone", [UTC, EAST, None])
def test_a_time_of_any_session_is_the_same_moment(zone: timezone | None) -> None:
    """What drivers give: SQLite no zone at all, PostgreSQL the one of its session."""
    given = MOMENT.astimezone(zone) if zone else MOMENT.replace(tzinfo=None)

    read = UtcDateTime().process_result_value(given, sqlite.dialect())

    assert read == MOMENT
    assert read.tzinfo is UTC


def test_a_time_without_a_zone_is_not_written() -> None:
    with pytest.raises(ValueError, match="time zone"):
        UtcDateTime().process_bind_param(MOMENT.replace(tzinfo=None), sqlite.dialect())


def test_a_queued_run_is_claimed_or_taken_back_never_both(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'coloop.db'}")
    migrate(engine)
    sessions = open_sessions(engine)
    with sessions.begin() as session:
        session.add(repository.new_row(id="r", name="r", folder="/r", yaml=""))

    with sessions.begin() as session:
        assert repository.unqueue(session, "r")
    with sessions.begin() as session:
        assert repository.claim_queued(session, 5, "process") == []
        assert not repository.unqueue(session, "r")
        assert not repository.mark_stopping(session, "r")
        assert repository.requeue(session, "r", attempt=2, forced=False)
        claimed = repository.claim_queued(session, 5, "process")

    assert [(row.id, row.state, row.attempt) for row in claimed] == [("r", "starting", 2)]
    engine.dispose()


@pytest.mark.parametrize("address", ["nonsense", "oracle://x", "sqlite:////nowhere/at/all.db"])
def test_an_address_that_cannot_be_used_says_so(address: str) -> None:
    with pytest.raises(Unavailable):
        migrate(open_engine(address))


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of these tests' own, as an address."""
    with running() as address:
        yield address


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
def test_times_on_postgresql_are_the_same_in_every_zone(
    postgres: str, eventually: object, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    assert callable(eventually)
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setenv("PGTZ", zone)
    eventually(lambda: is_up(postgres), 60)
    engine = open_engine(postgres)
    sessions = open_sessions(engine)
    with sessions.begin() as session:
        session.add(repository.new_row(id=zone, name="r", folder="/r", yaml="", created_at=MOMENT))
    with sessions() as session:
        assert session.execute(text("SHOW timezone")).scalar_one() == zone
        assert repository.get_run(session, zone).created_at == MOMENT
    engine.dispose()


def test_the_service_works_on_postgresql(
    postgres: str, settings: Settings, loop: str, eventually: object
) -> None:
    assert callable(eventually)
    eventually(lambda: is_up(postgres), 60)
    settings = settings.model_copy(update={"database_url": SecretStr(postgres)})
    with signed_in(settings) as client:
        made = client.post("/api/loops", json={"yaml": loop}).json()
        headers = {"If-Match": made["revision"]}
        path = f"/api/loops/{made['id']}"
        saved = client.put(path, json={"yaml": loop + "# new\n"}, headers=headers)
        stale = client.put(path, json={"yaml": loop + "# old\n"}, headers=headers)
        run_id = client.post("/api/runs", json={"yaml": loop, "loop_id": made["id"]}).json()["id"]
        eventually(lambda: client.get(f"/api/runs/{run_id}").json()["state"] == "finished")
        deleted = client.delete(path)

    assert saved.json()["version"] == 2
    assert stale.status_code == 409
    assert deleted.status_code == 204
    engine = open_engine(postgres)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()
