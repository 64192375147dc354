"""Clients of the application in this process: programs bring the server's token, pages a ticket."""

import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.testclient import TestClient

from coloop_server.app import create_app
from coloop_server.database.connect import migrate, open_engine
from coloop_server.private import ensure_private_folder
from coloop_server.session.tickets import own_secret
from coloop_server.settings import Settings

ADDRESS = "http://127.0.0.1:8321"


def bearer(settings: Settings) -> dict[str, str]:
    """The header of a program that knows the token."""
    ensure_private_folder(settings.data_dir)
    return {"Authorization": f"Bearer {own_secret(settings)}"}


def signed_in(settings: Settings) -> TestClient:
    """A client of a server whose database has all tables: to make them takes longer than the rest
    of its start."""
    ensure_private_folder(settings.data_dir)
    database = settings.data_dir / "coloop.db"
    if settings.database_url is None and not database.exists():
        database.write_bytes(empty_database())
        database.chmod(0o600)
    return TestClient(create_app(settings), base_url=ADDRESS, headers=bearer(settings))


def ticket_of(browser: TestClient, token: str) -> str:
    """The ticket that a page is given for the token; it is sent with every further request."""
    answer = browser.post("/api/session", json={"token": token})
    ticket: str = answer.raise_for_status().json()["ticket"]
    browser.headers["Authorization"] = f"Bearer {ticket}"
    return ticket


def found_run(client: TestClient, run_id: str) -> str:
    """The id of a run whose folder was written by hand, once the server has found it."""
    deadline = time.monotonic() + 60
    while client.get(f"/api/runs/{run_id}").status_code == 404 and time.monotonic() < deadline:
        client.get("/api/runs")  # looks for new folders
    return run_id


@cache
def empty_database() -> bytes:
    """A file of SQLite with all tables and no row."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "coloop.db"
        engine = open_engine(f"sqlite:///{file}")
        migrate(engine)
        engine.dispose()
        return file.read_bytes()
