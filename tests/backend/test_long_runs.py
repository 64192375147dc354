"""Runs with long histories: what is asked for is read, and nothing else. Counts, no clocks."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest
from sqlalchemy import Engine, event
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in

from coloop_server.runs.eventlog import RECENT_BYTES
from coloop_server.runs.watch import Watch
from coloop_server.settings import Settings

IO = Path("/proc/self/io")
NOW = "2026-01-01T00:00:00Z"
STEPS = 2000
TEXT = "x" * 1500
Eventually = Callable[..., Any]


def line(seq: int, kind: str, attempt: int = 1, **fields: Any) -> str:
    head = {"seq": seq, "at": NOW, "run": "long", "attempt": attempt, "type": kind}
    return json.dumps(head | fields) + "\n"


def write_run(folder: Path, loop: str, lines: list[str]) -> None:
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop)
    (folder / "events.jsonl").write_text("".join(lines))


def long_history(steps: int = STEPS) -> list[str]:
    """A sample event in every step."""
    rows = [{"id": "a", "node": "actor", "completion": TEXT}]
    lines = [
        line(step, "sample", step=step, path=f"samples/step-{step}.jsonl", rows=rows)
        for step in range(1, steps + 1)
    ]
    return [*lines, line(steps + 1, "run.state", state="finished", step=steps)]


def bytes_read() -> int:
    """Bytes that this process took from files and sockets so far."""
    if not IO.exists():
        pytest.skip("only Linux counts what a process reads")
    return int(IO.read_text().split()[1])


@contextmanager
def statements() -> Iterator[list[str]]:
    """SQL that any engine of this process executes meanwhile."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("UPDATE servers"):  # the beat of the database's owner
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.fixture
def long_run(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> TestClient:
    """A server that has read a run of 2,000 sample events."""
    write_run(settings.runs_dir / "long", loop, long_history())
    eventually(lambda: client.get("/api/runs").json())
    assert len(client.get("/api/runs/long/samples/steps").json()["steps"]) == STEPS
    return client


def test_samples_of_a_step_cost_the_bytes_of_that_step(long_run: TestClient) -> None:
    before = bytes_read()
    one = long_run.get("/api/runs/long/samples?step=700").json()
    newest = long_run.get("/api/runs/long/samples?limit=3").json()
    taken = bytes_read() - before

    assert [row["step"] for row in one["rows"]] == [700]
    assert [row["step"] for row in newest["rows"]] == [STEPS, STEPS - 1, STEPS - 2]
    assert one["steps"] == list(range(1, STEPS + 1))
    assert taken < 64 * len(TEXT)


def test_a_new_sample_costs_its_own_bytes(long_run: TestClient, settings: Settings) -> None:
    events = settings.runs_dir / "long" / "events.jsonl"
    before = bytes_read()
    for number in range(1, 21):
        rows = [{"id": "b", "completion": TEXT}]
        with events.open("a") as file:
            step = STEPS + number
            file.write(line(step + 1, "sample", step=step, path="none", rows=rows))
        found = long_run.get(f"/api/runs/long/samples?step={STEPS + number}").json()
        assert [row["id"] for row in found["rows"]] == ["b"]

    assert bytes_read() - before < 20 * 64 * len(TEXT)


@pytest.mark.parametrize("is_indexed_before", [False, True])
def test_where_a_step_was_done_twice_the_later_attempt_counts(
    client: TestClient,
    settings: Settings,
    loop: str,
    eventually: Eventually,
    is_indexed_before: bool,
) -> None:
    def sample(seq: int, step: int, attempt: int) -> str:
        rows = [{"id": f"{attempt}.{step}"}]
        return line(seq, "sample", attempt, step=step, path="none", rows=rows)

    first = [sample(step, step, 1) for step in range(1, 9)]
    first.append(line(9, "run.state", state="stopped", step=8))
    again = [sample(10, 6, 2), sample(11, 7, 2), line(12, "run.state", 2, state="stopped")]
    folder = settings.runs_dir / "long"
    write_run(folder, loop, first if is_indexed_before else [*first, *again])
    eventually(lambda: client.get("/api/runs").json())
    if is_indexed_before:
        assert client.get("/api/runs/long/samples").json()["steps"] == list(range(1, 9))
        with (folder / "events.jsonl").open("a") as file:
            file.write("".join(again))

    found = client.get("/api/runs/long/samples").json()

    assert found["steps"] == list(range(1, 8))
    ids = [row["id"] for row in found["rows"]]
    assert ids == ["2.7", "2.6", "1.5", "1.4", "1.3", "1.2", "1.1"]
    assert client.get("/api/runs/long/samples?step=8").json()["rows"] == []
    assert client.get("/api/runs/long/samples/steps").json()["steps"] == list(range(1, 8))


@pytest.mark.slow
def test_a_restart_reads_no_history_of_what_has_ended(
    settings: Settings, loop: str, eventually: Eventually
) -> None:
    for number in range(4):
        write_run(settings.runs_dir / f"run-{number}", loop, long_history(500))
    size = (settings.runs_dir / "run-0" / "events.jsonl").stat().st_size
    with signed_in(settings) as first:
        eventually(lambda: len(first.get("/api/runs").json()) == 4)

    before = bytes_read()
    with signed_in(settings) as second:
        runs = second.get("/api/runs").json()
        found = second.get("/api/runs/run-2/samples?step=77").json()
        taken = bytes_read() - before

        assert {run["state"] for run in runs} == {"finished"}
        assert {run["step"] for run in runs} == {500}
        assert [row["step"] for row in found["rows"]] == [77]
        assert taken < size

        events = second.get("/api/runs/run-2/events?after=498").json()
    assert [one["seq"] for one in events["events"]] == [499, 500, 501]


def test_a_run_that_went_on_while_no_server_ran_is_read_from_where_it_stood(
    settings: Settings, loop: str, eventually: Eventually
) -> None:
    folder = settings.runs_dir / "long"
    write_run(folder, loop, long_history(500))
    with signed_in(settings) as first:
        eventually(lambda: first.get("/api/runs").json())
    with (folder / "events.jsonl").open("a") as file:
        file.write(line(502, "sample", 2, step=500, path="none", rows=[{"id": "later"}]))
        file.write(line(503, "run.state", 2, state="stopped", step=501))

    before = bytes_read()
    with signed_in(settings) as second:
        eventually(lambda: second.get("/api/runs/long").json()["state"] == "stopped")
        taken = bytes_read() - before
        rows = second.get("/api/runs/long/samples?step=500").json()["rows"]

    assert taken < (folder / "events.jsonl").stat().st_size
    assert [row["id"] for row in rows] == ["later"]


def test_another_file_in_the_place_of_a_known_one_is_read_anew(
    settings: Settings, loop: str, eventually: Eventually
) -> None:
    folder = settings.runs_dir / "long"
    write_run(folder, loop, long_history(50))
    with signed_in(settings) as first:
        eventually(lambda: first.get("/api/runs").json())
    text = "".join(long_history(70)).replace(TEXT, TEXT + "longer")
    (folder / "events.jsonl").write_text(text)

    with signed_in(settings) as second:
        eventually(lambda: second.get("/api/runs/long").json()["step"] == 70)
        rows = second.get("/api/runs/long/samples?step=20").json()["rows"]

    assert rows[0]["completion"] == TEXT + "longer"


def test_a_file_that_grows_is_read_once_however_many_clients_follow_it(tmp_path: Path) -> None:
    """Ten thousand events come in parts; three cursors keep up, one reads all of it in the end."""
    events = tmp_path / "events.jsonl"
    watch = Watch(tmp_path)
    cursors, behind = [0, 0, 0], 0
    before = bytes_read()
    for part in range(20):
        numbers = range(part * 500 + 1, part * 500 + 501)
        with events.open("a") as file:
            file.writelines(line(seq, "log", step=seq, message="x" * 100) for seq in numbers)
        assert watch.poll()
        for client, cursor in enumerate(cursors):
            found = watch.log.read(cursor, 10_000)
            assert [seq for seq, _ in found] == list(range(cursor + 1, watch.log.last_seq + 1))
            cursors[client] = found[-1][0]
    size = events.stat().st_size

    assert bytes_read() - before < 1.1 * size
    assert watch.log.recent_size <= RECENT_BYTES
    while found := watch.log.read(behind, 500):
        assert [seq for seq, _ in found] == list(range(behind + 1, behind + len(found) + 1))
        behind = found[-1][0]
    assert behind == 10_000
    assert bytes_read() - before < 2.6 * size


def test_an_idle_server_asks_the_database_nothing(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    write_run(settings.runs_dir / "long", loop, long_history(5))
    eventually(lambda: client.get("/api/runs").json())
    supervisor = client.app.state.supervisor  # type: ignore[attr-defined]

    with statements() as seen:
        for _ in range(50):
            supervisor.tick()
        for _ in range(3):
            supervisor.scanner.wait_for_look(30)

    assert seen == []


def test_files_are_read_outside_of_transactions(
    settings: Settings, loop: str, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_transactions: dict[int, int] = {}  # by connection, the thread that began it
    seen: list[int] = []
    poll = Watch.poll
    event.listen(Engine, "begin", lambda c: open_transactions.update({id(c): get_ident()}))
    event.listen(Engine, "commit", lambda c: open_transactions.pop(id(c), None))
    event.listen(Engine, "rollback", lambda c: open_transactions.pop(id(c), None))

    def watched_poll(self: Watch) -> bool:
        seen.append([*open_transactions.values()].count(get_ident()))
        return poll(self)

    monkeypatch.setattr(Watch, "poll", watched_poll)
    write_run(settings.runs_dir / "long", loop, long_history(5))
    with signed_in(settings) as client:
        eventually(lambda: client.get("/api/runs").json())
        for path in ("events", "samples", "samples/steps", "report", "spec"):
            client.get(f"/api/runs/long/{path}")

    assert seen
    assert set(seen) == {0}
