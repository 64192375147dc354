"""`report.json` compares like with like: what was foretold of a phase with what it did."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
Text = Callable[..., str]

HALVES = ("predicted", "measured")


def report_of(ended: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ended.folder / "report.json").read_text(encoding="utf-8"))
    return found


def step_seconds(ended: Any) -> dict[int, float]:
    """By step, how long the run said that it took."""
    return {
        event["step"]: event["metrics"]["step/seconds"]
        for event in ended.of("metrics")
        if "step/seconds" in event["metrics"]
    }


def test_both_halves_speak_of_the_same_work(runner: Run, tiny: Text, finished: Run) -> None:
    ended = finished(runner(tiny("grpo-arithmetic")))

    report = report_of(ended)
    predicted, measured = (report[half] for half in HALVES)
    for key in ("stages", "tokens_per_second", "memory_bytes"):
        assert predicted[key].keys() == measured[key].keys()
    assert predicted["phases"].keys() == measured["phases"].keys()
    assert {"problems.load", "actor.learn", "actor.sync", "probe.evaluate"} <= measured[
        "stages"
    ].keys()
    assert measured["tokens_per_second"].keys() == {
        "actor.generate",
        "actor.learn",
        "start.score",
        "probe.evaluate",
    }
    for stage in measured["tokens_per_second"]:
        foretold, done = (
            half["tokens_per_second"][stage] * half["stages"][stage]
            for half in (predicted, measured)
        )
        assert done == pytest.approx(foretold, rel=0.25), stage  # texts may end early


def test_a_report_is_of_the_phase_that_took_most_of_the_run(
    runner: Run, tiny: Text, finished: Run
) -> None:
    ended = finished(runner(tiny("grpo-arithmetic")))

    report, seconds = report_of(ended), step_seconds(ended)
    phases = {"warm-up": [1, 2, 3], "rl": [4, 5, 6, 7]}
    means = {name: sum(seconds[n] for n in steps) / len(steps) for name, steps in phases.items()}
    main = max(phases, key=lambda name: means[name] * len(phases[name]))
    assert report["phase"] == main
    assert report["measured"]["steps"] == len(phases[main])
    assert report["measured"]["step_seconds"] == pytest.approx(means[main])
    assert report["measured"]["phases"] == pytest.approx(means)
    learned = [
        event["seconds"] for event in ended.of("stage.finished", stage="actor.learn", phase=main)
    ]
    assert report["measured"]["stages"]["actor.learn"] == pytest.approx(
        sum(learned) / len(learned), rel=1e-3
    )
