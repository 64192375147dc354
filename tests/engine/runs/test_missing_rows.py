"""A run whose stages get nothing where the plan is certain of rows ends in its first step."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.types import Plan
from coloop.runtime.run_files.events import RunStateName

KL = {"rewards": {"name": "grpo", "kl": {"coefficient": 0.01}}, "demonstrations": {"name": "sft"}}


def too_early(stage: str) -> Callable[..., Plan]:
    """A compiler that lets a stage wait for nothing."""

    def compiled(*args: Any, **options: Any) -> Plan:
        plan = compile_plan(*args, **options)
        phases = []
        for phase in plan.phases:
            first = [
                one.model_copy(update={"after": ()}) for one in phase.stages if one.name == stage
            ]
            others = [one for one in phase.stages if one.name != stage]
            phases.append(phase.model_copy(update={"stages": (*first, *others)}))
        return plan.model_copy(update={"phases": tuple(phases)})

    return compiled


def test_a_reference_that_is_asked_too_early_ends_the_run_in_the_first_step_of_its_phase(
    runner: Callable[..., Any], tiny: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coloop.runtime.start.compile_plan", too_early("start.score"))

    ended = runner(tiny("grpo-arithmetic", {"nodes.actor.algorithm": KL}))

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "run.rows_missing"
    assert (ended.error.node, ended.error.stage) == ("start", "start.score")
    [alert] = ended.of("alert", code="rows.missing")
    assert (alert["level"], alert["node"], alert["step"]) == ("error", "start", 4)
    assert "actor.rollouts->start.rollouts" in alert["message"]
    assert "12 are expected" in alert["message"]
    assert alert["hint"]
    assert ended.manifest()["timeline"]["step"] == 3  # the warm-up is kept


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["grpo-arithmetic", "spin", "two-halves"])
def test_every_stage_has_the_rows_that_the_plan_says(
    name: str, runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    ended = runner(tiny(name))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert "rows.missing" not in ended.alerts()
    phases = {phase["name"]: phase for phase in ended.plan()["phases"]}
    seen = 0
    for event in ended.of("stage.finished"):
        if "evaluation" in event or not event["stage"].endswith(
            (".load", ".read", ".generate", ".score", ".prepare", ".learn")
        ):
            continue
        rows = {one["stage"]: one["rows"] for one in phases[event["phase"]]["rows"]}
        expected = rows[event["stage"]]
        assert expected["least"] <= event["samples"] <= expected["most"], event
        seen += 1
    assert seen


PPO = """
coloop: 1
name: late
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: ppo, kl: null}
  critic: {kind: critic, model: {type: copy, of: actor}, algorithm: {name: value}}
  worth: {kind: reward, source: {type: python, code: CODE}}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> worth.rollouts
  - actor.rollouts -> critic.rollouts
  - worth.scores -> actor.rewards
  - critic.values -> actor.values
  - actor.returns -> critic.returns
schedule: {steps: 3}
hardware: {preset: cpu}
"""
LATER = """
calls = 0
def reward(prompts, completions, **columns):
    global calls
    calls += 1
    return [float(len(one)) if calls > 1 else None for one in completions]
"""


def test_a_critic_waits_for_a_first_step_with_returns(runner: Callable[..., Any]) -> None:
    ended = runner(PPO.replace("CODE", json.dumps(LATER)))

    assert ended.state is RunStateName.FINISHED, ended.error
    learned = [event["samples"] for event in ended.of("stage.finished", stage="critic.learn")]
    assert learned == [0, 4, 4]
    told = {event["node"] for event in ended.of("alert", code="learn.no_rows")}
    assert told == {"actor", "critic"}
    assert "rows.missing" not in ended.alerts()
