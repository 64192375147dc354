"""What a run tells of itself while it goes on."""

import json
from pathlib import Path

import pytest

from coloop.plan.compile import compile_plan
from coloop.runtime.phases.timeline import Timeline, entries_of
from coloop.runtime.reporting.event_reporter import EventReporter
from coloop.runtime.reporting.pace import Pace
from coloop.runtime.run_files.recorder import Recorder
from coloop.spec.io import parse

LOOP = """
coloop: 1
name: small
nodes:
  gold: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 4}
  policy:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: sft}
edges: [gold.rows -> policy.demonstrations]
schedule: {steps: 7}
"""


def no_epochs(node: str, epochs: float) -> int:
    raise AssertionError(node)


def no_buffer(buffer: str) -> bool:
    raise AssertionError(buffer)


def test_the_time_left_has_the_evaluations_that_are_still_to_come(tmp_path: Path) -> None:
    spec = parse(LOOP).spec
    assert spec is not None
    timeline = Timeline(entries_of(spec, compile_plan(spec)), no_epochs, no_buffer)
    asked = []

    def ahead(done: int, total: int) -> dict[str, int]:
        asked.append((done, total))
        return {"probe": 2}

    recorder = Recorder(tmp_path, "run")
    event_reporter = EventReporter(recorder, timeline, Pace({}), ahead)
    timeline.enter()
    timeline.next_position()
    event_reporter.pace.step_began("main")
    event_reporter.step_finished(1, seconds=2.0, idle_seconds=1.0)
    event_reporter.evaluation_began("probe", "main")
    event_reporter.evaluation_finished("main", 5.0, 3)

    event_reporter.show()
    recorder.close()

    gauges = json.loads((tmp_path / "gauges.json").read_text(encoding="utf-8"))
    # six steps of 2 s and two evaluations of 5 s
    assert gauges["eta_seconds"] == pytest.approx(6 * 2 + 2 * 5)
    assert set(asked) == {(1, 7)}
