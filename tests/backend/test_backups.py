"""`coloop backup` and `coloop restore`: round trips, running servers, files that are none."""

import sqlite3
import stat
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.backend.postgres import sqlite_only
from tests.backend.records import add_run, content, forge, spoil, write
from tests.backend.servers import LAST_RESORT_SECONDS, environment_of
from tests.backend.signed_in import signed_in
from tests.forked import run

from coloop_server import backups
from coloop_server.backups import make_backup, restore_backup
from coloop_server.database.connect import open_engine
from coloop_server.errors import Conflict, Invalid, ServerError, Unavailable
from coloop_server.lock import DataLock
from coloop_server.settings import Settings

pytestmark = sqlite_only


@pytest.fixture
def written(settings: Settings, loop: str) -> list[Any]:
    """A loop and a run record in the database."""
    return write(settings, loop)


def test_a_round_trip_gives_every_row_back(
    settings: Settings, written: list[Any], tmp_path: Path
) -> None:
    backup = tmp_path / "saved"
    manifest = make_backup(settings, backup)
    spoil(settings)

    restored = restore_backup(settings, backup, force=True)

    assert len(written) == 4
    assert content(settings) == written
    assert manifest.rows == {"loops": 1, "loop_versions": 2, "runs": 1}
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE((settings.data_dir / "coloop.db").stat().st_mode) == 0o600
    assert restored.kept is not None
    with sqlite3.connect(restored.kept) as before:
        assert before.execute("SELECT id FROM runs").fetchall() == [("later",)]
    before.close()


def test_a_restored_database_serves(
    settings: Settings, written: list[Any], tmp_path: Path, loop: str
) -> None:
    make_backup(settings, tmp_path / "saved")
    spoil(settings)
    restore_backup(settings, tmp_path / "saved", force=True)

    with signed_in(settings) as client:
        loops = client.get("/api/loops").json()
        assert client.post("/api/loops", json={"yaml": loop}).status_code == 201

    assert len(written) == 4
    assert len(loops["loops"] if isinstance(loops, dict) else loops) == 1


def test_an_empty_data_folder_takes_a_backup(
    settings: Settings, written: list[Any], tmp_path: Path
) -> None:
    make_backup(settings, tmp_path / "saved")
    elsewhere = settings.model_copy(update={"data_dir": tmp_path / "elsewhere"})

    restored = restore_backup(elsewhere, tmp_path / "saved", force=False)

    assert restored.kept is None
    assert content(elsewhere) == written


def test_records_are_replaced_only_when_asked(
    settings: Settings, written: list[Any], tmp_path: Path
) -> None:
    make_backup(settings, tmp_path / "saved")
    add_run(settings, "later")
    before = content(settings)

    with pytest.raises(Conflict, match=r"1 loops and 2 runs; --force replaces them"):
        restore_backup(settings, tmp_path / "saved", force=False)

    assert content(settings) == before
    assert not list(settings.data_dir.glob(".restoring-*"))


def test_a_backup_never_replaces_a_file(
    settings: Settings, written: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "saved").write_text("mine")

    with pytest.raises(Conflict, match="already exists"):
        make_backup(settings, tmp_path / "saved")

    assert (tmp_path / "saved").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_where_nothing_is_there_is_nothing_to_save(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is no database"):
        make_backup(settings, tmp_path / "saved")

    assert not (tmp_path / "saved").exists()


def test_nothing_is_restored_while_a_server_holds_the_data(
    settings: Settings, written: list[Any], tmp_path: Path
) -> None:
    make_backup(settings, tmp_path / "saved")

    with DataLock(settings.data_dir), pytest.raises(Conflict, match="another coloop server uses"):
        restore_backup(settings, tmp_path / "saved", force=True)

    assert content(settings) == written


def test_a_running_server_goes_on_while_it_is_saved(
    settings: Settings, written: list[Any], tmp_path: Path, loop: str
) -> None:
    with signed_in(settings) as client:
        for number in range(5):
            assert client.post("/api/loops", json={"yaml": loop}).status_code == 201
            make_backup(settings, tmp_path / f"saved-{number}")
        with pytest.raises(Conflict):
            restore_backup(settings, tmp_path / "saved-0", force=True)
    restore_backup(settings, tmp_path / "saved-2", force=True)

    assert len([row for row in content(settings) if row[0] == "loops"]) == 1 + 3


def test_a_copy_has_no_owner(settings: Settings, tmp_path: Path) -> None:
    with signed_in(settings):
        make_backup(settings, tmp_path / "saved")
    elsewhere = settings.model_copy(update={"data_dir": tmp_path / "elsewhere"})
    restore_backup(elsewhere, tmp_path / "saved", force=False)

    with sqlite3.connect(elsewhere.data_dir / "coloop.db") as copy:
        assert copy.execute("SELECT count(*) FROM servers").fetchone() == (0,)
    copy.close()


@pytest.mark.sample(1)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_refused(
    settings: Settings, written: list[Any], tmp_path: Path, share: float
) -> None:
    make_backup(settings, tmp_path / "saved")
    whole = (tmp_path / "saved").read_bytes()
    size = archive_end(whole)
    (tmp_path / "cut").write_bytes(whole[: int(size * share)])

    with pytest.raises(Invalid, match="is not a complete backup of coloop"):
        restore_backup(settings, tmp_path / "cut", force=True)

    assert content(settings) == written


def archive_end(whole: bytes) -> int:
    """Where the content ends, before the zeros that fill a tar."""
    return len(whole.rstrip(b"\0"))


def test_a_flipped_bit_is_found_wherever_it_is(
    settings: Settings, written: list[Any], tmp_path: Path
) -> None:
    make_backup(settings, tmp_path / "saved")
    whole = (tmp_path / "saved").read_bytes()
    end = archive_end(whole)
    for place in range(0, end, max(1, end // 40)):
        spoiled = bytearray(whole)
        spoiled[place] ^= 4
        (tmp_path / "spoiled").write_bytes(spoiled)
        try:
            restore_backup(settings, tmp_path / "spoiled", force=True)
        except ServerError:
            assert content(settings) == written
        else:  # a bit of the tar's padding, or of a number that only people read
            assert content(settings) == written


@pytest.mark.sample(2)
@pytest.mark.parametrize("what", ["text", "empty", "database", "tar", "folder", "missing"])
def test_a_foreign_file_is_refused(
    settings: Settings, written: list[Any], tmp_path: Path, what: str
) -> None:
    path = tmp_path / "foreign"
    match what:
        case "text":
            path.write_text("hello\n" * 1000)
        case "empty":
            path.write_bytes(b"")
        case "database":
            path.write_bytes((settings.data_dir / "coloop.db").read_bytes())
        case "tar":
            with tarfile.open(path, "w") as tar:
                tar.add(__file__, arcname="../../evil")
        case "folder":
            path.mkdir()

    with pytest.raises(Invalid, match="is not a complete backup of coloop"):
        restore_backup(settings, path, force=True)

    assert content(settings) == written


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"coloop_backup": 2}, "a newer coloop wrote it"),
        ({"revision": "9999"}, "which this coloop does not know"),
        ({"sha256": "0" * 64}, "not the one that was saved"),
        ({"size": 10**12}, "its manifest says"),
        ({"kind": "postgresql"}, "COLOOP_DATABASE_URL names sqlite"),
        ({"kind": "oracle"}, "its manifest cannot be read"),
        ({"path": "../evil"}, "its manifest cannot be read"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(
    settings: Settings, written: list[Any], tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    manifest = make_backup(settings, tmp_path / "saved")
    given = {"revision": manifest.revision, **changes}
    forge(tmp_path / "forged", database_of(tmp_path / "saved"), **given)

    with pytest.raises(Invalid, match=told):
        restore_backup(settings, tmp_path / "forged", force=True)

    assert content(settings) == written


def database_of(backup: Path) -> bytes:
    with tarfile.open(backup) as tar:
        found = tar.extractfile(backups.DATABASE)
        assert found is not None
        return found.read()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("spoil_with", "told"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM loops; END", "holds a trigger"),
        ("CREATE VIEW v AS SELECT 1", "holds a view"),
        ("UPDATE alembic_version SET version_num = '0001'", "its manifest says"),
        ("DROP TABLE alembic_version", "its manifest says"),
    ],
)
def test_a_database_that_is_not_ours_is_refused(
    settings: Settings, written: list[Any], tmp_path: Path, spoil_with: str, told: str
) -> None:
    manifest = make_backup(settings, tmp_path / "saved")
    file = tmp_path / "spoiled.db"
    file.write_bytes(database_of(tmp_path / "saved"))
    with sqlite3.connect(file) as database:
        database.execute(spoil_with)
    database.close()
    forge(tmp_path / "forged", file.read_bytes(), revision=manifest.revision)

    with pytest.raises(Invalid, match=told):
        restore_backup(settings, tmp_path / "forged", force=True)

    assert content(settings) == written


def test_an_older_backup_is_brought_up_to_date(
    settings: Settings, tmp_path: Path, loop: str
) -> None:
    from alembic import command
    from alembic.config import Config

    from coloop_server.database.connect import MIGRATIONS

    file = tmp_path / "old.db"
    engine = open_engine(f"sqlite:///{file}")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "+1")
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    engine.dispose()
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA journal_mode=DELETE")
    database.close()
    forge(tmp_path / "forged", file.read_bytes(), revision=revision)

    restore_backup(settings, tmp_path / "forged", force=False)

    with signed_in(settings) as client:
        assert client.post("/api/loops", json={"yaml": loop}).status_code == 201


@pytest.mark.slow
def test_the_commands_save_and_restore(
    settings: Settings, written: list[Any], tmp_path: Path
) -> None:
    backup = tmp_path / "saved"

    def coloop(*arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = environment_of(settings)
        return run("-m", "coloop", *arguments, env=environment, timeout=LAST_RESORT_SECONDS)

    saved = coloop("backup", str(backup))
    spoil(settings)
    refused = coloop("restore", str(backup))
    restored = coloop("restore", str(backup), "--force")

    assert (saved.returncode, refused.returncode) == (0, 1)
    assert "1 loops, 1 runs" in saved.stdout
    assert "--force" in refused.stderr
    assert restored.returncode == 0, restored.stderr
    assert "the previous data is kept in" in restored.stdout
    assert "Traceback" not in refused.stderr
    assert content(settings) == written
