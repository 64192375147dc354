"""A server that is killed or stopped while runs go on, and the one that comes after it."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from tests.backend.postgres import kept_handle

from coloop_server.processes import identity

LoopThat = Callable[[str], str]
StartServer = Callable[..., Any]
Eventually = Callable[..., Any]


def get(server: Any, path: str) -> Any:
    with server.http as http:
        return http.get(path).json()


def post(server: Any, path: str, **body: Any) -> Any:
    with server.http as http:
        return http.post(path, json=body).json()


def test_a_killed_server_finds_its_run_again_and_goes_on(
    start_server: StartServer, loop_that: LoopThat, eventually: Eventually
) -> None:
    first = start_server()
    run_id = post(first, "/api/runs", yaml=loop_that("steps=2 hold=90"))["id"]
    queued = post(first, "/api/runs", yaml=loop_that("steps=1"))["id"]
    eventually(lambda: get(first, f"/api/runs/{run_id}")["step"] == 2)
    first.kill()

    second = start_server()
    found = get(second, f"/api/runs/{run_id}")
    assert found["state"] == "running"
    assert get(second, f"/api/runs/{queued}")["state"] == "queued"
    post(second, f"/api/runs/{run_id}/stop")

    eventually(lambda: get(second, f"/api/runs/{run_id}")["state"] == "stopped")
    eventually(lambda: get(second, f"/api/runs/{queued}")["state"] == "finished")
    events = get(second, f"/api/runs/{run_id}/events")["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


@pytest.mark.slow
def test_a_run_that_ended_while_no_server_ran_is_told_as_it_ended(
    start_server: StartServer, loop_that: LoopThat, eventually: Eventually
) -> None:
    first = start_server()
    run_id = post(first, "/api/runs", yaml=loop_that("steps=4 seconds=0.3"))["id"]
    eventually(lambda: get(first, f"/api/runs/{run_id}")["state"] == "running")
    folder = get(first, f"/api/runs/{run_id}")["folder"]
    assert first.stop() == 0
    eventually(lambda: os.path.exists(f"{folder}/report.json"))

    second = start_server()

    run = eventually(lambda: ended(get(second, f"/api/runs/{run_id}")))
    assert run["state"] == "finished"
    assert run["step"] == 4


def test_a_driver_killed_while_no_server_ran_leaves_a_failed_run(
    start_server: StartServer, loop_that: LoopThat, eventually: Eventually, settings: Any
) -> None:
    first = start_server()
    run_id = post(first, "/api/runs", yaml=loop_that("steps=1 hold=90"))["id"]
    eventually(lambda: get(first, f"/api/runs/{run_id}")["state"] == "running")
    pid = kept_handle(settings, run_id)["pid"]
    first.kill()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: identity(pid) is None)

    second = start_server()

    run = eventually(lambda: ended(get(second, f"/api/runs/{run_id}")))
    assert run["state"] == "failed"
    assert run["error"]["code"] == "run.driver_died"
    last = get(second, f"/api/runs/{run_id}/events")["events"][-1]
    assert last["type"] == "run.state"
    assert last["state"] == "failed"


@pytest.mark.slow
def test_runs_end_with_a_server_that_is_told_so(
    start_server: StartServer, loop_that: LoopThat, eventually: Eventually
) -> None:
    first = start_server(COLOOP_KEEP_RUNS="false")
    run_id = post(first, "/api/runs", yaml=loop_that("steps=1 hold=90"))["id"]
    eventually(lambda: get(first, f"/api/runs/{run_id}")["state"] == "running")
    assert first.stop() == 0

    second = start_server()

    run = eventually(lambda: ended(get(second, f"/api/runs/{run_id}")))
    assert run["state"] in ("stopped", "failed")


def ended(run: dict[str, Any]) -> dict[str, Any] | None:
    return run if run["state"] in ("finished", "failed", "stopped") else None
