"""Loops and run records for tests of backups, and backups that somebody forged."""

import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text
from tests.backend.signed_in import signed_in

from coloop_server import backups
from coloop_server.database.connect import open_engine, open_sessions
from coloop_server.runs import repository
from coloop_server.settings import Settings

MOMENT = datetime(2026, 1, 2, 6, 30, tzinfo=UTC)


def write(settings: Settings, loop: str) -> list[Any]:
    with signed_in(settings) as client:
        made = client.post("/api/loops", json={"yaml": loop}).json()
        client.put(
            f"/api/loops/{made['id']}",
            json={"yaml": loop + "# new\n"},
            headers={"If-Match": made["revision"]},
        )
    add_run(settings, "kept")
    return content(settings)


def add_run(settings: Settings, name: str) -> None:
    engine = open_engine(settings.database)
    with open_sessions(engine).begin() as session:
        row = repository.new_row(id=name, name=name, folder=f"/{name}", yaml="", created_at=MOMENT)
        row.state = "finished"
        session.add(row)
    engine.dispose()


def content(settings: Settings) -> list[Any]:
    """Every row of loops, versions and runs."""
    engine = open_engine(settings.database)
    with engine.connect() as connection:
        found = [
            [table, *map(str, row)]
            for table in ("loops", "loop_versions", "runs")
            for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY id"))
        ]
    engine.dispose()
    return found


def spoil(settings: Settings) -> None:
    """Other records in the place of those that were saved."""
    engine = open_engine(settings.database)
    with engine.begin() as connection:
        for table in ("loop_versions", "loops", "runs"):
            connection.execute(text(f"DELETE FROM {table}"))
    engine.dispose()
    add_run(settings, "later")


def forge(backup: Path, database: bytes, **changes: Any) -> None:
    """A backup of this content, with a manifest that says so but for the changes."""
    manifest = {
        "coloop_backup": 1,
        "kind": "sqlite",
        "revision": "0005",
        "made_at": "2026-01-01",
        "size": len(database),
        "sha256": hashlib.sha256(database).hexdigest(),
        "rows": {},
        **changes,
    }
    with tarfile.open(backup, "w") as tar:
        for name, data in (
            (backups.MANIFEST, json.dumps(manifest).encode()),
            (backups.DATABASE, database),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
