"""Servers in processes of their own, on real files and with the fake driver."""

import contextlib
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.backend.postgres import new_database
from tests.forked import Forked, begin

from coloop_server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
LAST_RESORT_SECONDS = 240.0
"""For a server that neither prints its address nor ends: shorter than the time of a test, so that
what it has said is told."""
DRIVER = (sys.executable, str(Path(__file__).parent / "fake_driver.py"))
SOURCES = os.pathsep.join(
    filter(None, [str(ROOT / "engine"), str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")])
)
"""Where processes that a test starts find the packages of this repository."""


@dataclass
class Server:
    """A server in a process of its own."""

    process: "subprocess.Popen[str] | Forked"
    url: str
    lines: "queue.Queue[str]"
    token: str = ""
    """As the address that it printed says."""

    @property
    def http(self) -> httpx.Client:
        """A client of its own for each question. There is no certificate to check, and to read
        those of the world takes longer than the answer."""
        return httpx.Client(
            base_url=self.url, timeout=30, trust_env=False, verify=False, headers=self.headers
        )

    @property
    def headers(self) -> dict[str, str]:
        """What a program sends that knows the token."""
        return {"Authorization": f"Bearer {self.token}"}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def settings_in(folder: Path) -> Settings:
    """Of a server with the fake driver."""
    return Settings(
        data_dir=folder / "data",
        runs_dir=folder / "runs",
        allowed_roots=(folder / "work",),
        driver=DRIVER,
        launcher="process",
        keep_runs=False,
        stop_seconds=20,
        database_url=new_database(),
    )


def environment_of(settings: Settings) -> dict[str, str]:
    """The settings as the environment of a server process."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "COLOOP_CORES" or not name.startswith("COLOOP_")
    }
    url = settings.database_url
    database = {} if url is None else {"COLOOP_DATABASE_URL": url.get_secret_value()}
    return {
        **kept,
        **database,
        "PYTHONPATH": SOURCES,
        "PYTHONUNBUFFERED": "1",
        "COLOOP_DATA_DIR": str(settings.data_dir),
        "COLOOP_RUNS_DIR": str(settings.runs_dir),
        "COLOOP_ALLOWED_ROOTS": str(settings.allowed_roots[0]),
        "COLOOP_DRIVER": f'["{DRIVER[0]}", "{DRIVER[1]}"]',
        "COLOOP_LAUNCHER": "process",
        "COLOOP_KEEP_RUNS": "true",
    }


@contextlib.contextmanager
def servers(usual: dict[str, str]) -> Iterator[Callable[..., Server]]:
    """Start servers in this environment; all are ended in the end."""
    started: list[Server] = []

    def start(*options: str, **environment: str) -> Server:
        command = ("-m", "coloop_server", "--no-browser", "--port", "0", *options)
        process = begin(*command, env={**usual, **environment}, stderr=subprocess.STDOUT)
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=pump, args=(process, lines), daemon=True).start()
        server = Server(process, "", lines)
        started.append(server)
        server.url, token = wait_for_url(server)
        server.token = token or environment.get("COLOOP_TOKEN", "")
        return server

    try:
        yield start
    finally:
        for server in started:
            if server.process.poll() is None:
                server.kill()


def pump(process: "subprocess.Popen[str] | Forked", lines: "queue.Queue[str]") -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError):
        for line in process.stdout:
            lines.put(line)
    lines.put("")


def wait_for_url(server: Server) -> tuple[str, str]:
    """The address that a server prints, and the token in it; fails as soon as it has ended without
    one."""
    seen, deadline = "", time.monotonic() + LAST_RESORT_SECONDS
    while line := next_line(server, deadline):
        seen += line
        if found := re.search(r"coloop is at (http://[^/\s]+)(?:/#token=(\S+))?", line):
            return found[1], found[2] or ""
    pytest.fail(f"the server did not start:\n{seen}")


def next_line(server: Server, deadline: float) -> str:
    """What a server says next; nothing where it has ended, or the deadline has come."""
    try:
        return server.lines.get(timeout=max(deadline - time.monotonic(), 0.0))
    except queue.Empty:
        return ""
