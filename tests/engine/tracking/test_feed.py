"""Events and gauges of a run as calls of a tracker."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.engine.tracking.recording import RecordingTracker, a_run, about, event, reading

from coloop.spec import presets
from coloop.spec.io import parse, require
from coloop.tracking import Feed
from coloop.tracking.picture import picture_of


@pytest.fixture
def tracker() -> RecordingTracker:
    return RecordingTracker()


def test_a_run_arrives_step_by_step(tmp_path: Path, tracker: RecordingTracker) -> None:
    feed = Feed(tracker, about(tmp_path), with_checkpoints=True)

    for kind, message in a_run(tmp_path):
        feed.event(message) if kind == "event" else feed.step_gauges(message)

    assert tracker.calls[0] == ("begin", tmp_path.name, "coloop")
    assert tracker.calls[-1] == ("end", "finished")
    metrics = dict(tracker.of("metrics"))
    assert sorted(metrics) == [0, 1, 2, 3]
    assert metrics[0] == {"probe/pass@8": 0.1}
    assert metrics[2] == {
        "probe/pass@8": pytest.approx(0.3),
        "units/loss": 1.0,
        "run/step_seconds": 1.5,
        "seconds/units.learn": 0.5,
        "tokens_per_second/units.learn": 100.0,
        "busy/units": 0.25,
    }
    [(step, level, title, message)] = tracker.of("alert")
    assert (step, level, title) == (3, "warning", "learning.kl")
    assert message == "units: the KL is high lower the learning rate"
    assert tracker.of("checkpoint") == [(3, "step-3", True)]
    text = tracker.of("texts")[0][1][0]
    assert (text.prompt, text.completion, text.score) == ("user: 1+2?", "3", 1.0)


def test_checkpoints_are_sent_on_wish_only(tmp_path: Path, tracker: RecordingTracker) -> None:
    feed = Feed(tracker, about(tmp_path), with_checkpoints=False)

    for kind, message in a_run(tmp_path):
        if kind == "event":
            feed.event(message)

    assert tracker.of("checkpoint") == []


def test_texts_become_rarer(tmp_path: Path, tracker: RecordingTracker) -> None:
    feed = Feed(tracker, about(tmp_path), with_checkpoints=False)
    row = {"node": "a", "prompt": "p", "completion": "c"}

    for step in range(1, 1001):
        feed.event(event("sample", step, path="x", rows=[row]))

    steps = [step for step, _ in tracker.of("texts")]
    assert steps[:12] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]
    assert len(steps) < 70


def test_values_that_are_no_numbers_are_left_out(tmp_path: Path, tracker: RecordingTracker) -> None:
    feed = Feed(tracker, about(tmp_path), with_checkpoints=False)

    feed.event(reading(1, None))
    feed.event(reading(2, float("nan")))
    feed.event(reading(3, 0.5))
    feed.close()

    assert tracker.of("metrics") == [(3, {"probe/pass@8": 0.5})]


def test_alerts_that_inform_or_clear_are_not_sent(
    tmp_path: Path, tracker: RecordingTracker
) -> None:
    feed = Feed(tracker, about(tmp_path), with_checkpoints=False)

    feed.event(event("alert", 1, level="info", code="a.b", message="m"))
    feed.event(event("alert", 1, level="warning", code="a.b", message="m", cleared=True))

    assert tracker.of("alert") == []


def test_a_failure_is_an_alert_and_a_state(tmp_path: Path, tracker: RecordingTracker) -> None:
    feed = Feed(tracker, about(tmp_path), with_checkpoints=False)

    feed.event(reading(7, 0.5))
    feed.event(event("run.state", 7, state="failed", error={"message": "the disk is full"}))
    feed.close()

    assert tracker.of("alert") == [(7, "error", "run failed", "the disk is full")]
    assert tracker.of("end") == [("failed",)]


@pytest.mark.parametrize("name", ["two-halves", "tango", "cooper", "mae"])
def test_the_picture_is_an_svg_with_every_node(name: str) -> None:
    spec = require(parse(presets.load_loop_text(name)))

    picture = ET.fromstring(picture_of(spec))

    space = "{http://www.w3.org/2000/svg}"
    titles = [text.text for text in picture.iter(f"{space}text") if "class" not in text.attrib]
    assert titles == [node[:22] for node in spec.nodes]
    assert len(list(picture.iter(f"{space}path"))) == len(spec.edges)
    corners = [(r.get("x"), r.get("y")) for r in picture.iter(f"{space}rect") if r.get("rx")]
    assert len(set(corners)) == len(spec.nodes)  # none lies on another


def test_the_documented_settings_are_settings() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "trackers.md").read_text("utf-8")
    settings = page.partition("```yaml\n")[2].partition("```")[0]
    text = presets.load_loop_text("two-halves").partition("\nrun:")[0]

    run = require(parse(f"{text}\n{settings}")).run

    assert run.report_to == ("tensorboard", "wandb")
    assert (run.project, run.report_checkpoints) == ("sums", False)


def test_a_tracker_that_does_not_exist_is_refused_with_the_choices() -> None:
    text = presets.load_loop_text("two-halves").partition("\nrun:")[0]

    [finding] = parse(f"{text}\nrun: {{report_to: [paper]}}\n").diagnostics

    assert finding.field == "run.report_to.0"
    assert "tensorboard" in finding.message
