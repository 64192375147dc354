"""Gauges of a past moment: those that a run kept, found by the event at which it is shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.test_long_runs import bytes_read, line, write_run

from coloop.runtime.run_files.events import RunStateName
from coloop_server.runs.gauges import GaugeLines, read_gauges
from coloop_server.runs.schemas import RunGauges
from coloop_server.settings import Settings

Eventually = Callable[..., Any]


def kept(seq: int, step: int, attempt: int = 1, **more: Any) -> bytes:
    gauges = {"at": "2026-01-01T00:00:00Z", "run": "r", "state": "running", "step": step} | more
    return json.dumps({"seq": seq, "attempt": attempt, "step": step, "gauges": gauges}).encode()


def seqs(found: GaugeLines | None) -> list[int]:
    assert found is not None
    return [json.loads(text)["seq"] for text in found.texts]


def test_the_newest_that_is_not_later_is_found_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "gauges.jsonl"
    numbers = [3, 7, 8, 8, 20, 21, 40, 300]
    lengths = [0, 5000, 0, 1, 20_000, 0, 0, 3]
    lines = (
        kept(seq, seq, note="x" * length) for seq, length in zip(numbers, lengths, strict=True)
    )
    path.write_bytes(b"".join(one + b"\n" for one in lines) + b'{"seq": 301, "attem')

    for seq in range(1, 320):
        before = [number for number in numbers if number <= seq]
        first = before[-1] if before else numbers[0]
        wanted = [*([8] if first == 8 else [first]), *(one for one in numbers if one > first)][:3]
        found = read_gauges(path, seq, 3)
        assert seqs(found) == wanted, seq
        assert found is not None
        assert found.has_more == (wanted[-1] != 300)


@pytest.mark.parametrize("number", range(1, 40))
def test_any_number_of_lines_is_halved_to_the_right_one(number: int, tmp_path: Path) -> None:
    path = tmp_path / "gauges.jsonl"
    path.write_bytes(b"".join(kept(2 * seq, seq) + b"\n" for seq in range(1, number + 1)))

    for seq in range(2, 2 * number + 2):
        assert seqs(read_gauges(path, seq, 1)) == [seq // 2 * 2]


def test_what_is_no_line_of_gauges_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "gauges.jsonl"
    odd = [b"", b"nonsense", b'{"seq": 4, "gauges": 5}', b"\xff\xfe", b'{"seq": 5}', bytes(300)]
    deep = b'{"seq": 6, "gauges": {"a": ' + b"[" * 90 + b"]" * 90 + b"}}"
    path.write_bytes(b"\n".join([*odd, kept(3, 1), *odd, deep, kept(9, 2), *odd[:2], b""]))

    assert [seqs(read_gauges(path, seq, 8)) for seq in (1, 3, 4, 9)] == [[3, 9], [3, 9], [9], [9]]
    path.write_bytes(b"")
    assert read_gauges(path, 3, 8) == GaugeLines([], has_more=False)
    assert read_gauges(tmp_path / "none", 3, 8) is None


def test_a_run_gives_the_gauges_of_its_past_for_their_own_bytes(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    lines = [line(seq, "log", 1 + (seq > 900), step=seq) for seq in range(1, 1001)]
    write_run(settings.runs_dir / "long", loop, lines)
    path = settings.runs_dir / "long" / "gauges.jsonl"
    rates = {f"node{number}": {"busy": 0.5, "samples_per_second": 1.25} for number in range(40)}
    many = (kept(10 * step, step, nodes=rates) + b"\n" for step in range(1, 101))
    path.write_bytes(b"".join(many))
    eventually(lambda: client.get("/api/runs").json())
    client.get("/api/runs/long/gauges?seq=1")

    before = bytes_read()
    answer = client.get("/api/runs/long/gauges?seq=555&limit=2").json()
    taken = bytes_read() - before

    found = RunGauges.model_validate(answer)
    assert [(one.seq, one.step, one.gauges.step) for one in found.gauges] == [
        (550, 55, 55),
        (560, 56, 56),
    ]
    assert found.gauges[0].gauges.state is RunStateName.RUNNING
    assert found.gauges[0].gauges.nodes["node7"].samples_per_second == 1.25
    assert (found.has_more, found.last_seq, found.is_recorded) == (True, 1000, True)
    assert taken < path.stat().st_size


def test_a_run_that_kept_none_says_so(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    write_run(settings.runs_dir / "old", loop, [line(1, "run.state", state="finished", step=4)])
    eventually(lambda: client.get("/api/runs").json())

    answer = client.get("/api/runs/old/gauges?seq=1").json()

    assert answer == {"gauges": [], "last_seq": 1, "has_more": False, "is_recorded": False}
    assert client.get("/api/runs/old/gauges?seq=-1").status_code == 422
    assert client.get("/api/runs/nobody/gauges?seq=1").status_code == 404
