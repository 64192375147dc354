"""A run is over when everything that belongs to it can be read: its last event is the last thing
that is written, in the folder and on the lines of a log that is followed."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import WorkerDied
from coloop.runtime.reporting.report import write_report
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.cluster.local import LocalCluster

Run = Callable[..., Any]


BROKEN = "def reward(prompts, completions, **columns):\n    raise ValueError('no')\n"


def final(event: dict[str, Any]) -> bool:
    return event["type"] == "run.state" and RunStateName(event["state"]).is_final


class Shelf:
    """What could be read of a run in the moment in which it said that it is over."""

    def __init__(self) -> None:
        self.report: dict[str, Any] | None = None
        self.gauges: dict[str, Any] = {}
        self.checkpoints: list[str] = []
        self.samples: list[str] = []

    def look(self, event: dict[str, Any], folder: Path) -> None:
        if final(event):
            report = folder / "report.json"
            self.report = json.loads(report.read_text()) if report.exists() else None
            self.gauges = json.loads((folder / "gauges.json").read_text())
            self.checkpoints = sorted(path.name for path in (folder / "checkpoints").glob("step-*"))
            self.samples = sorted(path.name for path in (folder / "samples").glob("*"))


class Order:
    """In which order a follower of the log hears things."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, kind: str, text: str) -> None:
        message = json.loads(text)
        if kind == "gauges" or (kind == "event" and final(message)):
            self.heard.append(f"{kind} {message['state']}")
        elif kind != "step_gauges":
            self.heard.append(kind)


@pytest.mark.parametrize("how", ["finished", "stopped", "failed"])
def test_what_belongs_to_a_run_lies_there_when_it_says_that_it_is_over(
    how: str, runner: Run, small: str
) -> None:
    shelf = Shelf()
    text = small
    options: dict[str, Any] = {}
    if how == "stopped":
        options["stop_at"] = lambda event: event["type"] == "metrics" and event["step"] == 1
    if how == "failed":
        source = json.dumps({"type": "python", "code": BROKEN})
        text = small.replace("{type: builtin, name: length, max: 3}", source)

    ended = runner(text, on_event=shelf.look, **options)

    assert ended.state == how
    assert ended.events[-1]["type"] == "run.state"
    assert shelf.report is not None
    assert shelf.report["state"] == how
    assert shelf.gauges["state"] == how
    said = [event["path"] for event in ended.of("checkpoint")]
    assert shelf.checkpoints == sorted(path.removeprefix("checkpoints/") for path in said)
    told = [event.get(key) for event in ended.of("sample") for key in ("path", "tokens")]
    assert [f"samples/{name}" for name in shelf.samples] == sorted(filter(None, told))
    assert sum(map(final, ended.events)) == 1


def test_who_follows_the_log_hears_of_the_end_last(runner: Run, small: str) -> None:
    order = Order()

    runner(small, more_sinks=[order])

    assert order.heard[-3:] == ["report", "gauges finished", "event finished"]


def test_a_report_that_cannot_be_made_does_not_change_how_a_run_ended(
    runner: Run, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> str:
        raise ZeroDivisionError("an estimate that divides by nothing")

    monkeypatch.setattr(f"coloop.runtime.start.{write_report.__name__}", broken)

    ended = runner(small)

    assert ended.state is RunStateName.FINISHED
    assert final(ended.events[-1])


@pytest.mark.parametrize("breaks", [False, True])
def test_that_a_run_is_over_is_said_when_its_pools_are_gone(
    runner: Run, small: str, monkeypatch: pytest.MonkeyPatch, breaks: bool
) -> None:
    order = Order()
    close = LocalCluster.close

    def closed(cluster: LocalCluster) -> None:
        close(cluster)
        order.heard.append("pools closed")
        if breaks:
            raise WorkerDied("it went by itself")

    monkeypatch.setattr(LocalCluster, "close", closed)

    with pytest.raises(WorkerDied) if breaks else nullcontext():
        runner(small, more_sinks=[order])

    assert order.heard[-2:] == ["pools closed", "event finished"]
