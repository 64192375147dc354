"""What a run showed at the end of its steps is kept as it was shown, also where steps are done
again.

`--update-golden` records a run anew for the tests of the page.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.run_requests import request

from coloop.runtime.run_files.events import Gauges, StopRequest
from coloop.runtime.run_files.recorder import Recorder

Run = Callable[..., Any]
Text = Callable[..., str]

RECORDED = Path(__file__).resolve().parents[3] / "frontend/tests/fixtures/recordedRun.json"
"""Events of a run, and what it kept: what was shown after which of them, as the first test has
it."""


def kept(ended: Any) -> list[dict[str, Any]]:
    text = (ended.folder / "gauges.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_each_step_keeps_what_was_shown_at_its_end(
    runner: Run, tiny: Text, finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recorder, "gauges_are_due", lambda recorder: True)
    shown = []
    show = Recorder.show

    def watch(recorder: Recorder, gauges: Gauges) -> None:
        shown.append(json.loads(gauges.model_dump_json(exclude_none=True)))
        show(recorder, gauges)

    monkeypatch.setattr(Recorder, "show", watch)
    ended = finished(runner(tiny("grpo-arithmetic")))

    lines = kept(ended)
    assert all(one["gauges"] in shown for one in lines)
    assert lines[-1]["gauges"] == json.loads((ended.folder / "gauges.json").read_text())
    assert lines[-1]["gauges"]["state"] == "finished"
    of_steps = {event["step"]: event["seq"] for event in ended.of("metrics") if "node" not in event}
    assert list(of_steps) == [1, 2, 3, 4, 5, 6, 7]
    for step, seq in of_steps.items():
        first = next(one for one in lines if one["step"] == step)
        assert seq <= first["seq"] < of_steps.get(step + 1, first["seq"] + 1)
        assert first["gauges"]["step"] == step
    evaluated = [event["step"] for event in ended.of("stage.finished", stage="probe.evaluate")]
    steps = sorted([*of_steps, *evaluated, 7])  # the end of the run is the last
    assert [one["step"] for one in lines] == steps


def test_of_steps_that_are_done_again_both_are_kept_the_later_behind(
    runner: Run, tiny: Text, finished: Run
) -> None:
    text = tiny("grpo-arithmetic", {"run.checkpoint_every": 2, "nodes.probe.every": 100})

    def stop(event: dict[str, Any], folder: Any) -> None:
        if event["type"] == "stage.started" and event["step"] == 4:
            request(folder, StopRequest())

    stopped = runner(text, on_event=stop)
    path = stopped.folder / "gauges.jsonl"
    path.write_bytes(path.read_bytes() + b'{"seq": 99, "attempt": 1, "st')
    ended = finished(runner(text, resume=stopped))

    lines = kept(ended)
    order = [(one["attempt"], one["seq"]) for one in lines]
    assert order == sorted(order)
    assert {one["attempt"] for one in lines} == {1, 2}
    assert {one["gauges"]["attempt"] == one["attempt"] for one in lines} == {True}
    assert lines[-1]["step"] == 7


def test_the_recorded_run_of_the_page_s_tests_is_one_as_runs_are_now(
    runner: Run, small: str, finished: Run, update_golden: bool
) -> None:
    text = small.replace("steps: 2", "steps: 4").replace("every: 9", "every: 2")
    ended = finished(runner(text))
    now = {"events": ended.events, "kept": kept(ended)}
    if update_golden:
        RECORDED.write_text(json.dumps(now, separators=(",", ":")) + "\n", encoding="utf-8")

    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))

    assert outline(recorded) == outline(now), "record it anew with --update-golden"


def outline(recorded: dict[str, Any]) -> dict[str, Any]:
    """What two runs of one loop have in common."""
    last = recorded["kept"][-1]["gauges"]
    return {
        "events": sorted(
            (one["type"], one.get("step") or 0, str(one.get("stage") or one.get("node")))
            for one in recorded["events"]
        ),
        "kept": [(one["step"], one["attempt"], sorted(one["gauges"])) for one in recorded["kept"]],
        "parts": {
            part: {name: sorted(gauge) for name, gauge in last[part].items()}
            for part in ("nodes", "stages", "edges")
        },
    }
