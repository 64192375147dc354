"""The service on real files: SQLite in a temporary folder, a real driver script, real processes."""

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
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in

from coloop_server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
LAST_RESORT_SECONDS = 240.0
"""For a server that neither prints its address nor ends: shorter than the time of a test, so that
what it has said is told."""
DRIVER = (sys.executable, str(Path(__file__).parent / "fake_driver.py"))

LOOP = """\
# A loop that a person wrote.
coloop: 1
name: grpo-arithmetic
description: steps=3
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, completions_per_prompt: 4, max_new_tokens: 8}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: adamw, lr: 3.0e-4}}   # kept as it is written
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""


@pytest.fixture(autouse=True)
def sources_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a test starts import the packages of this repository."""
    paths = [str(ROOT / "engine"), str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.fixture
def loop() -> str:
    """A small loop that validates, with a comment and a number format worth keeping."""
    return LOOP


@pytest.fixture
def loop_that() -> Callable[[str], str]:
    """The loop with other words for the fake driver, e.g. `steps=2 hold=30`."""
    return lambda words: LOOP.replace("description: steps=3", f"description: {words}")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path / "data",
        runs_dir=tmp_path / "runs",
        allowed_roots=(tmp_path / "work",),
        driver=DRIVER,
        launcher="process",
        keep_runs=False,
        stop_seconds=20,
    )


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """The application in this process, addressed as a browser does."""
    with signed_in(settings) as client:
        yield client


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Ask again until the answer is truthy; fails with the last answer after the deadline."""

    def ask(question: Callable[[], Any], seconds: float = 30.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (answer := question()):
            if time.monotonic() > deadline:
                pytest.fail(f"not within {seconds} s; the last answer was {answer!r}")
            time.sleep(0.02)
        return answer

    return ask


@pytest.fixture
def run_until(client: TestClient, eventually: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Wait until a run is in one of the states, and give it."""

    def wait(run_id: str, *states: str, seconds: float = 30.0) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            run: dict[str, Any] = client.get(f"/api/runs/{run_id}").json()
            is_over = run["state"] in ("finished", "failed", "stopped")
            assert run["state"] in states or not is_over, run
            return run if run["state"] in states else None

        found: dict[str, Any] = eventually(reached, seconds)
        return found

    return wait


@dataclass
class Server:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    url: str
    lines: "queue.Queue[str]"
    token: str = ""
    """As the address that it printed says."""

    @property
    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30, trust_env=False, headers=self.headers)

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


@pytest.fixture
def server_environment(settings: Settings, sources_on_path: None) -> dict[str, str]:
    """The settings as the environment of a server process."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "COLOOP_CORES" or not name.startswith("COLOOP_")
    }
    return {
        **kept,
        "PYTHONUNBUFFERED": "1",
        "COLOOP_DATA_DIR": str(settings.data_dir),
        "COLOOP_RUNS_DIR": str(settings.runs_dir),
        "COLOOP_ALLOWED_ROOTS": str(settings.allowed_roots[0]),
        "COLOOP_DRIVER": f'["{DRIVER[0]}", "{DRIVER[1]}"]',
        "COLOOP_LAUNCHER": "process",
        "COLOOP_KEEP_RUNS": "true",
    }


@pytest.fixture
def start_server(server_environment: dict[str, str]) -> Iterator[Callable[..., Server]]:
    """Start servers; all are ended when the test is over."""
    servers: list[Server] = []

    def start(*options: str, **environment: str) -> Server:
        process = subprocess.Popen(
            [sys.executable, "-m", "coloop_server", "--no-browser", "--port", "0", *options],
            env={**server_environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=pump, args=(process, lines), daemon=True).start()
        server = Server(process, "", lines)
        servers.append(server)
        server.url, token = wait_for_url(server)
        server.token = token or environment.get("COLOOP_TOKEN", "")
        return server

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.kill()


def pump(process: "subprocess.Popen[str]", lines: "queue.Queue[str]") -> None:
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
        if found := re.search(r"coloop is at (http://[^/\s]+)(?:/\?token=(\S+))?", line):
            return found[1], found[2] or ""
    pytest.fail(f"the server did not start:\n{seen}")


def next_line(server: Server, deadline: float) -> str:
    """What a server says next; nothing where it has ended, or the deadline has come."""
    try:
        return server.lines.get(timeout=max(deadline - time.monotonic(), 0.0))
    except queue.Empty:
        return ""
