"""An edge is dead in a phase where its weight is 0 there, whatever the spec says of it, and nothing
moves it: checks, lineage, plan and estimate agree on which edges are."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.cost import explain
from coloop.spec.graph import LoopSpec
from coloop.spec.lineage import Lineages
from coloop.validate import Facts, validate

Loop = Callable[..., LoopSpec]

PATH = "edges.brevity.weight"
PLAIN = {"algorithm": {"rewards": {"name": "grpo"}}}
WAKES = {PATH: 1.0}
KILLS = {PATH: 0.0}
BY_ENDS = "edges.brief.scores -> actor.rewards.weight"
ANNEAL = {"anneal": [{"path": PATH, "from": 0.0, "to": 1.0}]}
ANNEAL_BY_ENDS = {"anneal": [{"path": BY_ENDS, "from": 0.0, "to": 1.0}]}
TRIGGER = {
    "triggers": [{"when": {"metric": "exact.score", "above": 0.5}, "do": {"set": {PATH: 1.0}}}]
}

CASES: dict[str, tuple[float, dict[str, Any], dict[str, Any], bool]] = {
    "as written": (1.0, {}, {}, True),
    "of weight 0": (0.0, {}, {}, False),
    "woken by the phase": (0.0, WAKES, {}, True),
    "woken by its ends": (0.0, {BY_ENDS.replace(" ", ""): 1.0}, {}, True),
    "woken by its place": (0.0, {"edges.4.weight": 1.0}, {}, True),
    "killed by its ends": (1.0, {BY_ENDS: 0.0}, {}, False),
    "annealed by its ends": (0.0, {}, ANNEAL_BY_ENDS, True),
    "killed by the phase": (1.0, KILLS, {}, False),
    "killed by the phase and annealed": (1.0, KILLS, ANNEAL, True),
    "of weight 0 and annealed": (0.0, {}, ANNEAL, True),
    "of weight 0 and moved by a trigger": (0.0, {}, TRIGGER, True),
}


def loop_of(loop: Loop, weight: float, values: dict[str, Any], more: dict[str, Any]) -> LoopSpec:
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "actor.rollouts -> brief.rollouts",
        {"from": "brief.scores", "to": "actor.rewards", "id": "brevity", "weight": weight},
    ]
    phase = {"name": "one", "steps": 1, "learn": ["actor"], "set": values}
    return loop(edges, {"phases": [phase], **more}, actor=PLAIN)


@pytest.mark.parametrize("which", CASES)
def test_all_agree_on_which_edges_live(which: str, loop: Loop) -> None:
    weight, values, more, lives = CASES[which]
    spec = loop_of(loop, weight, values, more)
    [edge] = [one for one in spec.edges if one.id == "brevity"]

    facts = Facts(spec)
    [phase] = compile_plan(spec).phases
    [estimated] = explain(spec).phases

    assert facts.is_dead(edge, facts.phases[0]) is not lives
    assert (edge in Lineages(spec).at(values).walk.edges) is lives
    assert (edge in facts.lineage.walk.edges) is lives
    assert ("brevity" in phase.dead_edges) is not lives
    assert ("brief.score" in [stage.name for stage in phase.stages]) is lives
    assert ("brief.score" in estimated.stages) is lives


def test_an_edge_that_lives_in_one_phase_of_two_is_no_dead_one(loop: Loop) -> None:
    spec = loop_of(loop, 0.0, {}, {})
    phases = [
        {"name": "one", "steps": 1, "learn": ["actor"]},
        {"name": "two", "steps": 1, "learn": ["actor"], "set": WAKES},
    ]
    schedule = spec.schedule.model_validate({"phases": phases})
    spec = spec.model_copy(update={"schedule": schedule})
    [edge] = [one for one in spec.edges if one.id == "brevity"]

    facts = Facts(spec)

    assert [facts.is_dead(edge, phase) for phase in facts.phases] == [True, False]
    assert not facts.is_dead(edge)


@pytest.mark.parametrize(
    ("weight", "values", "is_sound"), [(0.0, WAKES, True), (1.0, KILLS, False)]
)
def test_a_port_that_only_a_phase_wakes_may_learn(
    weight: float, values: dict[str, Any], is_sound: bool, loop: Loop
) -> None:
    edges = [
        {"from": "problems.rows", "to": "actor.demonstrations", "id": "brevity", "weight": weight}
    ]
    actor = {"algorithm": {"name": "sft"}}
    phases = [{"name": "one", "steps": 1, "learn": ["actor"], "set": values}]
    spec = loop(edges, {"phases": phases}, actor=actor)

    codes = [one.code for one in validate(spec).diagnostics if one.is_error]

    assert codes == ([] if is_sound else ["learning.every_weight_zero"])


def test_a_join_is_of_the_inputs_that_live_in_the_phase(loop: Loop) -> None:
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> ask.rows",
        "problems.rows -> other.prompts",
        {"from": "other.rollouts", "to": "ask.rows", "id": "brevity"},
        "ask.rows -> judge.prompts",
        "judge.rollouts -> exact.rollouts",
        {"from": "exact.scores", "to": "actor.rewards", "aggregate": "mean"},
    ]
    writer = {
        "kind": "actor",
        "model": {"type": "scratch", "architecture": "tiny-qwen3"},
        "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
    }
    ask = {"kind": "template", "text": "?"}
    spec = loop(edges, actor=PLAIN, other=writer, judge=writer, ask=ask)
    lineages = Lineages(spec)

    assert lineages.at({}).births_of("ask") == {"ask", "join"}
    assert lineages.at(KILLS).births_of("ask") == {"ask", "actor"}
