"""Where a stage stands in the tree of its step, and whom it calls."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.types import PhasePlan, Stage
from coloop.spec.graph import LoopSpec
from coloop.validate import validate

Loop = Callable[..., LoopSpec]

WRITER: dict[str, Any] = {
    "kind": "actor",
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
    "algorithm": {"rewards": {"name": "grpo"}},
}
ASK = {"kind": "template", "text": "{{ prompt }}{{ completion }}"}
FILL = {"kind": "filter", "keep": [{"rule": "nonzero_variance"}], "fill": {"groups": 4}}
TALK = [
    "problems.rows -> ask.rows",
    "ask.rows -> actor.prompts",
    "actor.rollouts -> note.rows",
    {"from": "note.rows", "to": "ask.rows", "rounds": 3, "branch": "all"},
    "actor.rollouts -> exact.rollouts",
]
ROUNDS = "rounds of note.rows->ask.rows"


def phase_of(spec: LoopSpec) -> PhasePlan:
    return compile_plan(spec).phases[0]


def by_name(phase: PhasePlan) -> dict[str, Stage]:
    return {stage.name: stage for stage in phase.stages}


def test_what_goes_round_is_one_region(loop: Loop) -> None:
    spec = loop([*TALK, "exact.scores -> actor.rewards"], ask=ASK, note=ASK, actor=WRITER)

    phase = phase_of(spec)

    [region] = phase.regions
    assert region.name == ROUNDS
    assert (region.rounds, region.branch) == (3, "all")
    assert region.edges == ("note.rows->ask.rows",)
    assert region.stages == ("ask.prepare", "actor.generate", "note.prepare")
    names = [stage.name for stage in phase.stages]
    at = names.index("ask.prepare")
    assert tuple(names[at : at + 3]) == region.stages
    inside = {stage.name for stage in phase.stages if stage.within == (ROUNDS,)}
    assert inside == set(region.stages)
    assert "note.rows->ask.rows" not in by_name(phase)["ask.prepare"].edges


def test_a_slice_takes_what_goes_round_as_a_whole(loop: Loop) -> None:
    spec = loop(
        [*TALK, "exact.scores -> keep.scores", "keep.scores -> actor.rewards"],
        ask=ASK,
        note=ASK,
        actor=WRITER,
        keep=FILL,
    )
    assert not validate(spec).errors

    phase = phase_of(spec)

    [refill], [region] = phase.refills, phase.regions
    assert set(region.stages) < set(refill.stages)
    assert refill.stages[-1] == "keep.prepare"
    stages = by_name(phase)
    assert stages["note.prepare"].within == ("keep", ROUNDS)
    assert stages["exact.score"].within == ("keep",)
    assert stages["actor.learn"].within == ()


def test_a_fill_among_what_goes_round_is_told(loop: Loop) -> None:
    edges = [
        "problems.rows -> ask.rows",
        "ask.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> keep.rollouts",
        "exact.scores -> keep.scores",
        {"from": "keep.rollouts", "to": "ask.rows", "rounds": 3},
        "exact.scores -> actor.rewards",
    ]

    found = validate(loop(edges, ask=ASK, actor=WRITER, keep=FILL)).errors

    assert [(one.code, one.node) for one in found] == [("structure.fill_region", "keep")]


def test_a_handle_makes_no_stage_of_whom_it_calls(loop: Loop) -> None:
    """`reader` writes only inside of what `actor` writes; the judge of its texts waits for that."""
    spec = loop(
        [
            "problems.rows -> actor.prompts",
            "reader.policy -> look.policy",
            "look.tool -> actor.tools",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> actor.rewards",
            "reader.rollouts -> brief.rollouts",
            "brief.scores -> reader.rewards",
        ],
        look={"kind": "tool", "type": "model", "template": {"text": "{{ query }}"}},
        actor=WRITER,
        reader=WRITER,
    )

    stages = by_name(phase_of(spec))

    assert "reader.generate" not in stages
    assert stages["actor.generate"].calls == ("look", "reader")
    assert stages["brief.score"].after == ("actor.generate",)
    assert "actor.generate" in stages["reader.learn"].after
    assert stages["reader.sync"].after == ("reader.learn",)


@pytest.mark.parametrize("has_prompts", [True, False])
def test_one_who_is_called_and_writes_by_itself_has_a_stage_of_its_own(
    has_prompts: bool, loop: Loop
) -> None:
    own = ["problems.rows -> reader.prompts"] if has_prompts else []
    spec = loop(
        [
            "problems.rows -> actor.prompts",
            *own,
            "reader.policy -> look.policy",
            "look.tool -> actor.tools",
            "reader.rollouts -> brief.rollouts",
            "brief.scores -> reader.rewards",
        ],
        look={"kind": "tool", "type": "model", "template": {"text": "{{ query }}"}},
        actor=WRITER,
        reader=WRITER,
    )

    stages = by_name(phase_of(spec))

    assert ("reader.generate" in stages) is has_prompts
    givers = {"actor.generate", "reader.generate"} if has_prompts else {"actor.generate"}
    assert set(stages["brief.score"].after) == givers


def test_a_search_writes_with_the_policies_that_it_drives(loop: Loop) -> None:
    spec = loop(
        [
            "problems.rows -> tree.rows",
            "actor.policy -> tree.policy",
            "exact.check -> tree.outcome",
            "tree.rollouts -> actor.demonstrations",
        ],
        tree={"kind": "search", "method": "monte_carlo", "budget": {"tokens": 100}},
        actor={**WRITER, "algorithm": {"demonstrations": {"name": "sft"}}},
    )

    stages = by_name(phase_of(spec))

    assert list(stages) == ["problems.load", "tree.generate", "actor.learn", "actor.sync"]
    assert set(stages["tree.generate"].calls) == {"actor", "exact"}


def test_returns_that_a_critic_learns_need_the_credit_of_an_actor_that_rests(loop: Loop) -> None:
    spec = loop(
        [
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "actor.rollouts -> critic.rollouts",
            "critic.values -> actor.values",
            "exact.scores -> actor.rewards",
            "actor.returns -> critic.returns",
        ],
        {"phases": [{"name": "values", "steps": 3, "learn": ["critic.returns"]}]},
        actor={**WRITER, "algorithm": {"rewards": {"name": "ppo"}}},
        critic={"kind": "critic", "model": WRITER["model"], "algorithm": {"name": "value"}},
    )

    stages = by_name(phase_of(spec))

    assert set(stages["actor.credit"].after) == {"exact.score", "critic.score"}
    assert "actor.credit" in stages["critic.learn"].after
    assert {"actor.learn", "actor.sync"}.isdisjoint(stages)


def test_what_enters_a_table_that_is_put_together_enters_it_once(loop: Loop) -> None:
    """Prompts of the dataset are answered in round 1, what came of them in the others."""
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> note.rows",
        {"from": "note.rows", "to": "actor.prompts", "rounds": 3},
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]

    [region] = phase_of(loop(edges, note=ASK, actor=WRITER)).regions

    assert region.once == ("problems.rows->actor.prompts",)


def test_a_probe_goes_round_with_all_nodes_of_a_region(loop: Loop) -> None:
    side = {"kind": "template", "text": "{{ completion }}"}
    edges = [
        *TALK,
        "actor.rollouts -> side.rows",
        {"from": "side.rows", "to": "ask.rows", "rounds": 3, "branch": "all"},
        "exact.scores -> actor.rewards",
        "held_out.rows -> probe.rows",
        "exact.scores -> probe.scores",
    ]
    spec = loop(
        edges,
        ask=ASK,
        note=ASK,
        side=side,
        actor=WRITER,
        held_out={"kind": "dataset", "source": {"type": "inline", "rows": [{"prompt": "p"}]}},
        probe={"kind": "evaluate", "instead_of": "problems", "metrics": ["score"]},
    )

    [probe] = compile_plan(spec).probes

    [region] = probe.regions
    assert set(region.stages) == {"ask.prepare", "actor.generate", "note.prepare", "side.prepare"}
    assert set(region.stages) < {stage.name for stage in probe.stages}


def test_a_plan_says_in_words_what_goes_round(loop: Loop) -> None:
    spec = loop([*TALK, "exact.scores -> actor.rewards"], ask=ASK, note=ASK, actor=WRITER)

    words = "  ask, actor, note run 3 rounds; every text is continued, as a tree"
    assert words in compile_plan(spec).explain
