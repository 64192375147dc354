"""Phases, dead edges and evaluations in the estimate."""

import json

import pytest
from tests.engine.estimate.conftest import stage_of

from coloop.plan.cost import estimate, explain
from coloop.plan.run_check import check_run, refusals_of
from coloop.plan.unrolled import Unrolled
from coloop.spec.paths import apply_overrides

RL = {"name": "rl", "learn": ["actor"]}


def test_phases_are_told_apart(tiny):
    found = explain(
        tiny(
            nodes={
                "actor": {
                    "algorithm": {"rewards": {"name": "grpo"}, "demonstrations": {"name": "sft"}}
                }
            },
            edges=[
                "problems.rows -> actor.prompts",
                "problems.rows -> actor.demonstrations",
                "actor.rollouts -> exact.rollouts",
                "exact.scores -> actor.rewards",
            ],
            schedule={
                "steps": None,
                "phases": [
                    {"name": "warm-up", "steps": 10, "learn": ["actor.demonstrations"]},
                    {"repeat": 3, "phases": [{"name": "rl", "steps": 10, "learn": ["actor"]}]},
                ],
            },
        )
    )

    assert [(phase.name, phase.steps) for phase in found.phases] == [("warm-up", 10), ("rl", 30)]
    assert "actor.generate" not in found.phases[0].stages
    assert "actor.generate" in found.phases[1].stages
    assert found.total_seconds == pytest.approx(sum(phase.seconds for phase in found.phases))
    assert found.estimate.step_seconds == found.phases[1].step_seconds


def test_a_phase_that_a_trigger_ends_does_not_stand_for_the_run(tiny):
    algorithm = {"rewards": {"name": "grpo"}, "demonstrations": {"name": "sft"}}
    probe = {"kind": "evaluate", "every": 20, "metrics": ["score"]}
    trigger = {
        "in": "warm-up",
        "when": {"metric": "probe.score", "above": 0.5},
        "do": {"next_phase": True},
    }
    found = explain(
        tiny(
            nodes={"actor": {"algorithm": algorithm}, "probe": probe},
            edges=[
                "problems.rows -> actor.prompts",
                "problems.rows -> actor.demonstrations",
                "actor.rollouts -> exact.rollouts",
                "exact.scores -> actor.rewards",
                "exact.scores -> probe.scores",
            ],
            schedule={
                "steps": None,
                "phases": [
                    {"name": "warm-up", "steps": 100_000, "learn": ["actor.demonstrations"]},
                    {"name": "rl", "steps": 100, "learn": ["actor.rewards"]},
                ],
                "triggers": [trigger],
            },
        )
    )

    assert found.estimate.step_seconds == found.phases[1].step_seconds


def test_a_reference_that_no_algorithm_reads_does_not_run(tiny):
    found = explain(tiny(nodes={"actor": {"algorithm": {"rewards": {"name": "grpo", "kl": None}}}}))

    assert "start.score" not in found.phases[0].stages


def test_a_dead_edge_costs_nothing(tiny):
    second = {"kind": "reward", "source": {"type": "builtin", "name": "format", "shape": "number"}}
    found = explain(
        tiny(
            nodes={"form": second},
            edges=[
                "problems.rows -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "actor.rollouts -> form.rollouts",
                "exact.scores -> actor.rewards",
                {"from": "form.scores", "to": "actor.rewards", "weight": 0.0},
            ],
        )
    )

    assert "form.score" not in found.phases[0].stages


def test_an_evaluation_is_spread_over_its_steps(tiny):
    held_out = {
        "kind": "dataset",
        "source": {"type": "task", "task": "arithmetic", "split": "test"},
        "rows_per_step": 256,
    }
    probe = {"kind": "evaluate", "instead_of": "problems", "every": 20, "greedy": True}
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]
    without = estimate(tiny(edges=edges))
    spec = tiny(
        nodes={"held_out": held_out, "probe": probe},
        edges=[*edges, "held_out.rows -> probe.rows", "exact.scores -> probe.scores"],
    )
    found = estimate(spec)

    evaluation = stage_of(found, "probe.evaluate").seconds
    assert evaluation > 0.01
    assert found.step_seconds == pytest.approx(without.step_seconds + evaluation / 20)


@pytest.mark.parametrize(
    ("schedule", "steps"),
    [
        ({"epochs": 3}, 8),
        ({"epochs": {"of": "problems", "count": 2}}, 5),
        ({"epochs": 1000}, 2500),
        ({"phases": [{"name": "all", "epochs": 1000, "max_steps": 70, "learn": ["actor"]}]}, 70),
        (
            {
                "phases": [
                    {"repeat": 2, "phases": [{"name": "rl", "epochs": 3, "learn": ["actor"]}]}
                ]
            },
            16,
        ),
    ],
)
def test_passes_over_rows_that_are_known_count_as_steps(tiny, schedule, steps, tmp_path):
    """Ten rows, four of them a step."""
    rows = [{"prompt": str(number)} for number in range(10)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    inline = {"type": "inline", "rows": rows}
    file = {"type": "file", "path": "rows.jsonl"}

    def expected(source, root):
        problems = {"source": {**source, "task": None}, "rows_per_step": 4}
        unrolled = Unrolled(
            tiny(nodes={"problems": problems}, schedule={"steps": None, **schedule})
        )
        [phase] = unrolled.phases
        return unrolled.expected_steps(phase, root)

    assert expected(inline, None) == expected(file, tmp_path) == steps
    assert expected(file, None) == (70 if steps == 70 else 100)


def test_a_phase_that_sets_its_rows_is_estimated_with_them(tiny):
    loop = tiny(
        schedule={
            "steps": None,
            "phases": [
                {"name": "few", "steps": 10, "learn": ["actor"]},
                {
                    "name": "many",
                    "steps": 10,
                    "learn": ["actor"],
                    "set": {
                        "nodes.problems.rows_per_step": 512,
                        "nodes.actor.training.optimizer.lr": 1e-4,
                    },
                },
            ],
        }
    )

    found = explain(loop)
    few, many = (
        {stage.stage: stage.seconds for stage in found.stages_in[name]} for name in ("few", "many")
    )

    alone = explain(tiny(nodes={"problems": {"rows_per_step": 512}}))
    assert many["actor.generate"] > 2 * few["actor.generate"]
    assert many["actor.learn"] == pytest.approx(
        next(s.seconds for s in alone.estimate.stages if s.stage == "actor.learn")
    )


def test_a_variant_is_estimated_as_if_it_stood_alone(grpo):
    spec = grpo(schedule={"steps": 5})
    variant = apply_overrides(
        spec,
        {"nodes.actor.training.micro_batch": 2, "nodes.actor.rollout.gpu_memory_utilization": 0.4},
    )
    unrolled = Unrolled(spec)
    explain(spec, unrolled)

    assert explain(variant, unrolled.again(variant)) == explain(variant)


def test_other_numbers_of_rows_are_counted_again(grpo):
    """128 prompts and 8 completions each are 1,024 rows to learn from; half of the prompts 512."""
    spec = grpo(schedule={"steps": 5})
    fewer = apply_overrides(spec, {"nodes.problems.rows_per_step": 64})
    unrolled = Unrolled(spec)

    counts = unrolled.settings().survey.counts
    assert counts.taught("actor", "rewards").mean.rows == 128 * 8
    counts = unrolled.resized(fewer).settings().survey.counts
    assert counts.taught("actor", "rewards").mean.rows == 64 * 8


def test_refusals_of_a_variant_are_those_of_its_plan(grpo):
    spec = grpo(schedule={"steps": 5})
    variant = apply_overrides(spec, {"nodes.actor.training.backend": "megatron"})

    found = refusals_of(variant, Unrolled(spec).again(variant))

    assert found == check_run(variant).refusals
    assert found
