"""Whole runs with a judge that writes: it learns beside the policy that it judges, and meets what
else a loop may have."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.engine.runs.conftest import Ended, Runner, load

from coloop.runtime.run_files.events import RunStateName
from coloop.spec.diagnostics import Change
from coloop.spec.io import patch
from coloop.validate import validate

CO_TRAINING = """
coloop: 1
name: co-training
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 2}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, rows_per_step: 2}
  solver:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 5}
    algorithm: {rewards: {name: grpo, kl: {coefficient: 0.01}}}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  judge:
    kind: verifier
    method: generative
    model: {type: scratch, architecture: tiny-qwen3}
    template: {text: "{{ prompt }}{{ completion }}?"}
    read: {number: "([0-9])", scale: [0, 9], on_no_match: 0}
    rollout: {completions_per_prompt: 3, max_new_tokens: 6}
    algorithm: {rewards: {name: grpo, kl: {coefficient: 0.01}}}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  judge_start: {kind: reference, model: {type: snapshot, of: judge, refresh: never}}
  solver_start: {kind: reference, model: {type: snapshot, of: solver, refresh: never}}
  digit: {kind: reward, source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}}
  near: {kind: reward, source: {type: builtin, name: one_minus}}
  probe: {kind: evaluate, instead_of: sums, every: 2, greedy: true, metrics: [score]}
edges:
  - sums.rows -> solver.prompts
  - solver.rollouts -> judge.rollouts
  - judge.rollouts -> digit.rollouts
  - {from: judge.scores, to: solver.rewards, aggregate: mean}
  - {from: digit.scores, to: near.scores}
  - near.scores -> judge.rewards
  - solver.rollouts -> solver_start.rollouts
  - solver_start.log_probs -> solver.reference
  - judge.rollouts -> judge_start.rollouts
  - judge_start.log_probs -> judge.reference
  - held_out.rows -> probe.rows
  - judge.scores -> probe.scores
schedule: {steps: 4}
hardware: {preset: cpu}
run: {checkpoint_every: 2}
"""
"""The judge learns to write low digits, the policy what the judge writes high ones about."""


def with_values(values: Mapping[str, Any], text: str = CO_TRAINING) -> str:
    return patch(text, [Change(op="set", path=path, value=v) for path, v in values.items()])


def check_whole(ended: Ended) -> Ended:
    assert ended.state is RunStateName.FINISHED, ended.error
    return ended


def check_learned(ended: Ended, *groups: str) -> None:
    """Weights of these groups have moved."""
    for group in groups:
        first, last = ended.group(group, 2), ended.group(group)
        assert any(not first[name].equal(last[name]) for name in first), group


def test_a_judge_and_what_it_judges_learn_side_by_side(whole: Callable[[str], Ended]) -> None:
    ended = whole(CO_TRAINING)

    check_learned(ended, "solver", "judge")
    stages = ended.stages(1)
    assert stages.index("solver.generate") < stages.index("judge.score")
    assert stages.index("judge.score") < min(
        stages.index("solver.credit"), stages.index("judge.credit")
    )
    assert stages.index("judge.learn") < stages.index("judge.sync")
    assert ended.metrics("judge", "rollout/length")[0] > 0
    assert 0.0 <= ended.metrics("judge", "parse/none")[0] < 1.0
    assert ended.metrics("judge", "kl")
    assert ended.of("evaluation") or ended.metrics("probe", "score")


@pytest.mark.slow
def test_a_run_that_stops_goes_on_to_the_same_bits(
    whole: Callable[[str], Ended], runner: Runner, equal: Callable[..., bool]
) -> None:
    def judged_in_step_3(event: Mapping[str, Any]) -> bool:
        return (
            event["type"] == "stage.finished"
            and event["stage"] == "judge.score"
            and (event["step"] == 3)
        )

    stopped = runner(CO_TRAINING, stop_at=judged_in_step_3)
    resumed = check_whole(runner(CO_TRAINING, resume=stopped))

    assert stopped.state is RunStateName.STOPPED
    assert equal(whole(CO_TRAINING).weights(), resumed.weights())
    assert whole(CO_TRAINING).readings() == resumed.readings()


POOLS = {
    "hardware.pools": {"a": {"workers": 1}, "b": {"workers": 1}},
    "nodes.solver_start.pool": "a",
    "nodes.judge_start.pool": "a",
}
SHARED = {"nodes.judge.model": {"type": "shared", "with": "solver"}, "nodes.judge.training": None}
AHEAD = {
    "schedule.max_staleness": 1,
    **POOLS,
    "nodes.solver.pool": "a",
    "nodes.solver.rollout.pool": "b",
    "nodes.judge.pool": "a",
    "nodes.judge.rollout.pool": "b",
}
PLACES: dict[str, dict[str, Any]] = {
    "a step ahead in another pool": AHEAD,
    "a pool of its own": {
        **POOLS,
        "nodes.judge.pool": "b",
        "nodes.solver.pool": "a",
    },
    "shared weights": SHARED,
    "one role after the other": {**SHARED, "schedule.order": ["judge", "solver"]},
    "a copy": {"nodes.judge.model": {"type": "copy", "of": "solver"}},
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("values", PLACES.values(), ids=PLACES)
def test_a_judge_learns_wherever_its_weights_are(values: dict[str, Any], runner: Runner) -> None:
    text = with_values({**values, "nodes.judge_start.model.of": "judge"})
    found = validate(load(text)).diagnostics
    assert [one.describe() for one in found if one.severity == "error"] == []

    ended = check_whole(runner(text))

    check_learned(ended, *({"solver", "judge"} & {p["name"] for p in ended.plan()["weights"]}))
    assert ended.metrics("judge", "reward/mean")


@pytest.mark.slow
def test_a_judge_inside_a_refill_writes_anew_in_each_pass(runner: Runner) -> None:
    """What is kept is decided by the judge, so that it stands in the region that is refilled."""
    lucky = {
        "kind": "filter",
        "keep": [{"rule": "score", "min": 0.5}],
        "fill": {"rows": 6, "max_rounds": 3},
    }
    text = with_values({"nodes.lucky": lucky})
    text = text.replace(
        "  - {from: judge.scores, to: solver.rewards, aggregate: mean}\n",
        "  - solver.rollouts -> lucky.rollouts\n"
        "  - {from: judge.scores, to: lucky.scores, aggregate: mean}\n"
        "  - lucky.scores -> solver.rewards\n",
    )

    ended = check_whole(runner(text))

    passes = ended.of("stage.finished", stage="judge.score", step=1)
    assert len(passes) > 1
    assert ended.metrics("judge", "reward/mean")


@pytest.mark.slow
def test_a_judge_that_never_says_a_verdict_is_told_and_ends_the_run(runner: Runner) -> None:
    text = with_values(
        {
            "nodes.judge.read": {"verdict": "(never)", "values": {"never": 1}},
            "nodes.sums.rows_per_step": 1,
            "schedule": {
                "phases": [{"name": "rl", "steps": 25, "learn": ["solver.rewards"]}],
            },
        }
    )

    ended = runner(text)

    assert ended.state is RunStateName.FAILED
    assert ended.error is not None
    assert "solver.learn had no effect in 20 steps in a row" in ended.error.message
    told = ended.of("alert", code="learning.nothing_parsed")
    assert [(event["node"], event["level"], event["metric"]) for event in told] == [
        ("judge", "error", "parse/none")
    ]
    assert "`read.verdict` (never) finds nothing in '" in told[0]["message"]
    assert "`read`" in told[0]["hint"]
    assert ended.error.hint is not None
    assert told[0]["message"] in ended.error.hint


@pytest.mark.slow
def test_a_judge_may_read_chances_of_labels_and_write_nothing(runner: Runner) -> None:
    lesson = {
        "kind": "template",
        "text": "{{ sums.prompt }}{{ solver.completion }}?",
        "target": "{{ answer[0] }}",
    }
    text = with_values(
        {
            "nodes.lesson": lesson,
            "nodes.judge.read": {"score": "probability", "labels": ["1", "0"]},
            "nodes.judge.rollout": None,
            "nodes.judge.algorithm": {"demonstrations": {"name": "sft"}},
        }
    )
    gone = ("judge_start", "digit", "near")
    lines = [line for line in text.splitlines() if not any(name in line for name in gone)]
    edges = ["  - solver.rollouts -> lesson.rows", "  - lesson.rows -> judge.demonstrations"]
    at = lines.index("edges:") + 1
    text = "\n".join([*lines[:at], *edges, *lines[at:]]) + "\n"

    ended = check_whole(runner(text))

    check_learned(ended, "solver", "judge")
    assert all(0.0 < mean < 1.0 for mean in ended.metrics("judge", "score/mean"))
    assert len(set(ended.metrics("judge", "score/mean"))) > 1


def test_a_judge_whose_edge_is_dead_in_a_phase_rests_there(runner: Runner) -> None:
    """Tango's rhythm: the judge teaches in one phase, and in the other only itself."""
    text = with_values(
        {
            "edges.verdict.weight": 0.7,
            "schedule": {
                "phases": [
                    {"name": "solve", "steps": 2, "learn": ["solver.rewards"]},
                    {
                        "name": "alone",
                        "steps": 2,
                        "learn": ["solver.rewards"],
                        "set": {"edges.verdict.weight": 0.0},
                    },
                    {"name": "verify", "steps": 2, "learn": ["judge.rewards"]},
                ]
            },
        },
        CO_TRAINING.replace(
            "  - {from: judge.scores, to: solver.rewards, aggregate: mean}\n",
            "  - {from: judge.scores, to: solver.rewards, aggregate: mean, id: verdict}\n"
            "  - solver.rollouts -> brief.rollouts\n"
            "  - brief.scores -> solver.rewards\n",
        ).replace(
            "  near: {kind",
            "  brief: {kind: reward, source: {type: builtin, name: length, max: 5}}\n  near: {kind",
        ),
    )

    ended = check_whole(runner(text))

    assert "judge.score" in ended.stages(1)
    assert "judge.learn" not in ended.stages(1)
    assert "judge.score" not in ended.stages(3)
    assert {"judge.score", "judge.learn"} <= {*ended.stages(5)}
    assert "solver.learn" not in ended.stages(5)


@pytest.mark.slow
def test_two_judges_of_the_same_texts_write_texts_of_their_own(runner: Runner) -> None:
    """On one set of weights, with one template: what differs is who asks."""
    other = {
        "kind": "verifier",
        "method": "generative",
        "model": {"type": "shared", "with": "judge"},
        "template": {"text": "{{ prompt }}{{ completion }}?"},
        "read": {"number": "([0-9])", "scale": [0, 9], "on_no_match": 0},
        "rollout": {"completions_per_prompt": 3, "max_new_tokens": 6},
    }
    text = with_values({"nodes.other": other}).replace(
        "  - judge.scores -> probe.scores\n",
        "  - judge.scores -> probe.scores\n"
        "  - solver.rollouts -> other.rollouts\n"
        "  - {from: other.scores, to: solver.rewards, aggregate: mean}\n",
    )

    ended = check_whole(runner(text))

    lengths = [ended.metrics(node, "rollout/length") for node in ("judge", "other")]
    assert lengths[0] != lengths[1]
    check_learned(ended, "solver", "judge")


@pytest.mark.slow
def test_a_judge_may_call_a_tool_while_it_writes(runner: Runner) -> None:
    """It calls with every third letter or so of a random model; what it hears is not trained."""
    calls = "(?P<expression>.)(?:0|1|2|3|a|e|o|u|x|z)"
    calculator = {"kind": "tool", "type": "calculator", "call": calls, "result": "[{{ value }}]"}
    rollout = {"completions_per_prompt": 3, "max_new_tokens": 6, "turns": {"max": 2}}
    text = with_values({"nodes.calc": calculator, "nodes.judge.rollout": rollout}).replace(
        "  - judge.scores -> probe.scores\n",
        "  - judge.scores -> probe.scores\n  - calc.tool -> judge.tools\n",
    )

    ended = check_whole(runner(text))

    assert max(ended.metrics("judge", "turns/tokens")) > 0
    check_learned(ended, "judge")


DISCUSSED = """
coloop: 1
name: discussed
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, rows_per_step: 2}
  ask:
    kind: template
    text: "{{ sums.prompt }}{% for word in past('judge.completion') %}{{ word }}{% endfor %}="
  solver:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {rewards: {name: reinforce, advantage: none}}
  judge:
    kind: verifier
    method: generative
    model: {type: shared, with: solver}
    template: {text: "{{ solver.completion }}?"}
    read: {number: "([0-9])", scale: [0, 9], on_no_match: 0}
    rollout: {completions_per_prompt: 1, max_new_tokens: 4}
    algorithm: {rewards: {name: reinforce, advantage: none}}
  digit: {kind: reward, source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}}
  probe: {kind: evaluate, instead_of: sums, every: 2, metrics: [score]}
edges:
  - sums.rows -> ask.rows
  - ask.rows -> solver.prompts
  - solver.rollouts -> judge.rollouts
  - {from: judge.rollouts, to: ask.rows, rounds: 3}
  - {from: judge.scores, to: solver.rewards, aggregate: mean}
  - {from: judge.rollouts, to: digit.rollouts, take: all}
  - digit.scores -> judge.rewards
  - held_out.rows -> probe.rows
  - judge.scores -> probe.scores
schedule: {steps: 3}
hardware: {preset: cpu}
run: {checkpoint_every: 1}
"""
"""What a judge says goes back to the policy, for three rounds."""


@pytest.mark.slow
def test_a_judge_speaks_in_every_round_and_goes_on_where_the_run_was_stopped(
    whole: Callable[[str], Ended], runner: Runner, equal: Callable[..., bool]
) -> None:
    def judged_in_step_2(event: Mapping[str, Any]) -> bool:
        stage = event.get("stage") == "judge.score" and event["type"] == "stage.finished"
        return stage and event["step"] == 2 and event.get("round") == 2

    ended = whole(DISCUSSED)
    stopped = runner(DISCUSSED, stop_at=judged_in_step_2)
    resumed = check_whole(runner(DISCUSSED, resume=stopped))

    rounds = [event["round"] for event in ended.of("stage.finished", stage="judge.score", step=1)]
    assert [one for one in rounds if one is not None][:3] == [1, 2, 3]
    assert ended.metrics("judge", "reward/mean")
    assert stopped.state is RunStateName.STOPPED
    assert equal(ended.weights(), resumed.weights())
