"""Lists of runs: pages, tags, the queue, alerts with their state, and what differs."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in
from tests.backend.test_long_runs import statements
from tests.backend.test_run_curves import line

from coloop.spec.diagnostics import Change
from coloop_server.runs.comparing import said
from coloop_server.runs.eventlog import entry_of
from coloop_server.runs.summary import Summary
from coloop_server.settings import Settings

Eventually = Callable[..., Any]
LoopThat = Callable[[str], str]


def write_runs(settings: Settings, loop: str, count: int) -> None:
    for number in range(count):
        folder = settings.runs_dir / f"run-{number:02}"
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(loop)
        state = "failed" if number % 3 == 0 else "finished"
        told = line(1, "run.state", second=number, state=state, step=number % 7)
        (folder / "events.jsonl").write_text(told)


@pytest.fixture
def many(client: TestClient, settings: Settings, loop: str, eventually: Eventually) -> TestClient:
    write_runs(settings, loop, 23)
    eventually(lambda: len(client.get("/api/runs").json()) == 23)
    return client


@pytest.mark.sample(1)
@pytest.mark.parametrize("sort", ["created", "ended", "name", "state", "step"])
def test_pages_follow_one_another_without_a_gap(many: TestClient, sort: str) -> None:
    whole = [run["id"] for run in many.get(f"/api/runs?sort={sort}&limit=100").json()]
    seen: list[str] = []
    cursor = ""
    while True:
        page = many.get(f"/api/runs?sort={sort}&limit=5{cursor}")
        assert page.headers["x-total-count"] == "23"
        seen += [run["id"] for run in page.json()]
        if "x-next-cursor" not in page.headers:
            break
        cursor = f"&cursor={page.headers['x-next-cursor']}"

    assert len(whole) == len(set(whole)) == 23
    assert seen == whole


@pytest.mark.slow
def test_a_page_stays_where_it_was_when_runs_go(many: TestClient) -> None:
    first = many.get("/api/runs?sort=name&limit=4")
    many.delete("/api/runs/run-01")

    second = many.get(f"/api/runs?sort=name&limit=2&cursor={first.headers['x-next-cursor']}")

    assert [run["id"] for run in second.json()] == ["run-04", "run-05"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("cursor", ["x", "e30=", "WyJzdGVwIiwgMSwgInIiXQ==", "%00"])
def test_a_cursor_of_another_list_is_refused(many: TestClient, cursor: str) -> None:
    answer = many.get(f"/api/runs?sort=name&cursor={cursor}")

    assert answer.status_code == 422
    assert "start without one" in answer.json()["message"]


def test_runs_are_filtered_by_tag_state_and_words(many: TestClient) -> None:
    for run in ("run-01", "run-02"):
        tagged = many.patch(f"/api/runs/{run}", json={"tags": ["Best ", "lr/1e-4", "best"]})
        assert tagged.json()["tags"] == ["best", "lr/1e-4"]
    many.patch("/api/runs/run-03", json={"tags": ["bestest"], "name": "the third"})

    assert {run["id"] for run in many.get("/api/runs?tag=best").json()} == {"run-01", "run-02"}
    assert len(many.get("/api/runs?tag=best&state=failed").json()) == 0
    assert len(many.get("/api/runs?search=best").json()) == 3
    assert [run["id"] for run in many.get("/api/runs?search=third best").json()] == ["run-03"]
    assert many.get("/api/runs/tags").json() == ["best", "bestest", "lr/1e-4"]
    assert many.patch("/api/runs/run-01", json={"tags": ['a"b']}).status_code == 422
    assert many.patch("/api/runs/run-01", json={"priority": 1}).status_code == 409


def test_a_list_asks_the_same_of_the_database_however_many_runs_there_are(
    many: TestClient,
) -> None:
    def asked(limit: int) -> int:
        many.app.state.supervisor.scanner.wait_for_look(30)  # type: ignore[attr-defined]
        with statements() as seen:
            many.get(f"/api/runs?limit={limit}")
        return len([one for one in seen if "FROM runs" in one])

    assert asked(2) == asked(20) == 2


@pytest.mark.slow
def test_a_list_reads_no_folders_while_none_came_or_went(
    many: TestClient, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanner = many.app.state.supervisor.scanner  # type: ignore[attr-defined]
    eventually(lambda: scanner.folder_stamp is not None)
    monkeypatch.setattr(scanner, "wait_for_look", lambda seconds: pytest.fail("it looked"))

    assert len(many.get("/api/runs").json()) == 23


def test_a_folder_that_is_unpacked_file_by_file_is_listed_once_it_is_whole(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    """The folder of the runs itself no longer changes when the last file arrives."""
    scanner = client.app.state.supervisor.scanner  # type: ignore[attr-defined]
    eventually(lambda: scanner.folder_stamp is not None)

    folder = settings.runs_dir / "unpacked"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text(line(1, "run.state", state="finished", step=1))
    eventually(scanner.stamp_of_folder)
    scanner.wait_for_look(60)
    assert client.get("/api/runs").json() == []

    (folder / "spec.yaml").write_text(loop)
    assert [run["id"] for run in client.get("/api/runs").json()] == ["unpacked"]


# The queue


@pytest.fixture
def queued(
    client: TestClient, loop_that: LoopThat, eventually: Eventually
) -> tuple[TestClient, list[str]]:
    """One run that goes on until it is told to stop, and four behind it."""
    first = client.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")}).json()["id"]
    eventually(lambda: client.get(f"/api/runs/{first}").json()["state"] == "running")
    waiting = []
    for name in "abcd":
        new = {"yaml": loop_that("steps=1"), "name": name}
        run = client.post("/api/runs", json=new).json()
        assert (run["state"], run["place"]) == ("queued", len(waiting) + 1)
        waiting.append(run["id"])
    return client, [first, *waiting]


def order(client: TestClient) -> str:
    runs = [run for run in client.get("/api/runs").json() if run["place"] is not None]
    return "".join(run["name"] for run in sorted(runs, key=lambda run: run["place"]))


def test_queued_runs_are_moved_and_started_in_that_order(
    queued: tuple[TestClient, list[str]], eventually: Eventually
) -> None:
    client, (first, a, b, c, d) = queued

    client.post(f"/api/runs/{d}/move", json={"before": b})
    assert order(client) == "adbc"
    client.patch(f"/api/runs/{c}", json={"priority": 5})
    assert order(client) == "cadb"
    moved = client.post(f"/api/runs/{b}/move", json={"before": c}).json()
    assert (moved["priority"], moved["place"]) == (5, 1)
    assert order(client) == "bcad"
    client.post(f"/api/runs/{b}/move", json={"before": None})
    assert order(client) == "cadb"
    client.post(f"/api/runs/{a}/stop")
    assert order(client) == "cdb"
    assert client.post(f"/api/runs/{a}/move", json={"before": None}).status_code == 409
    assert client.post(f"/api/runs/{b}/move", json={"before": first}).status_code == 409

    client.post(f"/api/runs/{first}/stop")
    eventually(lambda: client.get(f"/api/runs/{b}").json()["state"] == "finished")
    started = sorted(
        (client.get(f"/api/runs/{run}").json()["started_at"], run) for run in (b, c, d)
    )
    assert [run for _, run in started] == [c, d, b]


@pytest.mark.slow
def test_the_queue_outlives_the_server(
    settings: Settings, loop_that: LoopThat, eventually: Eventually
) -> None:
    with signed_in(settings.model_copy(update={"keep_runs": True})) as first:
        going = first.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")}).json()["id"]
        eventually(lambda: first.get(f"/api/runs/{going}").json()["state"] == "running")
        ids = [
            first.post("/api/runs", json={"yaml": loop_that("steps=1"), "name": name}).json()["id"]
            for name in "abc"
        ]
        first.post(f"/api/runs/{ids[2]}/move", json={"before": ids[0]})

    with signed_in(settings) as second:
        assert second.get(f"/api/runs/{going}").json()["state"] == "running"
        assert order(second) == "cab"
        second.post(f"/api/runs/{going}/stop")
        eventually(lambda: second.get(f"/api/runs/{ids[1]}").json()["state"] == "finished")
        runs = [second.get(f"/api/runs/{run}").json() for run in ids]
        started = [datetime.fromisoformat(run["started_at"]) for run in runs]
    assert started[2] < started[0] < started[1]


# Alerts


def alert(seq: int, attempt: int = 1, **fields: Any) -> dict[str, Any]:
    told = {"code": "kl.high", "node": "policy", "metric": "kl", "level": "warning", "message": "m"}
    return json.loads(line(seq, "alert", attempt, seq, **(told | fields)))


def states(summary: Summary) -> list[tuple[str, str, int]]:
    return [(one["code"], one["state"], one["told"]) for one in summary.alerts]


def test_an_alert_is_raised_told_again_cleared_and_raised_anew() -> None:
    summary = Summary()
    for event in (alert(1, step=1), alert(2, step=2), alert(3, code="other", metric=None)):
        summary.add(entry_of(event, 0, 0))
    assert states(summary) == [("kl.high", "told_again", 2), ("other", "raised", 1)]
    summary.add(entry_of(alert(4, cleared=True, level="info"), 0, 0))
    assert states(summary)[-1] == ("kl.high", "cleared", 2)
    summary.add(entry_of(alert(5, step=5), 0, 0))
    assert states(summary)[-1] == ("kl.high", "raised", 1)
    assert [one["seq"] for one in summary.alerts] == [3, 5]
    assert Summary.recall(json.loads(json.dumps(summary.keep()))) == summary


def test_what_a_metric_showed_before_a_resume_still_stands() -> None:
    summary = Summary()
    for event in (alert(1, step=4), alert(2, code="late", step=9), alert(3, code="x", metric=None)):
        summary.add(entry_of(event, 0, 0))

    summary.add(entry_of(json.loads(line(4, "run.state", 2, state="running", step=6)), 0, 0))

    assert states(summary) == [("kl.high", "raised", 1)]


def test_what_only_informs_is_no_alert() -> None:
    summary = Summary()
    summary.add(entry_of(alert(1, level="info"), 0, 0))
    summary.add(entry_of({"type": "alert", "seq": 2, "code": 7}, 0, 0))

    assert summary.alerts == []


def test_a_user_takes_note_of_an_alert(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    folder = settings.runs_dir / "one"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop)
    events = [json.dumps(alert(1, step=1)) + "\n", line(2, "run.state", state="finished")]
    (folder / "events.jsonl").write_text("".join(events))
    eventually(lambda: client.get("/api/runs").json())

    noted = client.post("/api/runs/one/alerts/acknowledge", json={"seq": 1}).json()

    assert noted["alerts"][0]["acknowledged_at"] is not None
    assert client.get("/api/runs").json()[0]["alerts"] == noted["alerts"]
    unknown = client.post("/api/runs/one/alerts/acknowledge", json={"seq": 2})
    assert unknown.status_code == 404


# What differs


def test_two_loops_differ_in_words(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    other = loop.replace("lr: 3.0e-4", "lr: 1.0e-4").replace(
        "schedule: {steps: 3}", "schedule: {steps: 5}"
    )
    other = other.replace("exact:", "right:").replace("exact.", "right.").replace("# A loop", "# B")
    for name, text in (("one", loop), ("two", other), ("same", "# again\n" + loop)):
        folder = settings.runs_dir / name
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(text)
        (folder / "events.jsonl").write_text(line(1, "run.state", state="finished"))
    eventually(lambda: len(client.get("/api/runs").json()) == 3)
    saved = client.post("/api/loops", json={"yaml": other}).json()["id"]

    changes = client.get("/api/runs/one/changes?run=two").json()["changes"]

    words = [change["words"] for change in changes]
    assert "`exact` is called `right`" in words
    assert "actor · training.optimizer.lr: 0.0003 → 0.0001" in words
    assert any("steps" in one and one.endswith("3 → 5") for one in words)
    assert client.get(f"/api/runs/one/changes?loop={saved}").json()["changes"] == changes
    assert client.get("/api/runs/one/changes?run=same").json()["changes"] == []
    assert client.get("/api/runs/one/changes").status_code == 422
    assert client.get("/api/runs/one/changes?run=none").status_code == 404
    lr = next(change for change in changes if change["path"].endswith("lr"))
    assert [lr["where"], lr["before"], lr["after"]] == [
        "actor · training.optimizer.lr",
        "0.0003",
        "0.0001",
    ]

    values = {"nodes.actor.training.optimizer.lr": 1e-4}
    wanted = client.post("/api/runs/one/changes", json={"set": values}).json()["changes"]
    assert wanted == [lr]
    same = {"nodes.actor.training.optimizer.lr": 3e-4}
    assert client.post("/api/runs/one/changes", json={"set": same}).json()["changes"] == []
    wrong = client.post("/api/runs/one/changes", json={"set": {"nodes.actor.lr": 1}})
    assert wrong.status_code == 422


@pytest.mark.parametrize(
    ("change", "before", "words"),
    [
        (Change(op="remove", path="nodes.judge"), {"kind": "reward"}, "node `judge` removed"),
        (Change(op="set", path="nodes.a", value={"kind": "actor"}), None, "node `a` added (actor)"),
        (Change(op="set", path="run.seed", value=7), None, "run.seed: its default → 7"),
        (Change(op="remove", path="run.seed"), 7, "run.seed: 7 → its default"),
        (Change(op="remove", path="edges.0"), "a.x -> b.y", "edge `a.x -> b.y` removed"),
    ],
)
def test_a_change_is_said_in_one_line(change: Change, before: object, words: str) -> None:
    assert said(change, before)["words"] == words
