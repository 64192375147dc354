"""Controls of a finished run: what they change, their runs over seeds, and the comparison."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from coloop.spec.io import load

RunUntil = Callable[..., dict[str, Any]]
LoopThat = Callable[[str], str]
METRIC = "actor.reward/mean"


def measured(loop: str) -> str:
    """The loop with a main metric that the driver of the tests reports."""
    return f"{loop}run: {{seed: 4, best: {METRIC}}}\n"


def finished(client: TestClient, loop: str, run_until: RunUntil) -> str:
    new = {"yaml": measured(loop), "name": "first", "tags": ["mine"]}
    run_id: str = client.post("/api/runs", json=new).json()["id"]
    run_until(run_id, "finished")
    return run_id


def test_choices_say_what_each_control_changes(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    run_id = finished(client, loop, run_until)

    found = client.get(f"/api/runs/{run_id}/controls/choices").json()

    assert (found["learner"], found["learners"], found["metric"]) == ("actor", ["actor"], METRIC)
    choices = {choice["kind"]: choice for choice in found["choices"]}
    assert choices["shuffled"]["has"]
    assert choices["shuffled"]["says"].startswith("The scores of `exact` reach other rows")
    assert any("exact_shuffled" in one["words"] for one in choices["shuffled"]["changes"])
    assert not choices["frozen"]["has"]
    assert "`actor` trains alone" in choices["frozen"]["says"]
    assert choices["frozen"]["changes"] == []


def test_a_control_is_queued_over_seeds_beside_the_whole_loop(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    run_id = finished(client, loop, run_until)
    asked = {"kind": "shuffled", "seeds": 2}

    queued = client.post(f"/api/runs/{run_id}/controls", json=asked)

    assert queued.status_code == 201, queued.text
    arms = {arm["kind"]: arm["runs"] for arm in queued.json()["arms"]}
    assert [run["seed"] for run in arms["full"]] == [4, 5]
    assert [run["seed"] for run in arms["shuffled"]] == [4, 5]
    assert arms["full"][0]["run"] == run_id
    for kind in arms:
        for run in arms[kind]:
            run_until(run["run"], "finished")

    again = client.post(f"/api/runs/{run_id}/controls", json=asked).json()

    assert {arm["kind"]: [run["run"] for run in arm["runs"]] for arm in again["arms"]} == {
        kind: [run["run"] for run in runs] for kind, runs in arms.items()
    }
    assert again["metric"] == METRIC
    full, shuffled = again["arms"]
    assert full["runs"][0]["values"][-1] == full["runs"][0]["end"]
    assert full["runs"][0]["steps"]
    assert shuffled["spread"] == 0.0
    [verdict] = again["comparisons"]
    assert verdict == {"kind": "shuffled", "difference": 0.0, "leads": False}
    control = client.get(f"/api/runs/{arms['shuffled'][1]['run']}").json()
    assert control["name"] == "first (shuffled, seed 5)"
    assert control["tags"] == ["mine", "control"]
    relation = load(Path(control["folder"]) / "spec.yaml").run.control
    assert relation is not None
    assert (relation.of, relation.kind) == (run_id, "shuffled")


def test_a_deleted_run_of_a_control_is_run_again(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    run_id = finished(client, loop, run_until)
    asked = {"kind": "random", "seeds": 1}
    path = f"/api/runs/{run_id}/controls"
    [_, random] = client.post(path, json=asked).json()["arms"]
    first = random["runs"][0]["run"]
    run_until(first, "finished")
    client.delete(f"/api/runs/{first}")

    [_, again] = client.post(path, json=asked).json()["arms"]

    assert [run["seed"] for run in again["runs"]] == [4]
    assert again["runs"][0]["run"] != first


def test_what_makes_no_control_is_refused_in_words(
    client: TestClient, loop: str, loop_that: LoopThat, run_until: RunUntil
) -> None:
    run_id = finished(client, loop, run_until)
    going_on = client.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")}).json()["id"]
    run_until(going_on, "running")

    def refused(run: str, **body: object) -> tuple[int, str]:
        answer = client.post(f"/api/runs/{run}/controls", json=body)
        return answer.status_code, json.dumps(answer.json())

    assert refused(going_on, kind="shuffled")[0] == 409
    status, words = refused(run_id, kind="frozen")
    assert status == 422
    assert "`actor` trains alone" in words
    assert refused(run_id, kind="full")[0] == 422
    status, words = refused(run_id, kind="shuffled", learner="exact")
    assert status == 422
    assert "`exact` does not learn" in words
    assert refused(run_id, kind="shuffled", seeds=0)[0] == 422
    client.post(f"/api/runs/{going_on}/stop", json={"force": True})
    run_until(going_on, "stopped", "failed")


def test_the_report_of_a_run_names_its_controls(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    run_id = finished(client, loop, run_until)
    asked = {"kind": "constant", "seeds": 1}
    arms = client.post(f"/api/runs/{run_id}/controls", json=asked).json()["arms"]
    control = arms[1]["runs"][0]["run"]
    run_until(control, "finished")
    folder = Path(client.get(f"/api/runs/{run_id}").json()["folder"])
    (folder / "report.json").write_text(json.dumps({"phase": "main"}), encoding="utf-8")

    report = client.get(f"/api/runs/{run_id}/report").json()

    assert report["controls"] == [
        {"run": control, "kind": "constant", "seed": 4, "state": "finished"}
    ]
    nested = client.post(f"/api/runs/{control}/controls", json=asked)
    assert nested.status_code == 409
    assert "itself a control" in nested.text


def test_the_report_of_a_run_shows_its_controls_seeds_and_parent(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    run_id = finished(client, loop, run_until)
    asked = {"kind": "shuffled", "seeds": 2}
    queued = client.post(f"/api/runs/{run_id}/controls", json=asked).json()
    for arm in queued["arms"]:
        for run in arm["runs"]:
            run_until(run["run"], "finished")

    found = client.get(f"/api/runs/{run_id}/experiment").json()

    assert (found["run"], found["state"], found["seed"]) == (run_id, "finished", 4)
    assert [(one["kind"], one["runs"]) for one in found["controls"]] == [("shuffled", 2)]
    assert found["duration"]["steps"] == 3
    assert found["spent"]["gpus"] == 0
    control = next(arm for arm in queued["arms"] if arm["kind"] == "shuffled")["runs"][0]["run"]
    assert client.get(f"/api/runs/{control}/experiment").json()["control"] is not None

    text = client.get(f"/api/runs/{run_id}/experiment.md")

    assert text.headers["content-type"].startswith("text/markdown")
    assert text.text.startswith(f"# grpo-arithmetic: run {run_id}")


def test_a_run_that_is_not_there_has_no_report(client: TestClient) -> None:
    assert client.get("/api/runs/none/experiment").status_code == 404
    assert client.get("/api/runs/none/experiment.md").status_code == 404
