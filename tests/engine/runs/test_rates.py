"""Rates multiply out: what a gauge says a second, times the time of a step, is what a step did."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
Text = Callable[..., str]

FILTER = {"kind": "filter", "per_group": {"max": 2}, "fill": {"rows": 8, "max_rounds": 5}}
"""Keeps 6 rows of a pass over 3 prompts, so that each step goes round twice."""


def gauges_of(ended: Any) -> dict[str, Any]:
    """The last gauges of a run."""
    found: dict[str, Any] = json.loads((ended.folder / "gauges.json").read_text(encoding="utf-8"))
    return found


def samples_of(ended: Any, phase: str, stage: str) -> list[int]:
    """What the stage worked on in each step of a phase, evaluations left out."""
    events = ended.of("stage.finished", phase=phase, stage=stage)
    return [event["samples"] for event in events if "evaluation" not in event]


def test_rates_times_the_time_of_a_step_are_the_rows_of_a_step(
    runner: Run, tiny: Text, finished: Run
) -> None:
    ended = finished(runner(tiny("grpo-arithmetic")))

    gauges = gauges_of(ended)
    seconds = gauges["step_seconds"]
    a_step = {
        edge: gauge["rows_per_second"] * seconds
        for edge, gauge in gauges["edges"].items()
        if not gauge["evaluation"]
    }
    assert a_step == pytest.approx(
        {
            "problems.rows->actor.prompts": 3,
            "problems.rows->actor.demonstrations": 0,
            "actor.rollouts->exact.rollouts": 12,
            "actor.rollouts->start.rollouts": 12,
            "exact.scores->actor.rewards": 12,
            "start.log_probs->actor.reference": 12,
        }
    )
    for stage in ("problems.load", "actor.generate", "exact.score", "actor.learn"):
        samples = samples_of(ended, "rl", stage)
        gauge = gauges["stages"][stage]
        assert gauge["wall_samples_per_second"] * seconds == pytest.approx(
            sum(samples) / len(samples)
        )
        assert gauge["wall_samples_per_second"] <= gauge["samples_per_second"]
        assert not gauge["evaluation"]
    assert sum(one["share"] for one in gauges["stages"].values() if not one["evaluation"]) <= 1
    node = gauges["nodes"]["problems"]
    assert node["wall_samples_per_second"] * seconds == pytest.approx(3)


def test_what_only_a_probe_reads_has_its_rate_and_is_marked(
    runner: Run, tiny: Text, finished: Run
) -> None:
    ended = finished(runner(tiny("grpo-arithmetic")))

    gauges = gauges_of(ended)
    for edge in ("held_out.rows->probe.rows", "exact.scores->probe.scores"):
        assert gauges["edges"][edge]["evaluation"]
        assert gauges["edges"][edge]["rows_per_second"] > 0
        assert gauges["edges"][edge]["rows"] == 4 * 5
    for stage in ("held_out.load", "probe.evaluate"):
        gauge = gauges["stages"][stage]
        assert gauge["evaluation"]
        assert 0 < gauge["wall_samples_per_second"] <= gauge["samples_per_second"]
    assert gauges["nodes"]["probe"]["evaluation"]
    assert not gauges["nodes"]["actor"]["evaluation"]
    assert gauges["bottleneck"] != "probe.evaluate"
    told = [one for one in ended.of("stage.finished") if one.get("evaluation") == "probe"]
    assert {one["stage"] for one in told} >= {"held_out.load", "actor.generate", "exact.score"}
    assert [one["step"] for one in told if one["stage"] == "probe.evaluate"] == [0, 2, 4, 6, 7]


def test_nothing_flows_where_the_phase_has_no_reader(
    runner: Run, tiny: Text, finished: Run
) -> None:
    phases = [
        {"name": "rl", "steps": 2, "learn": ["actor.rewards"]},
        {"name": "imitate", "steps": 2, "learn": ["actor.demonstrations"]},
    ]
    ended = finished(runner(tiny("grpo-arithmetic", {"schedule.phases": phases})))

    edges = gauges_of(ended)["edges"]
    assert edges["actor.rollouts->start.rollouts"] == {
        "rows_per_second": 0.0,
        "rows": 24,
        "evaluation": False,
        "queue": 0,
    }
    assert edges["problems.rows->actor.demonstrations"]["rows_per_second"] > 0


def test_an_edge_behind_a_filter_delivers_what_was_kept(
    runner: Run, tiny: Text, finished: Run
) -> None:
    values = {
        "nodes.kept": FILTER,
        "edges": [
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> kept.scores",
            "kept.scores -> actor.rewards",
            "held_out.rows -> probe.rows",
            "exact.scores -> probe.scores",
        ],
        "nodes.actor.algorithm": {"rewards": {"name": "reinforce"}},
        "schedule.phases": [{"name": "rl", "steps": 4, "learn": ["actor.rewards"]}],
    }

    ended = finished(runner(tiny("grpo-arithmetic", values)))

    gauges = gauges_of(ended)
    seconds = gauges["step_seconds"]
    a_step = {edge: one["rows_per_second"] * seconds for edge, one in gauges["edges"].items()}
    assert a_step["problems.rows->actor.prompts"] == pytest.approx(6)
    assert a_step["actor.rollouts->exact.rollouts"] == pytest.approx(24)
    assert a_step["exact.scores->kept.scores"] == pytest.approx(24)
    assert a_step["kept.scores->actor.rewards"] == pytest.approx(8)
    assert samples_of(ended, "rl", "actor.learn") == [8] * 4
