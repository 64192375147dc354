"""Reading run folders: growing files, broken lines, and logs of jobs that run elsewhere."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from coloop.runtime.run_files.events import MARK, EditRequest, StopRequest
from coloop_server.launchers.follow import MarkedLog
from coloop_server.runs.eventlog import RECENT, RECENT_BYTES, EventLog, entry_of
from coloop_server.runs.folder import RunFolder
from coloop_server.runs.gauges import read_gauges
from coloop_server.runs.rows import parts_of, rows_of
from coloop_server.runs.samples import SampleReader
from coloop_server.runs.summary import Summary
from coloop_server.runs.watch import Watch


def line(seq: int, type: str = "log", **fields: Any) -> str:
    event = {"seq": seq, "at": "2026-01-01T00:00:00Z", "run": "r", "attempt": 1, "type": type}
    return json.dumps(event | fields) + "\n"


def seqs(log: EventLog, after: int = 0, limit: int = 10**6) -> list[int]:
    return [seq for seq, _ in log.read(after, limit)]


def test_a_log_grows_and_a_half_written_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    assert log.refresh() == []
    whole, half = line(1) + line(2), line(3)
    path.write_text(whole + half[:20])

    assert [entry.event["seq"] for entry in log.refresh()] == [1, 2]
    assert log.refresh() == []
    path.write_text(whole + half)

    assert [entry.event["seq"] for entry in log.refresh()] == [3]
    assert seqs(log) == [1, 2, 3]


def test_any_part_of_a_long_log_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(line(seq, message="x" * (seq % 50)) for seq in range(1, 5001)))
    log = EventLog(path)
    while log.refresh():
        pass

    for after in (0, 1, 127, 128, 129, 1000, 2951, 2952, 4999, 5000, 9999):
        assert seqs(log, after, 3) == [seq for seq in range(after + 1, after + 4) if seq <= 5000]


def test_what_is_no_event_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    broken = [
        "\n",
        "{\n",
        "[]\n",
        '{"seq": "1", "type": "log"}\n',
        '{"seq": true, "type": "log"}\n',
    ]
    text = line(1) + "".join(broken) + line(2) + line(2, message="again") + line(3)
    path.write_bytes(text.encode() + b"\xff\xfe\n" + line(4).encode())
    log = EventLog(path)
    log.refresh()

    assert seqs(log) == [1, 2, 3, 4]
    assert "again" not in dict(log.read(0, 9))[2]


def test_numbers_that_are_no_json_leave_as_null(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    text = line(1, "metrics", metrics={"loss": 1}).replace(": 1}", ": NaN}")
    path.write_text(text)
    log = EventLog(path)
    log.refresh()

    assert json.loads(log.read(0, 1)[0][1])["metrics"] == {"loss": None}


def test_a_log_that_was_begun_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(line(seq) for seq in range(1, 20)))
    log = EventLog(path)
    log.refresh()
    path.write_text(line(1))

    assert [entry.event["seq"] for entry in log.refresh()] == [1]
    assert seqs(log) == [1]


def test_a_summary_keeps_the_last_word_and_survives_odd_events() -> None:
    summary = Summary()
    odd: list[dict[str, Any]] = [
        {"type": "run.state", "state": "dancing"},
        {"type": "run.state", "state": "failed", "message": 7, "error": "x", "at": "yesterday"},
        {"type": "metrics", "metrics": [1], "node": 3},
        {"type": "metrics", "metrics": {"a": "x", "b": True, "c": 1.5, "d": None}, "node": "n"},
        {"type": "log", "step": "three", "attempt": -1},
        {"type": "log", "step": 10**30, "at": "2026-01-01T00:00:00+05:00"},
    ]
    for part in parts_of([entry_of({"seq": 1, **event}, 0, 0) for event in odd]):
        summary.add_all(part, rows_of(part, 0))

    assert summary.state == "failed"
    assert summary.message is None
    assert summary.error is None
    assert summary.metrics == {"n.c": 1.5, "n.d": None}
    assert summary.step is None


def test_gauges_of_an_earlier_attempt_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(line(1, "log", attempt=2, step=4))
    gauges = {"at": "2026-01-01T00:00:01Z", "attempt": 1, "step": 9, "steps_total": 10}
    (tmp_path / "gauges.json").write_text(json.dumps(gauges))
    watch = Watch(tmp_path)

    assert watch.poll()
    assert watch.summary.step == 4
    assert watch.gauges is not None
    (tmp_path / "gauges.json").write_text("{")
    watch.poll()
    assert json.loads(watch.gauges)["step"] == 9


def test_requests_are_lines_that_the_driver_reads(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    assert folder.ask(StopRequest()) is False
    folder.path.mkdir()

    folder.ask(EditRequest(changes={"nodes.a.training.optimizer.lr": 1e-4}))
    folder.ask(StopRequest(by="page"))

    lines = [json.loads(text) for text in folder.control.read_text().splitlines()]
    assert [one["type"] for one in lines] == ["edit", "stop"]


def test_marked_lines_become_the_same_files_however_they_are_cut(tmp_path: Path) -> None:
    text = "".join(
        [
            "Ray says hello\n",
            MARK + line(1),
            MARK + '{"type":"gauges","gauges":{"step":1}}\n',
            "a line of the driver\n",
            MARK + line(2),
            MARK + line(2),
            MARK + "{broken\n",
        ]
    )
    for size in (1, 7, 1000):
        folder = RunFolder(tmp_path / f"by-{size}")
        log = MarkedLog(folder)
        for start in range(0, len(text), size):
            log.take(text[start : start + size])

        assert folder.events.read_text() == line(1) + line(2)
        assert json.loads(folder.gauges.read_text()) == {"step": 1}
        engine = (folder.path / "engine.log").read_text()
        assert engine == "Ray says hello\na line of the driver\n"


def test_a_log_that_comes_again_from_its_start_adds_only_what_is_new(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    first = "one\n" + MARK + line(1)
    MarkedLog(folder).take(first)

    later = MarkedLog(folder)
    later.restart()
    later.take(first + "two\n" + MARK + line(2))

    assert folder.events.read_text() == line(1) + line(2)
    assert (folder.path / "engine.log").read_text() == "one\ntwo\n"


def test_gauges_do_not_go_back_when_a_log_comes_again(tmp_path: Path) -> None:
    """After the end the log is read once more from its start: what lies there stays the last."""
    folder = RunFolder(tmp_path / "run")
    gauges = [
        MARK
        + json.dumps({"type": "gauges", "gauges": {"step": step, "at": f"2026-01-02T03:04:{at}"}})
        for step, at in ((1, "05+00:00"), (2, "05.5+00:00"), (3, "06.25+00:00"))
    ]
    text = "\n".join([*gauges, line(1)])
    MarkedLog(folder).take(text)
    assert json.loads(folder.gauges.read_text())["step"] == 3

    for log in (MarkedLog(folder), MarkedLog(folder)):
        log.restart()
        log.take(gauges[0] + "\n" + gauges[1] + "\n")

        assert json.loads(folder.gauges.read_text())["step"] == 3


def test_gauges_of_steps_come_once_however_often_a_log_comes(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    text = "".join(
        line(2 * step - 1).join([MARK, MARK])
        + json.dumps({"type": "step_gauges", "seq": 2 * step - 1, "step": step, "gauges": {}})
        + "\n"
        for step in (1, 2)
    )
    MarkedLog(folder).take(text)
    with folder.gauge_lines.open("a") as file:
        file.write('{"seq": 5, "attem')

    later = MarkedLog(folder)
    later.restart()
    later.take(text + MARK + '{"type": "step_gauges", "seq": "no"}\n')

    kept = [json.loads(one) for one in folder.gauge_lines.read_text().splitlines()]
    assert [(one["seq"], one["step"], one["gauges"]) for one in kept] == [(1, 1, {}), (3, 2, {})]


def test_what_is_no_plain_file_holds_no_reader(tmp_path: Path) -> None:
    files = ("events.jsonl", "gauges.json", "gauges.jsonl", "spec.yaml", "report.json")
    for name in (*files, "control.jsonl"):
        os.mkfifo(tmp_path / name)
    folder = RunFolder(tmp_path)

    assert Watch(tmp_path).poll() is False
    assert folder.spec_text() is None
    assert folder.report() is None
    assert read_gauges(folder.gauge_lines, 1, 1) is None
    with pytest.raises(OSError, match=r"plain file|No such device"):
        folder.ask(StopRequest())


def test_links_in_a_run_folder_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("secret\n")
    run = tmp_path / "run"
    run.mkdir()
    for name in ("spec.yaml", "control.jsonl", "events.jsonl"):
        (run / name).symlink_to(secret)
    folder = RunFolder(run)

    assert folder.spec_text() is None
    assert EventLog(folder.events).refresh() == []
    with pytest.raises(OSError, match="Too many levels"):
        folder.ask(StopRequest())
    assert secret.read_text() == "secret\n"


def test_a_device_or_a_folder_in_the_place_of_events_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").mkdir()
    (tmp_path / "gauges.json").symlink_to("/dev/zero")

    assert Watch(tmp_path).poll() is False


def test_a_seq_that_no_database_takes_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1) + line(2**63) + line(10**30) + line(2))
    log = EventLog(path)
    log.refresh()

    assert seqs(log) == [1, 2]


def test_an_unreadable_line_in_the_middle_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(
        line(1).encode()
        + b"\x00\xff" * 500
        + b"\n"
        + line(2)[:30].encode()
        + line(3).encode()
        + line(4).encode()
        + line(5)[:20].encode()
    )
    log = EventLog(path)

    assert [entry.event["seq"] for entry in log.refresh()] == [1, 4]
    assert EventLog(path).recall(log.keep())
    with path.open("a") as file:
        file.write(line(5)[20:] + line(6))
    assert [entry.event["seq"] for entry in log.refresh()] == [5, 6]
    assert seqs(log, 1) == [4, 5, 6]


def test_values_that_cannot_be_sent_are_sent_as_null(tmp_path: Path) -> None:
    rows = (
        '{"node": ["a"], "completion": "half \\ud83d", "reward": 1e999, "extra": 1e999}\n'
        + '{"deep": '
        + "[" * 400
        + "]" * 400
        + "}\n"
        + '{"node": "actor", "reward": '
        + "9" * 400
        + "}\n"
    )
    (tmp_path / "rows.jsonl").write_text(rows)
    path = tmp_path / "events.jsonl"
    path.write_text(
        line(1, "sample", step=1, path="rows.jsonl", node=7)
        + line(2, "metrics", metrics={"loss": 10**400})
        + line(3, "run.state", state="failed", error={"why": "?"})
    )
    watch = Watch(tmp_path)
    watch.poll()

    found = SampleReader(watch.folder, watch.log, watch.samples).read(step=1, node=None, limit=9)

    assert [row.node for row in found] == [None, "actor"]
    assert [row.reward for row in found] == [None, None]
    assert json.loads(json.dumps([row.model_dump(mode="json") for row in found], allow_nan=False))
    assert "\\ud83d" not in found[0].model_dump_json()
    assert (watch.summary.metrics, watch.summary.error) == ({"loss": None}, None)


def test_a_file_that_is_cut_while_it_is_read_holds_nobody(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("x" * 100)

    assert EventLog(path).take_new(10_000) == []


def test_lines_far_back_are_told_as_they_were_told_at_first(tmp_path: Path) -> None:
    """What is no event, comes twice or holds what is no JSON, where nothing of it is recent."""
    path = tmp_path / "events.jsonl"
    lines = [line(seq) for seq in range(1, 400)]
    lines[49] = line(50, "metrics", metrics={"loss": 1}).replace(": 1}", ": NaN}")
    lines[99] = '{"seq": 100, "type": "log", "half": \n'
    lines[199] = line(120, message="again")
    lines[299] = '{"type": "log", "seq": 300}\n'
    path.write_text("".join(lines))
    log = EventLog(path)
    log.refresh()
    kept = EventLog(path)
    assert kept.recall(json.loads(json.dumps(log.keep())))
    first = log.read(0, 1000)
    log.recent_seqs.clear()
    log.recent_lines.clear()

    assert log.read(0, 1000) == kept.read(0, 1000) == first
    told = dict(first)
    assert len(told) == 397
    assert {100, 200}.isdisjoint(told)
    assert json.loads(told[50])["metrics"] == {"loss": None}
    assert told[300] == lines[299].strip()


def test_what_is_kept_of_a_log_in_memory_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(line(seq, message="x" * 9000) for seq in range(1, 600)))
    log = EventLog(path)
    while log.refresh():
        pass

    assert sum(map(len, log.recent_lines)) == log.recent_size <= RECENT_BYTES
    assert seqs(log) == list(range(1, 600))
    small = tmp_path / "small.jsonl"
    small.write_text("".join(line(seq) for seq in range(1, RECENT + 500)))
    log = EventLog(small)
    while log.refresh():
        pass
    assert len(log.recent_lines) == len(log.recent_seqs) == RECENT
