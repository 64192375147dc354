"""The service with the real `coloop run`: what the fake driver of the other tests stands for."""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in

from coloop.events import EVENT_ADAPTER, Gauges
from coloop_server.settings import Settings

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="the engine is not installed")


@pytest.fixture(
    params=[
        pytest.param(("--local",), id="local"),
        pytest.param((), id="ray", marks=pytest.mark.slow),
    ]
)
def real(settings: Settings, request: pytest.FixtureRequest) -> Iterator[TestClient]:
    """In one process; and, which starts a Ray for each run, as it is."""
    driver = (sys.executable, "-m", "coloop", "run", *request.param)
    settings = settings.model_copy(update={"driver": driver})
    with signed_in(settings) as client:
        yield client


def test_a_loop_trains_stops_resumes_and_is_forked(
    real: TestClient, loop: str, eventually: Callable[..., Any]
) -> None:
    long = loop.replace("schedule: {steps: 3}", "schedule: {steps: 5000}")

    def state(run_id: str) -> str:
        run = real.get(f"/api/runs/{run_id}").json()
        assert run["state"] != "failed", run
        found: str = run["state"]
        return found

    known: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def events(run_id: str) -> list[dict[str, Any]]:
        """All so far; only what is new since the last question is asked for."""
        found = known[run_id]
        params = {"after": found[-1]["seq"] if found else 0, "limit": 10000}
        found += real.get(f"/api/runs/{run_id}/events", params=params).json()["events"]
        return found

    def steps(run_id: str) -> int:
        return int(real.get(f"/api/runs/{run_id}").json()["step"] or 0)

    run_id = real.post("/api/runs", json={"yaml": long}).json()["id"]
    eventually(lambda: steps(run_id) >= 2, 200)
    change = {"nodes.actor.training.optimizer.lr": 1e-4}
    assert real.post(f"/api/runs/{run_id}/edit", json={"changes": change}).status_code == 202
    eventually(lambda: any(one["type"] == "edit" for one in events(run_id)), 60)
    real.post(f"/api/runs/{run_id}/stop")
    eventually(lambda: state(run_id) == "stopped", 60)
    stopped_at = steps(run_id)
    real.post(f"/api/runs/{run_id}/resume")
    eventually(lambda: steps(run_id) > stopped_at, 200)
    real.post(f"/api/runs/{run_id}/stop")
    eventually(lambda: state(run_id) == "stopped", 60)
    short = {"set": {"schedule.steps": steps(run_id) + 1}}
    fork = real.post(f"/api/runs/{run_id}/fork", json=short).json()["id"]
    eventually(lambda: state(fork) == "finished", 200)

    told = events(run_id)
    assert [one["seq"] for one in told] == list(range(1, len(told) + 1))
    assert {one["attempt"] for one in told} == {1, 2}
    for one in (*told, *events(fork)):
        EVENT_ADAPTER.validate_python(one)
    folder = Path(real.get(f"/api/runs/{run_id}").json()["folder"])
    Gauges.model_validate(json.loads((folder / "gauges.json").read_text()))
    assert real.get(f"/api/runs/{fork}/report").status_code == 200
    assert real.get(f"/api/runs/{fork}/samples").json()["rows"][0]["completion"] is not None
    assert min(one["step"] for one in events(fork) if one["type"] == "stage.started") > stopped_at
