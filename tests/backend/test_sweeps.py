"""Sweeps over HTTP: queueing, the table, and stopping what is behind."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

RunUntil = Callable[..., dict[str, Any]]
LoopThat = Callable[[str], str]
METRIC = "actor.reward/mean"
LR = "nodes.actor.training.optimizer.lr"


def measured(loop: str) -> str:
    """The loop with a main metric that the driver of the tests reports."""
    return f"{loop}run: {{seed: 4, best: {METRIC}}}\n"


def test_values_and_seeds_are_queued_once_as_one_group(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    asked = {"yaml": measured(loop), "tried": {LR: [1e-5, 3e-5]}, "seeds": 2, "name": "rates"}

    queued = client.post("/api/sweeps", json=asked)

    assert queued.status_code == 201, queued.text
    sweep = queued.json()
    assert sweep["fields"] == [LR]
    assert [variant["label"] for variant in sweep["variants"]] == ["lr 1e-05", "lr 3e-05"]
    runs = [run for variant in sweep["variants"] for run in variant["runs"]]
    assert [run["seed"] for run in runs] == [4, 5, 4, 5]
    assert runs[0]["name"] == "rates (lr 1e-05, seed 4)"
    for run in runs:
        run_until(run["run"], "finished")

    again = client.post("/api/sweeps", json=asked).json()
    found = client.get(f"/api/sweeps/{sweep['sweep']}").json()

    assert again == found
    assert [run["run"] for one in found["variants"] for run in one["runs"]] == [
        run["run"] for run in runs
    ]
    assert (found["metric"], found["step"]) == (METRIC, 3)
    ends = [(one["end"], one["spread"], one["so_far"]) for one in found["variants"]]
    assert ends == [(pytest.approx(0.3), 0.0, pytest.approx(0.3))] * 2
    assert client.get(f"/api/runs/{runs[0]['run']}").json()["tags"] == ["sweep"]
    [listed] = client.get("/api/sweeps").json()
    assert (listed["sweep"], listed["runs"], listed["going_on"]) == (sweep["sweep"], 4, 0)
    spec = client.get(f"/api/runs/{runs[3]['run']}/spec").json()["spec"]
    assert spec["run"]["sweep"] == {"of": sweep["sweep"], "fields": [LR]}
    assert spec["nodes"]["actor"]["training"]["optimizer"]["lr"] == 3e-5

    more = client.post("/api/sweeps", json={**asked, "tried": {LR: [1e-5, 1e-4]}, "seeds": 1})

    assert [len(one["runs"]) for one in more.json()["variants"]] == [2, 2, 1]


def test_runs_of_values_that_are_behind_are_stopped(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    """One run at a time: the second value waits, and has no reading yet."""
    asked = {"yaml": measured(loop_that("steps=1 hold=60")), "tried": {LR: [1e-5, 3e-5]}}
    sweep = client.post("/api/sweeps", json={**asked, "seeds": 2}).json()
    name = sweep["sweep"]
    first, second = ([run["run"] for run in one["runs"]] for one in sweep["variants"])

    early = client.post(f"/api/sweeps/{name}/stop", json={"keep": 1})

    assert (early.status_code, early.json()["code"]) == (409, "sweep.no_losers")
    for run_id in (first[0], second[0]):
        run_until(run_id, "running")
        client.post(f"/api/runs/{run_id}/stop")
        run_until(run_id, "stopped")
    stopped = client.post(f"/api/sweeps/{name}/stop", json={"keep": 1})
    assert stopped.status_code == 202, stopped.text
    run_until(second[1], "stopped")
    assert run_until(first[1], "running")["state"] == "running"
    client.post(f"/api/runs/{first[1]}/stop", json={"force": True})
    run_until(first[1], "stopped", "failed")


def test_what_makes_no_sweep_is_refused_and_nothing_is_queued(
    client: TestClient, loop: str
) -> None:
    def refused(**change: Any) -> tuple[int, str]:
        asked = {"yaml": measured(loop), "tried": {LR: [1e-5]}, **change}
        answer = client.post("/api/sweeps", json=asked)
        return answer.status_code, answer.text

    assert "there is nothing to try" in refused(tried={})[1]
    assert "has no value to try; give one or more" in refused(tried={LR: []})[1]
    status, words = refused(tried={LR: [1e-5, "fast"]})
    assert status == 422
    assert "a value does not fit" in words
    assert "optimizer.lr" in words
    assert "there is no `speed`" in refused(tried={"nodes.actor.speed": [1]})[1]
    many = {LR: [n / 1e6 for n in range(1, 101)], "run.keep": list(range(1, 101))}
    status, words = refused(tried=many)
    assert status == 422
    assert "are 10,000 runs; a sweep has at most 200" in words
    assert refused(tried={"nodes.problems.rows_per_step": [8, 7.5]})[0] == 422
    assert client.get("/api/runs").json() == []
    assert client.get("/api/sweeps/nowhere").status_code == 404
