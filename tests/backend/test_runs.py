"""Runs from the first request to the last event."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in

from coloop_server.database.connect import open_engine, open_sessions
from coloop_server.runs import repository
from coloop_server.runs.schemas import RunReport, SampleRow
from coloop_server.settings import Settings

RunUntil = Callable[..., dict[str, Any]]
LoopThat = Callable[[str], str]


def test_a_run_is_queued_started_and_finished(
    client: TestClient, loop: str, run_until: RunUntil, settings: Settings
) -> None:
    answer = client.post("/api/runs", json={"yaml": loop})

    assert answer.status_code == 201
    run = run_until(answer.json()["id"], "finished")
    assert run["name"] == "grpo-arithmetic"
    assert run["step"] == 3
    assert run["steps_total"] == 3
    assert run["metrics"] == {"actor.reward/mean": 0.3, "actor.kl": 0.01}
    assert datetime.fromisoformat(run["started_at"]) <= datetime.fromisoformat(run["ended_at"])
    assert run["error"] is None
    folder = Path(run["folder"])
    assert folder.parent == settings.runs_dir
    assert (folder / "spec.yaml").read_text() == loop


def test_events_are_paged_by_seq_without_a_gap(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop}).json()["id"]
    last = run_until(run_id, "finished")["last_seq"]

    seen: list[int] = []
    while True:
        page = client.get(f"/api/runs/{run_id}/events?after={len(seen)}&limit=4").json()
        seen += [event["seq"] for event in page["events"]]
        if not page["has_more"]:
            break

    assert seen == list(range(1, last + 1))
    assert client.get(f"/api/runs/{run_id}/events?after={last}").json()["events"] == []


def test_a_run_stops_when_asked_and_keeps_a_checkpoint(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop_that("steps=2 hold=60")}).json()["id"]
    run_until(run_id, "running")

    answer = client.post(f"/api/runs/{run_id}/stop")

    assert answer.status_code == 202
    assert answer.json()["state"] == "stopping"
    run_until(run_id, "stopped")
    types = [e["type"] for e in client.get(f"/api/runs/{run_id}/events").json()["events"]]
    assert "checkpoint" in types
    assert client.post(f"/api/runs/{run_id}/stop").status_code == 409


@pytest.mark.slow
def test_a_run_that_does_not_stop_is_ended_at_the_deadline(
    settings: Settings, loop_that: LoopThat, eventually: Callable[..., Any]
) -> None:
    impatient = settings.model_copy(update={"stop_seconds": 0.5})
    with signed_in(impatient) as client:
        new = {"yaml": loop_that("steps=1 hold=60 deaf")}
        run_id = client.post("/api/runs", json=new).json()["id"]
        eventually(lambda: client.get(f"/api/runs/{run_id}").json()["state"] == "running")

        client.post(f"/api/runs/{run_id}/stop")
        eventually(lambda: client.get(f"/api/runs/{run_id}").json()["state"] == "stopped")

        run = client.get(f"/api/runs/{run_id}").json()
        events = client.get(f"/api/runs/{run_id}/events").json()["events"]
        assert "ended before it had stopped" in run["message"]
        assert events[-1]["state"] == "stopped"
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


@pytest.mark.slow
def test_one_run_goes_on_at_a_time_and_a_queued_one_can_be_taken_back(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    first = client.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")}).json()["id"]
    run_until(first, "running")
    second = client.post("/api/runs", json={"yaml": loop_that("steps=1")}).json()["id"]
    third = client.post("/api/runs", json={"yaml": loop_that("steps=1")}).json()["id"]

    assert client.post(f"/api/runs/{third}/stop").json()["state"] == "stopped"
    assert client.get(f"/api/runs/{second}").json()["state"] == "queued"

    client.post(f"/api/runs/{first}/stop")
    run_until(first, "stopped")
    run_until(second, "finished")
    assert client.get(f"/api/runs/{third}").json()["started_at"] is None


def test_a_dead_driver_becomes_a_failed_run_with_its_last_words(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop_that("steps=3 die=2")}).json()["id"]

    run = run_until(run_id, "failed")

    assert run["error"]["code"] == "run.driver_died"
    assert "out of luck" in run["message"]
    events = client.get(f"/api/runs/{run_id}/events").json()["events"]
    assert events[-1]["state"] == "failed"
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_a_driver_that_cannot_start_says_why(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop_that("crash")}).json()["id"]

    run = run_until(run_id, "failed")

    assert "no engine in sight" in run["message"]
    assert client.get(f"/api/runs/{run_id}/events").json()["events"] == []


@pytest.mark.slow
def test_a_stopped_run_is_resumed_in_place(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")}).json()["id"]
    run_until(run_id, "running")
    client.post(f"/api/runs/{run_id}/stop")
    ended = run_until(run_id, "stopped")

    assert client.post(f"/api/runs/{run_id}/resume").status_code == 202
    again = run_until(run_id, "running")
    client.post(f"/api/runs/{run_id}/stop")
    run_until(run_id, "stopped")

    assert again["attempt"] == 2
    events = client.get(f"/api/runs/{run_id}/events").json()["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert len(events) > ended["last_seq"]
    assert {event["attempt"] for event in events} == {1, 2}


def test_a_run_again_takes_another_seed(client: TestClient, loop: str) -> None:
    run = client.post("/api/runs", json={"yaml": loop, "seed": 4711}).json()

    spec = client.get(f"/api/runs/{run['id']}/spec").json()["spec"]
    assert spec["run"]["seed"] == 4711


def test_a_finished_run_is_forked_not_resumed(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop}).json()["id"]
    run_until(run_id, "finished")

    assert client.post(f"/api/runs/{run_id}/resume").json()["code"] == "run.finished"
    path = f"/api/runs/{run_id}/fork"
    assert client.post(path, json={"step": 2}).json()["code"] == "run.no_checkpoint"
    fork = client.post(path, json={"set": {"schedule.steps": 5}}).json()

    assert fork["parent_id"] == run_id
    assert fork["id"] != run_id
    forked = run_until(fork["id"], "finished")
    assert (Path(forked["folder"]) / "checkpoints" / "step-3" / "manifest.json").exists()
    assert client.get(f"/api/runs/{fork['id']}/events").json()["events"][0]["seq"] == 1
    assert client.get(f"/api/runs/{fork['id']}/spec").json()["spec"]["schedule"]["steps"] == 5


def test_hot_fields_change_while_the_run_goes_on_and_others_do_not(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil, eventually: Callable[..., Any]
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")}).json()["id"]
    run_until(run_id, "running")
    path = "nodes.actor.training.optimizer.lr"

    taken = client.post(f"/api/runs/{run_id}/edit", json={"changes": {path: 1e-4}})
    cold = client.post(f"/api/runs/{run_id}/edit", json={"changes": {"hardware.preset": "cpu"}})
    wrong = client.post(f"/api/runs/{run_id}/edit", json={"changes": {path: "fast"}})

    assert taken.status_code == 202
    assert cold.status_code == 422
    assert cold.json()["detail"]["diagnostics"][0]["code"] == "structure.not_hot"
    assert wrong.status_code == 422

    def edits() -> list[Any]:
        events = client.get(f"/api/runs/{run_id}/events").json()["events"]
        return [event for event in events if event["type"] == "edit"]

    assert eventually(edits)[0]["changes"] == {path: 1e-4}
    client.post(f"/api/runs/{run_id}/stop")
    run_until(run_id, "stopped")
    assert client.post(f"/api/runs/{run_id}/edit", json={"changes": {path: 1}}).status_code == 409


def test_an_edit_names_no_file_outside_of_the_roots(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")}).json()["id"]
    run_until(run_id, "running")
    source = {"nodes.problems.source": {"type": "file", "path": "/etc/passwd"}}

    answer = client.post(f"/api/runs/{run_id}/edit", json={"changes": source})

    assert answer.status_code in (403, 422)
    assert answer.json()["code"] in ("path.outside", "spec.invalid")
    client.post(f"/api/runs/{run_id}/stop")
    run_until(run_id, "stopped")


def test_samples_and_the_report_are_read_from_the_folder(
    client: TestClient, loop: str, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop}).json()["id"]
    assert client.get(f"/api/runs/{run_id}/report").status_code == 404
    run_until(run_id, "finished")

    samples = client.get(f"/api/runs/{run_id}/samples?limit=4").json()
    of_step = client.get(f"/api/runs/{run_id}/samples?step=1").json()

    assert samples["steps"] == [1, 2, 3]
    assert [row["step"] for row in samples["rows"]] == [3, 3, 3, 2]
    assert [row["id"] for row in of_step["rows"]] == ["1.0", "1.1", "1.2"]
    assert samples["rows"][0]["prompt"] == "1+1="
    report = client.get(f"/api/runs/{run_id}/report").json()
    assert report["steps"] == 3
    assert report["measured"]["stages"] == {}


def test_an_event_cannot_name_a_file_outside_of_its_folder(
    client: TestClient, settings: Settings, loop: str, eventually: Callable[..., Any]
) -> None:
    folder = settings.runs_dir / "sly"
    folder.mkdir()
    (folder / "spec.yaml").write_text(loop)
    (settings.runs_dir / "secret.json").write_text('[{"id": "secret"}]')
    head = {"at": "2026-01-01T00:00:00Z", "run": "sly", "attempt": 1}
    lines = [
        {**head, "seq": 1, "type": "sample", "step": 1, "path": "../secret.json", "rows": []},
        {**head, "seq": 2, "type": "run.state", "state": "finished"},
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    eventually(lambda: client.get("/api/runs").json())

    assert client.get("/api/runs/sly/samples").json()["rows"] == []


def test_tokens_of_a_row_are_read_from_the_file_that_its_event_names(
    client: TestClient, settings: Settings, loop: str, eventually: Callable[..., Any]
) -> None:
    folder = settings.runs_dir / "tokens"
    (folder / "samples").mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop)
    lines = [
        {"id": "a", "node": "actor", "by": "actor", "ids": [7, 8], "pieces": ["7", "x"],
         "mask": [True, False], "advantage": [0.5, 0.0], "rewards": {"steps": [None, 1]}},
        {"id": "b", "node": "actor", "by": "actor", "ids": [9], "pieces": ["z"]},
        {"id": "bad", "ids": "none"},
    ]  # fmt: skip
    (folder / "samples" / "step-2.tokens.jsonl").write_text("\n".join(map(json.dumps, lines)))
    head = {"at": "2026-01-01T00:00:00Z", "run": "tokens", "attempt": 1}
    sample = {"type": "sample", "step": 2, "path": "samples/step-2.jsonl", "rows": []}
    events = [
        {**head, **sample, "seq": 1, "tokens": "samples/step-2.tokens.jsonl"},
        {**head, **sample, "seq": 2, "tokens": "../secret.json"},
        {**head, "seq": 3, "type": "run.state", "state": "finished"},
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))
    eventually(lambda: client.get("/api/runs").json())

    one = client.get("/api/runs/tokens/samples/tokens?step=2&row=a").json()
    all_of_step = client.get("/api/runs/tokens/samples/tokens?step=2").json()
    other_step = client.get("/api/runs/tokens/samples/tokens?step=1").json()

    assert [row["id"] for row in one["rows"]] == ["a"]
    assert one["rows"][0]["pieces"] == ["7", "x"]
    assert one["rows"][0]["mask"] == [True, False]
    assert one["rows"][0]["advantage"] == [0.5, 0.0]
    assert one["rows"][0]["rewards"] == {"steps": [None, 1.0]}
    assert [row["id"] for row in all_of_step["rows"]] == ["a", "b"]
    assert other_step["rows"] == []


def test_a_headless_run_shows_up_and_opens_like_any_other(
    client: TestClient, settings: Settings, loop: str, eventually: Callable[..., Any]
) -> None:
    import subprocess

    spec = settings.runs_dir.parent / "mine.yaml"
    spec.write_text(loop)
    command = [*settings.driver, str(spec), "--runs-dir", str(settings.runs_dir)]
    subprocess.run([*command, "--run-id", "typed"], check=True)

    runs = eventually(lambda: client.get("/api/runs").json())

    assert [run["id"] for run in runs] == ["typed"]
    assert runs[0]["state"] == "finished"
    assert runs[0]["launcher"] is None
    assert client.get("/api/runs/typed/samples").json()["rows"]
    assert client.get("/api/runs/typed/spec").json()["yaml"] == loop
    assert client.post("/api/runs/typed/resume").json()["code"] == "run.finished"


def test_an_external_run_without_a_sign_of_life_counts_as_dead(
    client: TestClient, settings: Settings, loop: str, eventually: Callable[..., Any]
) -> None:
    folder = settings.runs_dir / "silent"
    folder.mkdir()
    (folder / "spec.yaml").write_text(loop)
    event = {"seq": 1, "at": "2026-01-01T00:00:00Z", "run": "silent", "attempt": 1}
    event |= {"type": "run.state", "state": "running"}
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")

    run = eventually(lambda: client.get("/api/runs").json())[0]

    assert run["state"] == "failed"
    assert run["error"]["code"] == "run.no_sign_of_life"
    assert (folder / "events.jsonl").read_text().count("\n") == 1


def test_runs_that_do_not_exist_are_404_everywhere(client: TestClient) -> None:
    for path in ("", "/events", "/samples", "/report", "/spec"):
        answer = client.get(f"/api/runs/none{path}")
        assert answer.status_code == 404
        assert answer.json()["code"] == "run.not_found"
    for verb in ("stop", "resume", "fork"):
        assert client.post(f"/api/runs/none/{verb}").status_code == 404


def write_ended_run(settings: Settings, loop: str, run_id: str) -> Path:
    folder = settings.runs_dir / run_id
    folder.mkdir()
    (folder / "spec.yaml").write_text(loop)
    event = {"seq": 1, "at": "2026-01-01T00:00:00Z", "run": run_id, "attempt": 1}
    event |= {"type": "run.state", "state": "finished"}
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    return folder


def test_runs_are_paged_and_found_by_words(
    client: TestClient, settings: Settings, loop: str, eventually: Callable[..., Any]
) -> None:
    for number in range(25):
        write_ended_run(settings, loop, f"{'odd' if number % 2 else 'even'}-{number}")
    eventually(lambda: len(client.get("/api/runs").json()) == 25)

    first = client.get("/api/runs?limit=10")
    rest = client.get("/api/runs?limit=10&offset=20")
    odd = client.get("/api/runs?search=ODD finished&limit=3")

    assert first.headers["x-total-count"] == rest.headers["x-total-count"] == "25"
    assert (len(first.json()), len(rest.json())) == (10, 5)
    assert not {run["id"] for run in first.json()} & {run["id"] for run in rest.json()}
    assert odd.headers["x-total-count"] == "12"
    assert all(run["id"].startswith("odd") for run in odd.json())
    assert client.get("/api/runs?search=%25").json() == []


def test_a_list_of_runs_reads_no_loop(client: TestClient, settings: Settings, loop: str) -> None:
    from sqlalchemy import Engine, event

    seen: list[str] = []
    event.listen(Engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    client.get("/api/runs")

    assert [one for one in seen if "runs.yaml" in one] == []
    # the service looks after its runs' logs at the same time
    assert len([one for one in seen if "FROM runs" in one and "run_logs" not in one]) <= 2


def test_an_ended_run_is_renamed_and_deleted_with_all_that_belongs_to_it(
    client: TestClient, settings: Settings, loop: str, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop}).json()["id"]
    run_until(run_id, "finished")
    path = f"/api/runs/{run_id}"
    client.get(f"{path}/samples")

    renamed = client.patch(path, json={"name": "  mine\n"})
    deleted = client.delete(path)

    assert renamed.json()["name"] == "mine"
    assert client.patch(path, json={"name": ""}).status_code in (404, 422)
    assert deleted.status_code == 204
    assert client.get(path).status_code == 404
    assert client.get("/api/runs").json() == []
    left = [
        p for p in (*settings.runs_dir.rglob("*"), *settings.data_dir.rglob("*")) if p.is_file()
    ]
    assert [p for p in left if run_id in str(p)] == []
    assert client.delete(path).status_code == 404


def test_a_run_that_goes_on_is_not_deleted(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    run_id = client.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")}).json()["id"]
    folder = Path(run_until(run_id, "running")["folder"])

    refused = client.delete(f"/api/runs/{run_id}")

    assert refused.status_code == 409
    assert refused.json()["code"] == "run.going_on"
    assert (folder / "events.jsonl").exists()
    client.post(f"/api/runs/{run_id}/stop")
    run_until(run_id, "stopped")
    assert client.delete(f"/api/runs/{run_id}").status_code == 204
    assert not folder.exists()


def test_a_folder_that_was_only_shown_is_not_removed(
    client: TestClient, settings: Settings, loop: str
) -> None:
    work = settings.allowed_roots[0]
    work.mkdir()
    folder = write_ended_run(settings, loop, "elsewhere").rename(work / "elsewhere")
    engine = open_engine(settings.database)
    with open_sessions(engine).begin() as session:
        row = repository.new_row(id="elsewhere", name="elsewhere", folder=str(folder), yaml=loop)
        row.state = "finished"
        session.add(row)
    engine.dispose()

    assert client.delete("/api/runs/elsewhere").status_code == 204

    assert client.get("/api/runs").json() == []
    assert (folder / "events.jsonl").exists()


@pytest.mark.attack
@pytest.mark.parametrize("place", ["link", "checkpoints", "samples/link", ""])
def test_what_links_of_a_deleted_run_lead_to_stays(
    client: TestClient,
    settings: Settings,
    loop: str,
    tmp_path: Path,
    place: str,
    eventually: Callable[..., Any],
) -> None:
    """Links in the folder, and the folder itself."""
    private = tmp_path / "private"
    folder = write_ended_run(settings, loop, "crafted")
    eventually(lambda: client.get("/api/runs").json())
    if place:
        private.mkdir()
        (folder / place).parent.mkdir(exist_ok=True)
    else:
        folder.rename(private)
    (private / "diary").write_text("mine")
    (folder / place).symlink_to(private)

    assert client.delete("/api/runs/crafted").status_code == 204

    assert (private / "diary").read_text() == "mine"
    assert not [*settings.runs_dir.glob("*crafted*")]


def test_rows_and_reports_of_other_makers_are_read_as_far_as_they_are_understood() -> None:
    row = SampleRow.model_validate(
        {"seq": 1, "reward": "high", "scores": {"a": 0.5, "b": "no"}, "target": "2"}
    )
    report = RunReport.model_validate({"predicted": None, "measured": {"stages": [1]}, "steps": 3})

    assert row.reward is None
    assert row.scores == {"a": 0.5, "b": None}
    assert row.model_dump()["target"] == "2"
    assert (report.predicted.step_seconds, report.measured.stages) == (None, {})
    assert report.model_dump()["steps"] == 3
