"""A run with trackers: it sends its events, refuses what is missing before it starts, and never
depends on them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.runs.conftest import SMALL
from tests.engine.tracking.recording import RecordingTracker

from coloop.runtime import start
from coloop.tracking import RunAbout, sink
from coloop.tracking.registry import TrackerMissing

Run = Callable[..., Any]
TRACKED = SMALL + "run: {report_to: [wandb], project: sums}\n"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "is_installed", lambda name: True)


@pytest.mark.usefixtures("installed")
def test_a_run_sends_metrics_texts_and_its_end(
    runner: Run, finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = RecordingTracker()
    monkeypatch.setattr(sink, "new_tracker", lambda name: tracker)

    ended = finished(runner(TRACKED))

    assert tracker.calls[0] == ("begin", ended.folder.name, "sums")
    assert tracker.calls[-1] == ("end", "finished")
    metrics = dict(tracker.of("metrics"))
    assert {0, 1, 2} <= metrics.keys()
    assert "probe/score" in metrics[0]
    assert "actor/loss" in metrics[1]
    assert metrics[1]["seconds/actor.learn"] > 0
    assert tracker.of("texts")[0][1][0].node == "actor"


@pytest.mark.usefixtures("installed")
def test_a_tracker_that_fails_is_an_alert_and_the_run_finishes(
    runner: Run, finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(RecordingTracker):
        def begin(self, about: RunAbout) -> None:
            raise ConnectionError("no route to host")

    monkeypatch.setattr(sink, "new_tracker", lambda name: Failing())

    ended = finished(runner(TRACKED))

    [alert] = [one for one in ended.of("alert") if one["code"] == sink.AWAY]
    assert "wandb does not receive the whole run" in alert["message"]
    assert "no route to host" in alert["message"]


def test_a_tracker_that_is_not_installed_is_refused_before_the_run(
    runner: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(start, "is_installed", lambda name: False)

    with pytest.raises(TrackerMissing, match="`wandb` is not installed") as refused:
        runner(TRACKED)

    assert "pip install 'coloop[wandb]'" in str(refused.value)
    assert not list(tmp_path.rglob("events.jsonl"))
