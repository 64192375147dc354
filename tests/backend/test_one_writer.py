"""A run has one writer: whatever is asked of the server, and whenever it is killed."""

import contextlib
import json
import os
import shutil
import sqlite3
import sys
import textwrap
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.postgres import execute, kept_handle, sqlite_only
from tests.backend.signed_in import signed_in

from coloop.runtime.run_files.run_lock import RunLock
from coloop_server.launchers.process import ProcessLauncher
from coloop_server.launchers.protocol import Handle, Order
from coloop_server.processes import identity, of_launch
from coloop_server.runs import live
from coloop_server.settings import Settings

LoopThat = Callable[[str], str]
RunUntil = Callable[..., dict[str, Any]]
Eventually = Callable[..., Any]


def start_run(client: TestClient, text: str) -> str:
    run_id: str = client.post("/api/runs", json={"yaml": text}).json()["id"]
    return run_id


def seqs(folder: Path) -> list[int]:
    return [json.loads(one)["seq"] for one in (folder / "events.jsonl").read_text().splitlines()]


def assert_gapless(folder: Path) -> None:
    found = seqs(folder)
    assert found == list(range(1, len(found) + 1))


def write_running(folder: Path, loop: str) -> None:
    """A run that somebody started elsewhere, just now."""
    folder.mkdir()
    (folder / "spec.yaml").write_text(loop)
    write_event(folder, 1, "running")


def write_event(folder: Path, seq: int, state: str) -> None:
    event = {"seq": seq, "at": datetime.now(UTC).isoformat(), "run": folder.name, "attempt": 1}
    text = json.dumps(event | {"type": "run.state", "state": state}) + "\n"
    with (folder / "events.jsonl").open("a") as file:
        file.write(text)


# Resume and delete


def test_a_run_that_is_still_written_is_neither_resumed_nor_deleted(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil
) -> None:
    run_id = start_run(client, loop_that("steps=1 hold=60"))
    run_until(run_id, "running")
    client.post(f"/api/runs/{run_id}/stop")
    folder = Path(run_until(run_id, "stopped")["folder"])

    with RunLock(folder):
        resumed = client.post(f"/api/runs/{run_id}/resume")
        deleted = client.delete(f"/api/runs/{run_id}")

    for answer in (resumed, deleted):
        assert (answer.status_code, answer.json()["code"]) == (409, "run.held")
        assert f"process {os.getpid()}" in answer.json()["message"]
    assert client.post(f"/api/runs/{run_id}/resume").status_code == 202


# The last word


@pytest.mark.slow
def test_the_server_writes_no_last_word_while_somebody_else_writes(
    client: TestClient, loop_that: LoopThat, run_until: RunUntil, eventually: Eventually
) -> None:
    run_id = start_run(client, loop_that("steps=1 hold=60 deaf"))
    folder = Path(run_until(run_id, "running")["folder"])

    with RunLock(folder):
        client.post(f"/api/runs/{run_id}/stop", json={"force": True})
        told = eventually(
            lambda: "written by another process" in str(client.get(f"/api/runs/{run_id}").json())
        )
        before = (folder / "events.jsonl").read_bytes()

    assert told
    assert b'"stopped"' not in before
    run_until(run_id, "stopped")
    assert_gapless(folder)


def test_a_run_is_over_when_its_driver_has_let_go_of_the_folder(
    client: TestClient,
    settings: Settings,
    loop: str,
    loop_that: LoopThat,
    run_until: RunUntil,
    eventually: Eventually,
) -> None:
    run_id = start_run(client, loop_that("steps=1 hold=60"))
    folder = Path(run_until(run_id, "running")["folder"])

    with RunLock(folder):
        client.post(f"/api/runs/{run_id}/stop")
        eventually(lambda: '"stopped"' in (folder / "events.jsonl").read_text())
        write_running(settings.runs_dir / "typed", loop)
        eventually(lambda: client.get("/api/runs/typed").json().get("state") == "running")
        write_event(settings.runs_dir / "typed", 2, "finished")
        run_until("typed", "finished")  # the server has looked at both
        state = client.get(f"/api/runs/{run_id}").json()["state"]

    assert state == "stopping"
    run_until(run_id, "stopped")
    assert_gapless(folder)


def test_what_a_killed_driver_left_is_ended_with_it(
    settings: Settings, loop: str, eventually: Eventually, tmp_path: Path
) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(
        textwrap.dedent(f"""
        import os, signal, subprocess
        from pathlib import Path
        left = subprocess.Popen(["sleep", "600"], start_new_session=True)
        Path({str(tmp_path / "left")!r}).write_text(str(left.pid))
        os.kill(os.getpid(), signal.SIGKILL)
        """)
    )
    changed = settings.model_copy(update={"driver": (sys.executable, str(driver))})
    with signed_in(changed) as client:
        run_id = start_run(client, loop)
        run = eventually(lambda: ended(client.get(f"/api/runs/{run_id}").json()))

    assert "by signal 9" in run["message"]
    assert identity(int((tmp_path / "left").read_text())) is None


def ended(run: dict[str, Any]) -> dict[str, Any] | None:
    return run if run["state"] in ("finished", "failed", "stopped") else None


# A server that is killed while it starts a run


def forget_the_start(settings: Settings, run_id: str) -> Handle:
    """The row as it stands between the launch and the note of it; the whole handle."""
    handle: Handle = kept_handle(settings, run_id)
    planned = json.dumps({name: handle[name] for name in ("mark", "run_id")})
    change = "UPDATE runs SET handle = :planned, state = 'starting' WHERE id = :id"
    execute(settings, change, planned=planned, id=run_id)
    return handle


@pytest.mark.slow
def test_a_driver_that_was_started_and_not_noted_is_found_again(
    start_server: Callable[..., Any],
    settings: Settings,
    loop_that: LoopThat,
    eventually: Eventually,
) -> None:
    first = start_server()
    with first.http as http:
        run_id = http.post("/api/runs", json={"yaml": loop_that("steps=2 hold=90")}).json()["id"]
        eventually(lambda: http.get(f"/api/runs/{run_id}").json()["step"] == 2)
    first.kill()
    handle = forget_the_start(settings, run_id)

    with start_server().http as http:
        eventually(lambda: http.get(f"/api/runs/{run_id}").json()["state"] == "running")
        assert [pid for pid, _ in of_launch(handle)] == [handle["pid"]]
        http.post(f"/api/runs/{run_id}/stop")
        eventually(lambda: http.get(f"/api/runs/{run_id}").json()["state"] == "stopped")

    assert_gapless(settings.runs_dir / run_id)


@pytest.mark.slow
def test_a_run_that_was_planned_and_not_started_is_started_once(
    start_server: Callable[..., Any],
    settings: Settings,
    loop_that: LoopThat,
    eventually: Eventually,
) -> None:
    first = start_server()
    with first.http as http:
        run_id = http.post("/api/runs", json={"yaml": loop_that("steps=2 hold=90")}).json()["id"]
        eventually(lambda: http.get(f"/api/runs/{run_id}").json()["step"] == 2)
    first.kill()
    handle = forget_the_start(settings, run_id)
    os.kill(handle["pid"], 9)
    eventually(lambda: identity(handle["pid"]) is None)
    shutil.rmtree(settings.runs_dir / run_id)

    with start_server().http as http:
        # Of its step the row tells what was noted before; of its state, that it has begun.
        eventually(lambda: http.get(f"/api/runs/{run_id}").json()["state"] == "running")
        http.post(f"/api/runs/{run_id}/stop")
        eventually(lambda: http.get(f"/api/runs/{run_id}").json()["state"] == "stopped")

    assert_gapless(settings.runs_dir / run_id)


# A database that is busy


@contextlib.contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Somebody else writes into the database, and takes long."""
    path = settings.data_dir / "coloop.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.slow
@sqlite_only
def test_a_busy_database_asks_to_come_again(
    client: TestClient, settings: Settings, loop: str
) -> None:
    with locked(settings):
        answers = [
            client.post("/api/loops", json={"yaml": loop}),
            client.post("/api/runs", json={"yaml": loop}),
        ]

    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "database.busy")
        assert int(answer.headers["retry-after"]) >= 1
    assert client.post("/api/loops", json={"yaml": loop}).status_code == 201


@pytest.mark.slow
@sqlite_only
def test_a_busy_database_neither_fails_a_start_nor_loses_its_driver(
    client: TestClient,
    settings: Settings,
    loop_that: LoopThat,
    run_until: RunUntil,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = ProcessLauncher.start
    marks: list[str] = []

    def start_while_locked(self: ProcessLauncher, order: Order, planned: Handle) -> Handle:
        with locked(settings):
            handle = start(self, order, planned)
            marks.append(handle["mark"])
            return handle

    monkeypatch.setattr(ProcessLauncher, "start", start_while_locked)
    run_id = start_run(client, loop_that("steps=2 hold=60"))

    run_until(run_id, "running")
    assert kept_handle(settings, run_id)["mark"] == marks[0]
    client.post(f"/api/runs/{run_id}/stop")
    run_until(run_id, "stopped")


# A run whose folder is gone, or that nobody writes


def test_a_run_whose_folder_is_gone_ends(
    client: TestClient,
    settings: Settings,
    loop: str,
    loop_that: LoopThat,
    run_until: RunUntil,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(live, "GONE_SECONDS", 0.3)
    write_running(settings.runs_dir / "typed", loop)
    eventually(lambda: [run["state"] for run in client.get("/api/runs").json()] == ["running"])
    own = start_run(client, loop_that("steps=1 hold=60"))
    run_until(own, "running")
    handle = kept_handle(settings, own)

    for run_id in ("typed", own):  # at once, as a driver writes into its own meanwhile
        (settings.runs_dir / run_id).rename(tmp_path / f"gone-{run_id}")

    for run_id in ("typed", own):
        run = run_until(run_id, "failed")
        assert run["error"]["code"] == "run.folder_gone"
        assert str(settings.runs_dir / run_id) in run["message"]
    assert of_launch(handle) == []
    assert client.delete("/api/runs/typed").status_code == 204


def test_a_forced_stop_closes_a_run_that_nobody_writes(
    client: TestClient, settings: Settings, loop: str, run_until: RunUntil, eventually: Eventually
) -> None:
    folder = settings.runs_dir / "typed"
    write_running(folder, loop)
    eventually(lambda: [run["state"] for run in client.get("/api/runs").json()] == ["running"])

    with RunLock(folder):
        client.post("/api/runs/typed/stop", json={"force": True})
        eventually(lambda: f"end process {os.getpid()}" in str(client.get("/api/runs").json()))
        assert seqs(folder) == [1]

    run_until("typed", "stopped")
    assert seqs(folder) == [1, 2]
