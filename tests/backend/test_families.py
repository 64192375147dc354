"""Trees of forks, and the main metric of runs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from tests.backend.signed_in import found_run

from coloop_server.settings import Settings

RunUntil = Callable[..., dict[str, Any]]
METRIC = "actor.reward/mean"


def test_forks_of_forks_are_a_tree_with_what_changed_and_what_came_of_it(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    measured = f"{loop}run: {{seed: 4, best: {METRIC}}}\n"
    first = client.post("/api/runs", json={"yaml": measured}).json()["id"]
    run_until(first, "finished")
    path = f"/api/runs/{first}/fork"
    second = client.post(path, json={"set": {"schedule.steps": 5}}).json()["id"]
    run_until(second, "finished")
    rate = {"nodes.actor.training.optimizer.lr": 1e-5}
    third = client.post(f"/api/runs/{second}/fork", json={"set": rate}).json()["id"]
    run_until(third, "finished")
    other = client.post("/api/runs", json={"yaml": measured}).json()["id"]

    trees = [client.get(f"/api/runs/{one}/family").json()["runs"] for one in (first, third)]

    assert trees[0] == trees[1]
    shown = [(run["run"], run["parent"], run["from_step"]) for run in trees[0]]
    assert shown == [(first, None, None), (second, first, 3), (third, second, 3)]
    assert trees[0][1]["changes"] == ["schedule.steps: 3 → 5"]
    assert trees[0][2]["changes"] == ["actor · training.optimizer.lr: 0.0003 → 1e-05"]
    assert [run["run"] for run in client.get(f"/api/runs/{other}/family").json()["runs"]] == [other]
    outcome = trees[0][0]["outcome"]
    assert outcome["metric"] == METRIC
    assert (outcome["start"], outcome["end"]) == (
        {"step": 1, "value": 0.1},
        {"step": 3, "value": 0.3},
    )
    run_until(other, "finished")


def test_a_fork_from_a_terminal_names_its_parent(
    client: TestClient, loop: str, run_until: RunUntil, settings: Settings
) -> None:
    first = client.post("/api/runs", json={"yaml": loop}).json()["id"]
    folder = Path(run_until(first, "finished")["folder"])
    typed = settings.runs_dir / "typed"
    shutil.copytree(folder, typed)
    (typed / "parent.json").write_text(json.dumps({"run": first, "step": 3}))

    found_run(client, "typed")

    assert client.get("/api/runs/typed").json()["parent_id"] == first
    [_, fork] = client.get(f"/api/runs/{first}/family").json()["runs"]
    assert (fork["run"], fork["from_step"]) == ("typed", 3)


def test_a_parent_that_says_nothing_is_none(
    client: TestClient, loop: str, run_until: RunUntil, settings: Settings
) -> None:
    first = client.post("/api/runs", json={"yaml": loop}).json()["id"]
    folder = Path(run_until(first, "finished")["folder"])
    for number, text in enumerate(("[]", '{"run": 3, "step": 1}', '{"run": "a", "step": true}')):
        copy = settings.runs_dir / f"odd-{number}"
        shutil.copytree(folder, copy)
        (copy / "parent.json").write_text(text)
        found_run(client, copy.name)

        assert client.get(f"/api/runs/{copy.name}").json()["parent_id"] is None


def test_outcomes_of_runs_that_measure_something_and_that_do_not(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    finished = client.post("/api/runs", json={"yaml": loop}).json()["id"]
    run_until(finished, "finished")
    measured = client.post("/api/runs", json={"yaml": f"{loop}run: {{best: {METRIC}}}\n"}).json()
    run_until(measured["id"], "finished")

    asked = {"runs": [finished, measured["id"]]}
    found = client.get("/api/runs/outcomes", params=asked).json()["outcomes"]

    assert [one["run"] for one in found] == asked["runs"]
    assert (found[0]["metric"], found[0]["end"]) == ("exact.score/mean", None)
    assert (found[1]["metric"], found[1]["title"]) == (METRIC, "Mean reward")
    assert found[1]["best"] == {"step": 3, "value": 0.3}
    missing = client.get("/api/runs/outcomes", params={"runs": ["nowhere"]})
    assert missing.status_code == 404
