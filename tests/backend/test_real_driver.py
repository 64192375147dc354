"""The service with the real `coloop run`: what the fake driver of the other tests stands for."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in
from tests.forked import drivers

from coloop.runtime.run_files.events import Gauges, RunEvent
from coloop_server.settings import Settings

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="the engine is not installed")


@pytest.fixture
def driver() -> Iterator[tuple[str, ...]]:
    """`coloop run`, loaded."""
    with TemporaryDirectory() as folder, drivers(Path(folder)) as command:
        yield tuple(command)


@pytest.fixture(
    params=[
        pytest.param(("--local",), id="local"),
        pytest.param((), id="ray", marks=pytest.mark.slow),
    ]
)
def real(
    settings: Settings, request: pytest.FixtureRequest, driver: tuple[str, ...]
) -> Iterator[TestClient]:
    """In one process; and, which starts a Ray for each run, as it is."""
    settings = settings.model_copy(update={"driver": (*driver, *request.param)})
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
        TypeAdapter(RunEvent).validate_python(one)
    folder = Path(real.get(f"/api/runs/{run_id}").json()["folder"])
    Gauges.model_validate(json.loads((folder / "gauges.json").read_text()))
    assert real.get(f"/api/runs/{fork}/report").status_code == 200
    assert real.get(f"/api/runs/{fork}/samples").json()["rows"][0]["completion"] is not None
    assert min(one["step"] for one in events(fork) if one["type"] == "stage.started") > stopped_at


@pytest.mark.slow
def test_a_fork_has_what_was_set_and_goes_on_from_the_checkpoint(
    settings: Settings, loop: str, eventually: Callable[..., Any], driver: tuple[str, ...]
) -> None:
    """Fields that no run takes while it goes on, as the dialog sends them."""
    with signed_in(settings.model_copy(update={"driver": (*driver, "--local")})) as client:

        def ended(run_id: str) -> dict[str, Any]:
            final = ("finished", "failed")
            shown = f"/api/runs/{run_id}"
            eventually(lambda: client.get(shown).json()["state"] in final, 200)
            found: dict[str, Any] = client.get(shown).json()
            return found

        def forked(values: dict[str, Any]) -> dict[str, Any]:
            body = {"step": 2, "set": values}
            return ended(client.post(f"/api/runs/{parent}/fork", json=body).json()["id"])

        def texts(run_id: str) -> list[str]:
            rows = client.get(f"/api/runs/{run_id}/samples").json()["rows"]
            return [row["completion"] for row in rows if row["step"] == 3]

        kept = loop + "run: {checkpoint_every: 1}\n"
        parent = client.post("/api/runs", json={"yaml": kept}).json()["id"]
        assert ended(parent)["state"] == "finished"

        as_it_was, seeded = forked({}), forked({"run.seed": 7})
        fields = {
            "nodes.actor.rollout.completions_per_prompt": 2,
            "nodes.problems.rows_per_step": 4,
        }
        smaller = forked(fields)
        refused = forked({"nodes.actor.training.optimizer.name": "sgd"})
        path = f"/api/runs/{parent}/fork"
        over = client.post(path, json={"step": 2, "set": {"schedule.steps": 2}})
        wrong = client.post(path, json={"set": {"run.seed": "a"}})

        assert [one["state"] for one in (as_it_was, seeded, smaller)] == ["finished"] * 3
        assert texts(as_it_was["id"]) == texts(parent)
        assert texts(seeded["id"]) != texts(parent)
        assert (Path(seeded["folder"]) / "spec.yaml").read_text().count("seed: 7") == 1
        assert len(texts(smaller["id"])) < len(texts(parent))
        assert refused["state"] == "failed"
        assert "`training.optimizer.name`" in refused["error"]["message"]
        assert "set them back" in refused["error"]["message"]
        assert (over.status_code, over.json()["code"]) == (409, "run.nothing_left")
        assert "set it to 3 or more" in over.json()["message"]
        assert wrong.status_code == 422
        assert "a whole number is expected" in wrong.json()["message"]
