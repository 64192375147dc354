"""The service on real files: SQLite in a temporary folder, a real driver script, real processes."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.servers import SOURCES, Server, environment_of, servers, settings_in
from tests.backend.signed_in import signed_in

from coloop_server.settings import Settings

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
    monkeypatch.setenv("PYTHONPATH", SOURCES)


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
    return settings_in(tmp_path)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """The application in this process, addressed as a browser does."""
    with signed_in(settings) as client:
        yield client


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Ask again until the answer is truthy; fails with the last answer after the deadline. The
    longer it takes, the seldomer: who asks has the processor that the answer waits for."""

    def ask(question: Callable[[], Any], seconds: float = 120.0) -> Any:
        began = time.monotonic()
        while not (answer := question()):
            waited = time.monotonic() - began
            if waited > seconds:
                pytest.fail(f"not within {seconds} s; the last answer was {answer!r}")
            time.sleep(min(max(waited / 10, 0.02), 0.2))
        return answer

    return ask


@pytest.fixture
def run_until(client: TestClient, eventually: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Wait until a run is in one of the states, and give it."""

    def wait(run_id: str, *states: str, seconds: float = 120.0) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            run: dict[str, Any] = client.get(f"/api/runs/{run_id}").json()
            is_over = run["state"] in ("finished", "failed", "stopped")
            assert run["state"] in states or not is_over, run
            return run if run["state"] in states else None

        found: dict[str, Any] = eventually(reached, seconds)
        return found

    return wait


@pytest.fixture
def server_environment(settings: Settings, sources_on_path: None) -> dict[str, str]:
    """The settings as the environment of a server process."""
    return environment_of(settings)


@pytest.fixture
def start_server(server_environment: dict[str, str]) -> Iterator[Callable[..., Server]]:
    """Start servers; all are ended when the test is over."""
    with servers(server_environment) as start:
        yield start
