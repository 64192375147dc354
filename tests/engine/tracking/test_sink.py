"""A tracker that is slow, fails or hangs never slows or ends a run."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.engine.tracking.recording import (
    RecordingTracker,
    a_run,
    about,
    as_texts,
    event,
    reading,
)

from coloop.tracking import Tracker, TrackerSink, registry, sink
from coloop.tracking.tracker import RunAbout

MESSAGES = 500


class Hanging(RecordingTracker):
    """Blocks until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self.let_go.wait(60)
        super().metrics(step, values)


class Failing(RecordingTracker):
    def begin(self, about: RunAbout) -> None:
        raise ConnectionError("no route to host")


class Leaving(RecordingTracker):
    def begin(self, about: RunAbout) -> None:
        raise SystemExit(1)


Start = Callable[..., tuple[TrackerSink, list[str]]]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Start]:
    sinks = []

    def start(tracker: Tracker, most_waiting: int = 5000) -> tuple[TrackerSink, list[str]]:
        monkeypatch.setattr(sink, "new_tracker", lambda name: tracker)
        problems: list[str] = []
        made = TrackerSink("wandb", about(tmp_path), problems.append, most_waiting=most_waiting)
        sinks.append(made)
        return made, problems

    yield start
    for made in sinks:
        made.close(timeout=5)


def test_everything_has_arrived_when_it_is_closed(start: Start, tmp_path: Path) -> None:
    tracker = RecordingTracker()
    made, problems = start(tracker)

    for kind, text in as_texts(a_run(tmp_path)):
        made(kind, text)
    made.close()

    assert [step for step, _ in tracker.of("metrics")] == [0, 1, 2, 3]
    assert tracker.of("end") == [("finished",)]
    assert problems == []


def test_a_tracker_that_hangs_loses_messages_and_says_so_once(start: Start) -> None:
    tracker = Hanging()
    made, problems = start(tracker, most_waiting=10)
    messages = as_texts([("event", reading(step, 0.1)) for step in range(MESSAGES)])

    begun = time.process_time()
    for kind, text in messages:
        made(kind, text)
    spent = time.process_time() - begun
    made.close(timeout=0.2)

    assert spent < 2.0  # of processor time, for 500 messages
    [problem] = problems
    assert "it is slow: 10 messages are waiting, and more are lost" in problem
    assert f"`coloop log {made.about.run} --to wandb` sends it" in problem
    tracker.let_go.set()


def test_a_tracker_that_hangs_at_the_end_is_left_alone(start: Start) -> None:
    tracker = Hanging()
    made, problems = start(tracker)
    made("event", as_texts([("event", reading(1, 0.1))])[0][1])
    made("event", as_texts([("event", reading(2, 0.1))])[0][1])

    made.close(timeout=0.2)

    assert "has not taken the end of the run" in problems[0]
    tracker.let_go.set()


@pytest.mark.parametrize(
    ("tracker", "said"), [(Failing(), "no route to host"), (Leaving(), "SystemExit: 1")]
)
def test_a_tracker_that_fails_is_reported_once(start: Start, tracker: Tracker, said: str) -> None:
    made, problems = start(tracker)

    for kind, text in as_texts([("event", reading(step, 0.1)) for step in range(MESSAGES)]):
        made(kind, text)
    made.close()

    assert len(problems) == 1
    assert said in problems[0]


def test_stages_and_logs_are_not_queued(start: Start) -> None:
    tracker = RecordingTracker()
    made, problems = start(tracker, most_waiting=2)

    for kind in ("stage.started", "stage.finished", "log"):
        for _ in range(20):
            made("event", as_texts([("event", event(kind, 1))])[0][1])
    made.close()

    assert (tracker.calls, problems) == ([], [])


def test_a_tracker_whose_library_is_missing_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None)

    with pytest.raises(registry.TrackerMissing, match=r"pip install 'coloop\[mlflow\]'"):
        registry.new_tracker("mlflow")
