"""Two servers that reach one database: one of them owns the runs, the other does not start."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import update
from tests.backend.signed_in import signed_in

from coloop_server.database.connect import migrate, open_engine, open_sessions
from coloop_server.database.tables import ServerRow
from coloop_server.errors import Conflict
from coloop_server.lock import LEASE, DatabaseLease
from coloop_server.settings import Settings


@pytest.fixture
def neighbour(settings: Settings, tmp_path: Path) -> Settings:
    """Another data folder on the same database."""
    return Settings(
        data_dir=tmp_path / "neighbour",
        runs_dir=settings.runs_dir,
        database_url=SecretStr(settings.database),
        driver=settings.driver,
        launcher="process",
    )


def test_a_second_server_on_one_data_folder_does_not_start(settings: Settings) -> None:
    with signed_in(settings), pytest.raises(Conflict, match="another coloop server"):
        signed_in(settings).__enter__()


def test_a_second_server_on_one_database_does_not_start(
    settings: Settings, neighbour: Settings, loop: str
) -> None:
    with signed_in(settings) as first:
        with pytest.raises(Conflict, match="another coloop server") as refused:
            signed_in(neighbour).__enter__()
        assert refused.value.body.code == "database.in_use"
        assert str(settings.data_dir) in str(refused.value)
        assert first.post("/api/runs", json={"yaml": loop}).status_code == 201

    with signed_in(neighbour) as second:
        assert len(second.get("/api/runs").json()) == 1


def test_a_server_that_gives_no_sign_of_life_is_followed_by_another(
    settings: Settings, neighbour: Settings, loop: str
) -> None:
    with signed_in(settings) as first:
        app = first.app
        with app.state.sessions.begin() as session:  # type: ignore[attr-defined]
            session.execute(
                update(ServerRow).values(beat_at=datetime.now(UTC) - LEASE - timedelta(seconds=1))
            )
        with signed_in(neighbour) as second:
            lease = DatabaseLease(app.state.sessions, settings.data_dir)  # type: ignore[attr-defined]
            assert not lease.is_ours()
            app.state.supervisor.step_down()  # type: ignore[attr-defined]

            refused = first.post("/api/runs", json={"yaml": loop})
            taken = second.post("/api/runs", json={"yaml": loop})

    assert refused.status_code == 503
    assert refused.json()["code"] == "database.lost"
    assert taken.status_code == 201


def test_the_owner_is_told_when_it_lost_the_database(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'coloop.db'}")
    migrate(engine)
    sessions = open_sessions(engine)
    leases = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        leases.append(DatabaseLease(sessions, tmp_path / name))
    one, two = leases
    one.claim()
    assert one.is_ours()

    with pytest.raises(Conflict):
        two.claim()
    one.close()
    two.claim()

    assert two.is_ours()
    assert not one.is_ours()
    engine.dispose()
