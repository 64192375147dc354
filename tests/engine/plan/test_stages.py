"""What runs in a phase, and in which order: the closure of the phase's goals."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.types import Plan

Compiled = Callable[..., Plan]
Names = Callable[..., list[str]]

GRPO = [
    "problems.rows -> actor.prompts",
    "actor.rollouts -> exact.rollouts",
    "actor.rollouts -> start.rollouts",
    "exact.scores -> actor.rewards",
    "start.log_probs -> actor.reference",
]


def test_a_step_is_load_generate_score_credit_learn_sync(compiled: Compiled, stages: Names) -> None:
    assert stages(compiled(GRPO)) == [
        "problems.load",
        "actor.generate",
        "start.score",
        "exact.score",
        "actor.credit",
        "actor.learn",
        "actor.sync",
    ]


def test_a_reference_that_no_live_algorithm_reads_rests(compiled: Compiled, stages: Names) -> None:
    plan = compiled(GRPO, actor={"algorithm": {"rewards": {"name": "grpo"}}})

    assert "start.score" not in stages(plan)


def test_ports_that_are_not_live_cause_nothing(compiled: Compiled, stages: Names) -> None:
    phases = [
        {"name": "imitate", "steps": 1, "learn": ["actor.demonstrations"]},
        {"name": "rl", "steps": 1, "learn": ["actor.rewards"]},
        {"name": "both", "steps": 1, "learn": ["actor"]},
    ]
    plan = compiled([*GRPO, "problems.rows -> actor.demonstrations"], {"phases": phases})

    assert stages(plan, "imitate") == ["problems.load", "actor.learn", "actor.sync"]
    assert "start.score" in stages(plan, "rl")
    assert plan.phase("both").learn == ("actor.demonstrations", "actor.rewards")


def weighted(weight: float) -> list[Any]:
    brevity = {"from": "brief.scores", "to": "actor.rewards", "id": "brevity", "weight": weight}
    return [*GRPO, "actor.rollouts -> brief.rollouts", brevity]


def test_nothing_runs_for_a_dead_edge(compiled: Compiled, stages: Names) -> None:
    plan = compiled(weighted(0.0))

    assert "brief.score" not in stages(plan)
    assert plan.phases[0].dead_edges == ("brevity",)
    assert "brief.score" in stages(compiled(weighted(0.5)))


SIBLINGS = [
    "problems.rows -> actor.prompts",
    "problems.rows -> other.prompts",
    "actor.rollouts -> both.rows",
    "other.rollouts -> both.rows",
    "both.rows -> exact.rows",
    {"from": "exact.scores", "to": "actor.rewards", "aggregate": "mean"},
]
"""Two policies answer the same prompts, and one table of scores knows both answers."""


@pytest.mark.parametrize("alone", [False, True])
def test_siblings_are_scored_where_no_own_rows_are(
    alone: bool, compiled: Compiled, stages: Names
) -> None:
    plan = compiled(
        [edge for edge in SIBLINGS if not (alone and edge == SIBLINGS[2])],
        other={"kind": "actor", "model": {"type": "scratch", "architecture": "tiny-qwen3"}},
        both={"kind": "template", "join": "concat"},
        actor={"algorithm": {"rewards": {"name": "grpo"}}},
    )

    assert ("other.generate" in stages(plan)) == alone


def test_a_phase_may_kill_an_edge_and_wake_another(compiled: Compiled, stages: Names) -> None:
    phases = [
        {"name": "a", "steps": 1, "learn": ["actor"], "set": {"edges.brevity.weight": 0.0}},
        {"name": "b", "steps": 1, "learn": ["actor"]},
    ]

    plan = compiled(weighted(1.0), {"phases": phases})

    assert "brief.score" not in stages(plan, "a")
    assert "brief.score" in stages(plan, "b")
    assert [stage.edges for stage in plan.phase("a").stages if stage.verb == "credit"] == [
        ("exact.scores->actor.rewards", "start.log_probs->actor.reference")
    ]


def test_an_edge_that_an_anneal_or_a_trigger_moves_is_never_dead(
    compiled: Compiled, stages: Names
) -> None:
    path = "edges.brevity.weight"
    anneal = {"steps": 3, "anneal": [{"path": path, "from": 0.0, "to": 1.0}]}
    trigger = {
        "steps": 3,
        "triggers": [{"when": {"metric": "exact.score", "above": 0.5}, "do": {"set": {path: 1.0}}}],
    }

    assert "brief.score" in stages(compiled(weighted(0.0), anneal))
    assert "brief.score" in stages(compiled(weighted(0.0), trigger))


TWO_WRITERS = [
    "problems.rows -> actor.prompts",
    "problems.rows -> other.prompts",
    "actor.rollouts -> exact.rollouts",
    "other.rollouts -> exact.rollouts",
    "exact.scores -> actor.rewards",
    "exact.scores -> other.rewards",
]
WRITER = {
    "kind": "actor",
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "algorithm": {"name": "grpo"},
}


def test_of_a_concat_node_only_inputs_that_reach_a_goal_run(
    compiled: Compiled, stages: Names
) -> None:
    phases = [
        {"name": "one", "steps": 1, "learn": ["actor"]},
        {"name": "both", "steps": 1, "learn": ["actor", "other"]},
    ]
    nodes = {"actor": WRITER, "other": WRITER, "exact": {"join": "concat"}}

    plan = compiled(TWO_WRITERS, {"phases": phases}, **nodes)

    assert "other.generate" not in stages(plan, "one")
    assert "other.generate" in stages(plan, "both")


def test_a_reference_scores_only_rows_that_the_live_port_reads(
    compiled: Compiled, stages: Names
) -> None:
    edges = [
        "problems.pairs -> actor.pairs",
        "problems.pairs -> start.pairs",
        "held_out.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
    ]

    plan = compiled(edges)

    assert stages(plan) == ["problems.load", "start.score", "actor.learn"]
    assert plan.phases[0].stages[1].edges == ("problems.pairs->start.pairs",)


def test_a_group_learns_once_and_after_all_that_uses_its_weights(
    compiled: Compiled, stages: Names
) -> None:
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "actor.rollouts -> twin.prompts",
        "twin.rollouts -> brief.rollouts",
        "brief.scores -> twin.rewards",
    ]
    twin = {
        "kind": "actor",
        "model": {"type": "shared", "with": "actor"},
        "algorithm": {"name": "grpo"},
    }

    plan = compiled(edges, actor={"algorithm": {"name": "grpo"}}, twin=twin)

    names = stages(plan)
    assert names.count("actor.learn") == 1
    assert "twin.learn" not in names
    assert names.index("twin.generate") < names.index("actor.learn") < names.index("actor.sync")
    [learn] = [stage for stage in plan.phases[0].stages if stage.verb == "learn"]
    assert learn.members == ("actor", "twin")


def test_weights_learn_after_they_have_written_whatever_it_is_for(
    compiled: Compiled, stages: Names
) -> None:
    """`helper` writes for a buffer, with the weights that `actor` teaches in the same step."""
    edges = [
        "problems.rows -> actor.demonstrations",
        "problems.rows -> helper.prompts",
        "helper.rollouts -> pool.rollouts",
    ]
    helper = {
        "kind": "actor",
        "model": {"type": "shared", "with": "actor"},
        "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
    }

    plan = compiled(
        edges,
        {"steps": 2, "fill": ["pool"]},
        actor={"algorithm": {"name": "sft"}},
        helper=helper,
        pool={"kind": "buffer", "capacity": 8},
    )

    names = stages(plan)
    assert names.index("helper.generate") < names.index("actor.learn")
    learn = next(stage for stage in plan.phases[0].stages if stage.name == "actor.learn")
    assert "helper.generate" in learn.after


def test_buffers_are_read_first_and_written_last(compiled: Compiled, stages: Names) -> None:
    edges = [
        "pool.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "exact.scores -> pool.scores",
        "actor.rollouts -> pool.rows",
    ]
    schedule = {"steps": 2, "fill": ["pool"]}

    plan = compiled(
        edges,
        schedule,
        actor={"algorithm": {"name": "grpo"}},
        pool={"kind": "buffer", "capacity": 8},
    )

    names = stages(plan)
    assert names[0] == "pool.read"
    assert names[-1] == "pool.write"
    assert plan.phases[0].fill == ("pool",)


def test_what_seeds_a_buffer_is_loaded_whatever_learns_from_it(
    compiled: Compiled, stages: Names
) -> None:
    edges = [
        "problems.rows -> pool.seed",
        "pool.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]

    names = stages(compiled(edges, pool={"kind": "buffer", "capacity": 8}))

    assert names[:3] == ["problems.load", "pool.read", "actor.generate"]


def test_a_buffer_that_is_only_filled_causes_no_learning(compiled: Compiled, stages: Names) -> None:
    edges = ["problems.rows -> pool.rows", "pool.rows -> actor.demonstrations"]
    phases = [
        {"name": "collect", "until": "pool.full"},
        {"name": "train", "epochs": 2, "learn": ["actor"]},
    ]

    plan = compiled(edges, {"phases": phases}, pool={"kind": "buffer", "capacity": 8})

    assert stages(plan, "collect") == ["problems.load", "pool.write"]
    assert stages(plan, "train") == ["pool.read", "actor.learn"]
    assert plan.phase("train").epochs_of == "pool"
    assert plan.phase("collect").until == ("pool",)


def test_a_probe_runs_the_slice_between_its_rows_and_its_inputs(compiled: Compiled) -> None:
    probe = {"kind": "evaluate", "instead_of": "problems", "greedy": True, "metrics": ["accuracy"]}
    edges = [
        *GRPO,
        "actor.rollouts -> brief.rollouts",
        "held_out.rows -> probe.rows",
        "exact.scores -> probe.scores",
    ]

    [plan] = compiled(edges, probe=probe).probes

    assert [stage.name for stage in plan.sources] == ["held_out.load"]
    assert [stage.name for stage in plan.stages] == ["actor.generate", "exact.score"]
    assert plan.writers == ("actor",)


def test_a_probe_loads_what_its_slice_needs_besides(compiled: Compiled) -> None:
    probe = {"kind": "evaluate", "instead_of": "problems", "metrics": ["accuracy"]}
    ask = {"kind": "template", "text": "{{ others('prompt', 2) }} {{ prompt }}"}
    edges = [
        "problems.rows -> ask.rows",
        "shots.rows -> ask.library",
        "ask.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "held_out.rows -> probe.rows",
        "exact.scores -> probe.scores",
    ]
    shots = {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}}

    [plan] = compiled(edges, probe=probe, ask=ask, shots=shots).probes

    assert [stage.name for stage in plan.sources] == ["held_out.load", "shots.load"]
    assert [stage.name for stage in plan.stages] == ["ask.prepare", "actor.generate", "exact.score"]


def test_only_the_first_writers_of_a_probe_are_set(compiled: Compiled) -> None:
    probe = {"kind": "evaluate", "instead_of": "problems", "greedy": True, "metrics": ["accuracy"]}
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> ask.rows",
        "ask.rows -> other.prompts",
        "other.rollouts -> exact.rollouts",
        {"from": "exact.scores", "to": "actor.rewards", "aggregate": "mean"},
        "exact.scores -> other.rewards",
        "held_out.rows -> probe.rows",
        "exact.scores -> probe.scores",
    ]
    nodes = {
        "actor": WRITER,
        "other": WRITER,
        "ask": {"kind": "template", "text": "{{ completion }}"},
    }

    [plan] = compiled(edges, probe=probe, **nodes).probes

    assert plan.writers == ("actor",)
    assert [s.name for s in plan.stages if s.verb == "generate"] == [
        "actor.generate",
        "other.generate",
    ]


READING = [
    *GRPO,
    "problems.rows -> actor.demonstrations",
    "actor.rollouts -> brief.rollouts",
    "brief.scores -> watch.scores",
]


def test_a_reading_adds_scorers_only_where_their_rows_are(
    compiled: Compiled, stages: Names
) -> None:
    phases = [
        {"name": "imitate", "steps": 1, "learn": ["actor.demonstrations"]},
        {"name": "rl", "steps": 1, "learn": ["actor.rewards"]},
    ]

    plan = compiled(READING, {"phases": phases}, watch={"kind": "evaluate", "metrics": ["score"]})

    assert stages(plan, "imitate") == ["problems.load", "actor.learn", "actor.sync"]
    assert stages(plan, "rl")[-1] == "brief.score"


def test_stages_with_weights_run_in_the_pool_and_others_in_the_driver(compiled: Compiled) -> None:
    pools = {stage.name: stage.pool for stage in compiled(GRPO).phases[0].stages}

    assert pools == {
        "problems.load": None,
        "actor.generate": "main",
        "start.score": "main",
        "exact.score": None,
        "actor.credit": None,
        "actor.learn": "main",
        "actor.sync": "main",
    }


def test_weights_are_handed_on_only_if_something_reads_what_they_generate(
    compiled: Compiled, stages: Names
) -> None:
    alone = compiled(["problems.rows -> actor.demonstrations"])
    read = compiled(
        [
            "problems.rows -> actor.demonstrations",
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "held_out.rows -> probe.rows",
            "exact.scores -> probe.scores",
        ],
        probe={"kind": "evaluate", "instead_of": "problems"},
    )

    assert stages(alone) == ["problems.load", "actor.learn"]
    assert stages(read) == ["problems.load", "actor.learn", "actor.sync"]
