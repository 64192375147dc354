"""Backups of PostgreSQL, where it is installed."""

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.backend.postgres import is_up, running
from tests.backend.records import content, forge, spoil, write
from tests.backend.signed_in import signed_in

from coloop_server.backups import make_backup, restore_backup
from coloop_server.database.connect import migrate, open_engine
from coloop_server.errors import Conflict, Unavailable
from coloop_server.settings import Settings


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of these tests' own, as an address."""
    with running() as address:
        yield address


def test_postgresql_round_trip(
    postgres: str,
    settings: Settings,
    tmp_path: Path,
    loop: str,
    eventually: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    eventually(lambda: is_up(postgres), 60)
    secret = postgres.replace("coloop@", "coloop:hunter2@")
    settings = settings.model_copy(update={"database_url": SecretStr(secret)})
    before = write(settings, loop)
    seen: list[str] = []
    run = subprocess.run

    def watched(arguments: list[Any], **options: Any) -> Any:
        seen.extend([*map(str, arguments), *options["env"].values()])
        return run(arguments, **options)

    monkeypatch.setattr(subprocess, "run", watched)
    make_backup(settings, tmp_path / "saved")
    spoil(settings)
    with pytest.raises(Conflict, match="--force"):
        restore_backup(settings, tmp_path / "saved", force=False)
    restore_backup(settings, tmp_path / "saved", force=True)

    assert content(settings) == before
    assert stat.S_IMODE((tmp_path / "saved").stat().st_mode) == 0o600
    assert seen
    assert not any("hunter2" in one for one in seen)
    with signed_in(settings) as client:
        assert client.post("/api/loops", json={"yaml": loop}).status_code == 201


def test_postgresql_is_not_restored_while_a_server_has_it(
    postgres: str, settings: Settings, tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    eventually(lambda: is_up(postgres), 60)
    settings = settings.model_copy(update={"database_url": SecretStr(postgres)})
    elsewhere = settings.model_copy(update={"data_dir": tmp_path / "elsewhere"})
    with signed_in(settings):
        make_backup(settings, tmp_path / "saved")
        with pytest.raises(Conflict, match="uses this database"):
            restore_backup(elsewhere, tmp_path / "saved", force=True)


def test_what_pg_restore_cannot_read_leaves_everything(
    postgres: str, settings: Settings, tmp_path: Path, loop: str, eventually: Callable[..., Any]
) -> None:
    eventually(lambda: is_up(postgres), 60)
    settings = settings.model_copy(update={"database_url": SecretStr(postgres)})
    migrate(open_engine(postgres))
    before = write(settings, loop) if not content(settings) else content(settings)
    manifest = make_backup(settings, tmp_path / "saved")
    forge(tmp_path / "forged", os.urandom(999), kind="postgresql", revision=manifest.revision)

    with pytest.raises(Unavailable, match="pg_restore failed"):
        restore_backup(settings, tmp_path / "forged", force=True)

    assert content(settings) == before
