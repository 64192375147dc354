"""The event file: gapless numbers over attempts, a cut last line, sinks that fail."""

import json
import resource
import signal
from pathlib import Path

import pytest

from coloop.errors import StorageFull
from coloop.runtime.run_files.event_file import read_events
from coloop.runtime.run_files.events import MARK, Gauges, LogEvent, RunStateEvent, RunStateName
from coloop.runtime.run_files.recorder import Recorder, print_marked


def test_seq_is_gapless_over_attempts(tmp_path: Path) -> None:
    first = Recorder(tmp_path, "run")
    first.record(RunStateEvent(state=RunStateName.RUNNING))
    first.record(LogEvent(message="one"))
    first.close()

    second = Recorder(tmp_path, "run")
    second.record(LogEvent(message="two"))
    second.close()

    events = read_events(tmp_path / "events.jsonl")
    assert [event["seq"] for event in events] == [1, 2, 3]
    assert [event["attempt"] for event in events] == [1, 1, 2]


def test_a_line_that_was_not_written_whole_is_cut(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "run")
    recorder.record(LogEvent(message="whole"))
    recorder.close()
    path = tmp_path / "events.jsonl"
    path.write_bytes(path.read_bytes() + b'{"seq": 2, "mess')

    again = Recorder(tmp_path, "run")
    again.record(LogEvent(message="next"))
    again.close()

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["message"] for line in lines] == ["whole", "next"]
    assert [line["seq"] for line in lines] == [1, 2]


def test_a_sink_that_fails_is_dropped_and_the_run_goes_on(tmp_path: Path) -> None:
    def broken(kind: str, text: str) -> None:
        raise RuntimeError("gone")

    recorder = Recorder(tmp_path, "run", [broken])
    recorder.record(LogEvent(message="one"))
    recorder.record(LogEvent(message="two"))
    recorder.close()

    assert len(read_events(tmp_path / "events.jsonl")) == 2


def test_events_after_a_number(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "run")
    for name in "abc":
        recorder.record(LogEvent(message=name))
    recorder.close()

    assert [e["message"] for e in read_events(tmp_path / "events.jsonl", after=1)] == ["b", "c"]


def test_gauges_are_replaced_whole(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "run")
    for step in (1, 2):
        recorder.show(Gauges(at="now", run="run", state=RunStateName.RUNNING, step=step))
    recorder.close()

    assert json.loads((tmp_path / "gauges.json").read_text())["step"] == 2


def test_a_long_event_is_still_whole_json_on_its_marked_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    event = {
        "type": "sample",
        "seq": 3,
        "path": "samples/step-1.jsonl",
        "rows": [{"t": "x" * 9000}],
    }
    failed = {"type": "run.state", "seq": 4, "error": {"code": "c", "message": "m" * 9000}}

    for one in (event, failed):
        print_marked("event", json.dumps(one))

    lines = [json.loads(line.removeprefix(MARK)) for line in capsys.readouterr().out.splitlines()]
    assert [line["seq"] for line in lines] == [3, 4]
    assert lines[0]["rows"] == []
    assert len(lines[1]["error"]["message"]) == 1000


def test_no_marked_line_is_longer_than_a_write_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    gauges = {"step": 3, "stages": {f"stage_{n}": {"seconds": 0.1} for n in range(400)}}
    gauges["nodes"] = {f"node_{n}": {"busy": 0.5} for n in range(400)}
    gauges["edges"] = {f"edge_{n}": {"rows": 5} for n in range(400)}
    diagnostic = {"code": "c", "message": "m" * 9000, "fixes": [{"title": "t" * 9000}]}
    report = {"run": "r", "metrics": {f"metric_{n}": 0.5 for n in range(900)}}

    print_marked("gauges", json.dumps(gauges))
    long = {"type": "log", "seq": 2, "message": "x" * (8 * 1024 - 45)}
    for event in ({"type": "diagnostic", "seq": 1, "diagnostic": diagnostic}, long):
        print_marked("event", json.dumps(event))
    print_marked("report", json.dumps(report))

    lines = capsys.readouterr().out.splitlines(keepends=True)
    assert all(len(line.encode()) <= 8 * 1024 for line in lines)
    told = [json.loads(line.removeprefix(MARK)) for line in lines]
    assert told[0]["gauges"] == {"step": 3, "stages": {}, "nodes": {}, "edges": {}}
    assert told[1]["diagnostic"]["message"] == "m" * 1000
    assert told[3]["report"] == {"run": "r", "metrics": {}}


def test_an_event_without_room_leaves_nothing_of_it_and_takes_no_number(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "run")
    recorder.record(LogEvent(message="one"))
    size = (tmp_path / "events.jsonl").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        with pytest.raises(StorageFull, match=r"events\.jsonl.* it needs \d+ bytes"):
            recorder.record(LogEvent(message="two"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert (tmp_path / "events.jsonl").stat().st_size == size
    recorder.record(LogEvent(message="three"))
    recorder.close()

    events = read_events(tmp_path / "events.jsonl")
    assert [(event["seq"], event["message"]) for event in events] == [(1, "one"), (2, "three")]


def three_events(folder: Path) -> Path:
    """An event file of three events."""
    recorder = Recorder(folder, "run")
    for name in "abc":
        recorder.record(LogEvent(message=name))
    recorder.close()
    return folder / "events.jsonl"


@pytest.mark.parametrize(
    "bad",
    [b"?", b"\0\0\0", b"[" * 100_000, b"7", b'{"seq": 2}', b'{"type": "log"}', b"\xff"],
    ids=["no JSON", "zeros", "too deep", "a number", "no type", "no seq", "no text"],
)
def test_a_bad_line_in_the_middle_stays_and_costs_no_other(tmp_path: Path, bad: bytes) -> None:
    path = three_events(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + bad + b"\n" + lines[2])
    before = path.read_bytes()

    again = Recorder(tmp_path, "run")
    again.record(LogEvent(message="next"))
    again.close()

    assert path.read_bytes().startswith(before)
    assert again.damaged == (2,)
    events = read_events(path)
    assert [(one["seq"], one["message"]) for one in events] == [(1, "a"), (3, "c"), (4, "next")]
    assert events[-1]["attempt"] == 2


def test_a_line_without_an_attempt_blocks_nobody(tmp_path: Path) -> None:
    path = three_events(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"attempt":1,', b"", 2))

    again = Recorder(tmp_path, "run")
    again.close()

    assert (again.seq, again.attempt, again.damaged) == (3, 2, ())


@pytest.mark.parametrize(
    ("tail", "whole"),
    [(b'{"seq": 4, "mess', 3), (bytes(4096), 3), (b'{"seq": 4, "m' + bytes(99), 3), (b"", 3)],
    ids=["torn", "zeros", "torn in zeros", "no end"],
)
def test_only_the_end_is_mended(tmp_path: Path, tail: bytes, whole: int) -> None:
    path = three_events(tmp_path)
    before = path.read_bytes()
    path.write_bytes(before + tail if tail else before[:-1])

    again = Recorder(tmp_path, "run")
    again.close()

    assert path.read_bytes() == before
    assert (again.seq, again.damaged) == (whole, ())
