"""`gauges.jsonl`: which steps have a line, what of a file stays when a run goes on."""

import json
from pathlib import Path

import pytest

from coloop.runtime.run_files.event_file import GAUGE_LINES, cut_end, has_line
from coloop.runtime.run_files.events import Gauges, LogEvent, RunStateName, StepGauges
from coloop.runtime.run_files.recorder import Recorder


def line(seq: int, *, text: str = "") -> bytes:
    return json.dumps({"seq": seq, "attempt": 1, "step": seq, "gauges": {"t": text}}).encode()


def seqs(path: Path) -> list[int]:
    return [json.loads(one)["seq"] for one in path.read_bytes().splitlines()]


def test_of_late_steps_fewer_and_fewer_have_a_line() -> None:
    steps = [step for step in range(1, 100_001) if has_line(step)]

    assert steps[:4095] == list(range(1, 4096))
    assert [step for step in steps if 4096 <= step < 4104] == [4096, 4098, 4100, 4102]
    assert len(steps) == 13_365
    assert sum(map(has_line, range(2**19, 2**20))) == 2048


@pytest.mark.parametrize(
    "end",
    [
        b"",
        b'{"seq": 3, "att',
        bytes(4096),
        line(3),
        line(3) + bytes(99),
        b"no JSON\n",
        b'{"step": 3}\n',
        b"[3]\n",
        line(4) + b"\n" + line(5) + b"\n",
    ],
)
def test_what_was_not_written_whole_and_lines_of_lost_events_are_cut(
    end: bytes, tmp_path: Path
) -> None:
    path = tmp_path / GAUGE_LINES
    path.write_bytes(line(1) + b"\n" + line(3, text="x" * 200_000) + b"\n" + end)

    with path.open("r+b") as file:
        assert cut_end(file, last_seq=3) == 3

    assert seqs(path) == [1, 3]
    assert path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize("content", [b"", b"half a line", line(2) + b"\n", bytes(10)])
def test_nothing_may_be_left(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / GAUGE_LINES
    path.write_bytes(content)

    with path.open("r+b") as file:
        assert cut_end(file, last_seq=1) == 0

    assert path.read_bytes() == b""


def test_a_line_names_the_newest_event_and_a_resume_goes_on_behind_it(tmp_path: Path) -> None:
    def gauges(step: int) -> Gauges:
        return Gauges(at="now", run="run", state=RunStateName.RUNNING, step=step)

    path = tmp_path / GAUGE_LINES
    first = Recorder(tmp_path, "run")
    first.record(LogEvent(message="one"))
    assert not path.exists()
    first.keep_gauges(1, gauges(1))
    first.record(LogEvent(message="two"))
    first.keep_gauges(2, gauges(2))
    first.close()
    path.write_bytes(path.read_bytes() + b'{"seq": 2, "attem')

    again = Recorder(tmp_path, "run")
    again.record(LogEvent(message="three"))
    again.keep_gauges(2, gauges(2))
    again.close()

    kept = [StepGauges.model_validate_json(one) for one in path.read_bytes().splitlines()]
    assert [(one.seq, one.attempt, one.step) for one in kept] == [(1, 1, 1), (2, 1, 2), (3, 2, 2)]
    assert kept[1].gauges == gauges(2)


def test_a_file_that_cannot_be_written_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / GAUGE_LINES).symlink_to("/dev/full")
    recorder = Recorder(tmp_path, "run")
    gauges = Gauges(at="now", run="run", state=RunStateName.RUNNING, step=1)

    recorder.keep_gauges(1, gauges)
    recorder.record(LogEvent(message="goes on"))
    recorder.close()

    assert recorder.seq == 1
