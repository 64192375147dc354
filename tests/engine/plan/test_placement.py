"""Where the homes of weights stand, and the stages that work in them."""

from typing import Any

from coloop.plan.compile import compile_plan
from coloop.plan.settings.processor import Conditions, Processor
from coloop.plan.types import Plan
from coloop.spec.diagnostics import Change
from coloop.spec.io import parse, patch

LOOP = """
coloop: 1
name: homes
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 4}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 4}
    algorithm: {name: grpo, kl: {coefficient: 0.1, estimator: k3}}
  twin:
    kind: actor
    model: {type: shared, with: actor}
    rollout: {completions_per_prompt: 4, max_new_tokens: 4}
    algorithm: {name: grpo}
  teacher:
    kind: actor
    model: {type: snapshot, of: actor}
    rollout: {max_new_tokens: 4}
  start: {kind: reference, model: {type: snapshot, of: actor}}
  length: {kind: reward, source: {type: builtin, name: length, max: 3}}
edges:
  - problems.rows -> actor.prompts
  - problems.rows -> twin.prompts
  - problems.rows -> teacher.prompts
  - actor.rollouts -> length.rollouts
  - twin.rollouts -> length.rollouts
  - teacher.rollouts -> length.rollouts
  - actor.rollouts -> start.rollouts
  - start.log_probs -> actor.reference
  - length.scores -> actor.rewards
  - length.scores -> twin.rewards
schedule: {steps: 3}
hardware: {preset: cpu, pools: {main: {workers: 1}, near: {workers: 1}, far: {workers: 1}}}
"""


def planned(**values: Any) -> Plan:
    """The plan of the loop with values at these paths, `__` for a dot."""
    changes = [
        Change(op="set", path=f"nodes.{path.replace('__', '.')}", value=value)
        for path, value in values.items()
    ]
    spec = parse(patch(LOOP, changes)).spec
    assert spec is not None
    return compile_plan(spec)


def homes(plan: Plan, group: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The pool that holds a group, and its writers by the pool of their engine."""
    [weights] = [one for one in plan.weights if one.name == group]
    return weights.pool, {engine.pool: engine.writers for engine in weights.engines}


def groups(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {pool.name: pool.groups for pool in plan.pools}


def stages(plan: Plan) -> dict[str, str | None]:
    return {stage.name: stage.pool for stage in plan.phases[0].stages}


def test_without_a_word_everything_stands_in_the_first_pool() -> None:
    plan = planned()

    assert homes(plan, "actor") == ("main", {"main": ("actor", "twin")})
    assert homes(plan, "start") == ("main", {})
    assert groups(plan) == {"main": ("actor", "teacher", "start"), "near": (), "far": ()}
    assert {pool for pool in stages(plan).values() if pool} == {"main"}


def test_writers_in_two_pools_are_two_engines_of_one_group() -> None:
    plan = planned(actor__rollout__pool="near", twin__rollout__pool="far")

    assert homes(plan, "actor") == ("main", {"near": ("actor",), "far": ("twin",)})
    assert groups(plan) == {
        "main": ("actor", "teacher", "start"),
        "near": ("actor",),
        "far": ("actor",),
    }
    found = stages(plan)
    assert (found["actor.generate"], found["twin.generate"]) == ("near", "far")
    assert (found["actor.learn"], found["actor.sync"]) == ("main", "main")
    assert found["length.score"] is None


def test_a_writer_without_a_pool_for_writing_writes_in_its_own() -> None:
    assert homes(planned(twin__pool="near"), "actor") == (
        "main",
        {"main": ("actor",), "near": ("twin",)},
    )


def test_frozen_weights_that_only_write_are_held_where_they_do() -> None:
    plan = planned(teacher__pool="near", teacher__rollout__pool="far")

    assert homes(plan, "teacher") == ("far", {"far": ("teacher",)})
    assert stages(plan)["teacher.generate"] == "far"
    assert groups(plan)["near"] == ()


def test_a_frozen_scorer_is_held_where_it_scores() -> None:
    plan = planned(start__pool="far")

    assert homes(plan, "start") == ("far", {})
    assert stages(plan)["start.score"] == "far"


def test_the_plan_says_where_the_homes_are() -> None:
    lines = planned(actor__rollout__pool="near", twin__rollout__pool="far").explain

    assert (
        "weights actor: scratch tiny-qwen3, trains, shared by actor, twin, generates with torch in "
        "pool near and torch in pool far"
    ) in lines


def conditions(cores: int, threads: int | None = None) -> Conditions:
    processor = Processor(cores=cores, has_bf16=False, reason="plain")
    return Conditions(processor=processor, threads=threads)


def test_threads_that_are_asked_for_are_shared_by_pools_and_their_processes() -> None:
    pools = {"main": {"workers": 3}, "near": {"workers": 1}, "far": {"workers": 1}}
    changes = [Change(op="set", path="hardware.pools", value=pools)]
    spec = parse(patch(LOOP, changes)).spec
    assert spec is not None

    plans = {one: compile_plan(spec, conditions=conditions(1, one)) for one in (1, 18)}

    found = {n: [one.threads_per_worker for one in plan.pools] for n, plan in plans.items()}
    assert found == {1: [1, 1, 1], 18: [2, 6, 6]}
    assert "3 processes on the CPU, 2 threads each" in plans[18].explain[0]


def test_who_asks_for_threads_has_them_in_one_process() -> None:
    text = patch(LOOP, [Change(op="set", path="hardware", value={"preset": "cpu"})])
    spec = parse(text).spec
    assert spec is not None

    plan = compile_plan(spec, conditions=conditions(64, 7))

    [decision] = [one for one in plan.decisions if one.path == "hardware.pools"]
    assert decision.value == "one process"
    assert [(one.workers, one.threads_per_worker) for one in plan.pools] == [(1, 7)]
