"""Phases as written and as they come: groups opened, overrides laid over one another, rhythms."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.compile import Compiler, compile_plan
from coloop.plan.phases import turns
from coloop.plan.types import Plan
from coloop.plan.unrolled import Unrolled
from coloop.runtime.phases.phase_stages import PhaseStages
from coloop.runtime.phases.timeline import Timeline, entries_of
from coloop.spec.graph import LoopSpec

Compiled = Callable[..., Plan]

EDGES = [
    "problems.rows -> actor.prompts",
    "actor.rollouts -> exact.rollouts",
    "exact.scores -> actor.rewards",
    "problems.rows -> actor.demonstrations",
]
ACTOR = {"algorithm": {"rewards": {"name": "grpo"}, "demonstrations": {"name": "sft"}}}


def test_without_phases_every_connected_port_is_live(compiled: Compiled) -> None:
    plan = compiled(EDGES, {"steps": 5}, actor=ACTOR)

    [phase] = plan.phases
    assert phase.name == "main"
    assert phase.steps == 5
    assert phase.learn == ("actor.demonstrations", "actor.rewards")
    assert phase.ends == "5 steps"


def test_epochs_without_phases_count_the_one_source(compiled: Compiled) -> None:
    [phase] = compiled(EDGES, {"epochs": 2}, actor=ACTOR).phases

    assert phase.epochs == 2
    assert phase.epochs_of == "problems"
    assert phase.ends == "2 epochs of problems"


def test_groups_are_opened_and_their_values_lie_under_those_of_their_phases(
    compiled: Compiled,
) -> None:
    lr, rows = "nodes.actor.training.optimizer.lr", "nodes.problems.rows_per_step"
    phases = [
        {"name": "first", "steps": 1, "learn": ["actor"]},
        {
            "repeat": 2,
            "set": {lr: 0.1, rows: 2},
            "phases": [
                {"name": "a", "steps": 1, "learn": ["actor.rewards"], "set": {lr: 0.2}},
                {"repeat": 3, "phases": [{"name": "b", "steps": 1, "learn": ["actor"]}]},
            ],
        },
    ]

    plan = compiled(EDGES, {"phases": phases}, actor={**ACTOR, "training": {"optimizer": {}}})

    assert [(phase.name, phase.index, phase.rounds) for phase in plan.phases] == [
        ("first", 0, 1),
        ("a", 1, 2),
        ("b", 2, 6),
    ]
    assert [phase.overrides for phase in plan.phases] == [
        {},
        {lr: 0.2, rows: 2},
        {lr: 0.1, rows: 2},
    ]


def test_phases_come_round_with_what_their_groups_do(loop: Callable[..., LoopSpec]) -> None:
    outer = {"reset_optimizer": "actor"}
    inner = {"checkpoint": True}
    phases = [
        {
            "repeat": 2,
            "do": outer,
            "phases": [
                {"name": "a", "steps": 1, "learn": ["actor"]},
                {
                    "repeat": 2,
                    "do": inner,
                    "phases": [{"name": "b", "steps": 1, "learn": ["actor"], "do": inner}],
                },
            ],
        }
    ]

    found = list(turns(loop(EDGES, {"phases": phases}, actor=ACTOR)))

    assert [turn.index for turn in found] == [0, 1, 1, 0, 1, 1]
    assert [turn.round for turn in found] == [1, 1, 2, 2, 1, 2]
    assert [len(turn.actions) for turn in found] == [1, 2, 2, 1, 2, 2]
    assert found[0].actions[0].reset_optimizer == "actor"


def no_epochs(node: str, epochs: float) -> int:
    raise AssertionError(node)


def no_buffer(buffer: str) -> bool:
    raise AssertionError(buffer)


def rhythm(spec: LoopSpec) -> list[list[str]]:
    """Names of the stages of each step of a run."""
    plan = compile_plan(spec)
    stages = PhaseStages(lambda: spec.schedule.learn, Compiler(Unrolled(spec)))
    timeline = Timeline(entries_of(spec, plan), no_epochs, no_buffer)
    found = []
    while not timeline.is_over:
        if timeline.must_enter:
            timeline.enter()
        position = timeline.next_position()
        if position is None:
            timeline.leave()
        else:
            found.append([stage.name for stage in stages.due(position).step.stages])
            stages.step_begins(position)
    return found


@pytest.mark.parametrize(
    ("rule", "learning"),
    [
        ({}, [1, 1, 1, 1, 1, 1]),
        ({"every": 2}, [1, 0, 1, 0, 1, 0]),
        ({"after": 4}, [0, 0, 0, 0, 1, 1]),
        ({"every": 2, "after": 1}, [0, 1, 0, 1, 0, 1]),
    ],
)
def test_a_learner_has_its_own_rhythm(
    rule: dict[str, Any], learning: list[int], loop: Callable[..., LoopSpec]
) -> None:
    other = {
        "kind": "actor",
        "model": {"type": "scratch", "architecture": "tiny-qwen3"},
        "algorithm": {"name": "sft"},
    }
    edges = ["problems.rows -> actor.demonstrations", "problems.rows -> other.demonstrations"]
    schedule = {"steps": 6, "learn": {"other": rule}}

    steps = rhythm(loop(edges, schedule, actor=ACTOR, other=other))

    assert ["other.learn" in step for step in steps] == list(map(bool, learning))
    assert all("actor.learn" in step for step in steps)


def test_the_rhythm_goes_on_over_phases(loop: Callable[..., LoopSpec]) -> None:
    phases = [
        {"name": "a", "steps": 3, "learn": ["actor"]},
        {"name": "b", "steps": 3, "learn": ["actor"]},
    ]
    schedule = {"phases": phases, "learn": {"actor": {"every": 2}}}

    steps = rhythm(loop(EDGES, schedule, actor=ACTOR))

    assert ["actor.learn" in step for step in steps] == [True, False] * 3
    assert steps[1] == []


def test_updates_ahead_follow_the_rhythm(loop: Callable[..., LoopSpec]) -> None:
    spec = loop(EDGES, {"steps": 7, "learn": {"actor": {"every": 3, "updates": 2}}}, actor=ACTOR)
    stages = PhaseStages(lambda: spec.schedule.learn, Compiler(Unrolled(spec)))

    assert stages.updates_ahead(compile_plan(spec).phases[0], 7) == {"actor": 6}
    assert stages.updates_ahead(compile_plan(spec).phases[0], None) == {}
