"""What an evaluation with rows of its own runs: the slice below the node that it stands in for, and
nothing of what else feeds that slice."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.types import Plan, ProbePlan

Compiled = Callable[..., Plan]

PROBE = {"kind": "evaluate", "instead_of": "easy", "metrics": ["score"]}
DATASET = {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}, "rows_per_step": 4}
ASK = {"kind": "template", "text": "{{ prompt }}?"}
WRITER = {
    "kind": "actor",
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
}
FILL = {"kind": "filter", "keep": [], "fill": {"groups": 4}}
BASE = [
    "easy.rows -> actor.prompts",
    "actor.rollouts -> exact.rollouts",
    "exact.scores -> actor.rewards",
    "held_out.rows -> probe.rows",
    "exact.scores -> probe.scores",
]
PLAIN = {"algorithm": {"name": "grpo"}}


def loads(probe: ProbePlan) -> list[str]:
    return [stage.name for stage in probe.sources]


def slice_of(probe: ProbePlan) -> list[str]:
    return [stage.name for stage in probe.stages]


OTHERS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "a second dataset": (["hard.rows -> actor.prompts"], {}),
    "through a template": (["hard.rows -> ask.rows", "ask.rows -> actor.prompts"], {"ask": ASK}),
    "through a writer": (
        ["hard.rows -> teacher.prompts", "teacher.rollouts -> actor.prompts"],
        {"teacher": WRITER},
    ),
    "through a fill": (
        [
            "hard.rows -> teacher.prompts",
            "teacher.rollouts -> kept.rollouts",
            "kept.rollouts -> actor.prompts",
        ],
        {"teacher": WRITER, "kept": FILL},
    ),
    "through a buffer": (
        ["hard.rows -> pool.seed", "pool.rows -> actor.prompts"],
        {"pool": {"kind": "buffer", "capacity": 8}},
    ),
    "a buffer that the probe's own node seeds": (
        ["easy.rows -> pool.seed", "pool.rows -> actor.prompts"],
        {"pool": {"kind": "buffer", "capacity": 8}},
    ),
    "at a scorer": (
        ["hard.rows -> other.prompts", "other.rollouts -> exact.rollouts"],
        {"other": WRITER, "exact": {"join": "concat"}},
    ),
}


@pytest.mark.parametrize("which", OTHERS)
def test_other_rows_that_feed_the_same_inputs_stay_away(which: str, compiled: Compiled) -> None:
    edges, nodes = OTHERS[which]
    datasets = {"easy": DATASET, "hard": DATASET}

    plan = compiled([*BASE, *edges], actor=PLAIN, probe=PROBE, **datasets, **nodes)

    [probe] = plan.probes
    assert loads(probe) == ["held_out.load"]
    assert slice_of(probe) == ["actor.generate", "exact.score"]
    [generate, score] = probe.stages
    assert generate.edges == ("easy.rows->actor.prompts",)
    assert score.edges == ("actor.rollouts->exact.rollouts",)
    counted = {one.stage: one.rows.most for one in probe.rows}
    assert counted == {"held_out.load": 4, "actor.generate": 8, "exact.score": 8}


def test_a_filter_with_fill_in_the_slice_runs_once(compiled: Compiled) -> None:
    edges = [edge for edge in BASE if edge != "exact.scores -> actor.rewards"]
    edges = [*edges[:-1], "exact.scores -> keep.scores", "keep.scores -> actor.rewards"]
    edges += ["keep.scores -> probe.scores", "hard.rows -> actor.prompts"]

    [probe] = compiled(
        edges, actor=PLAIN, probe=PROBE, keep=FILL, easy=DATASET, hard=DATASET
    ).probes

    assert loads(probe) == ["held_out.load"]
    assert slice_of(probe) == ["actor.generate", "exact.score", "keep.prepare"]


def test_a_teaching_port_of_a_probe_gets_the_rows_of_its_run_alone(compiled: Compiled) -> None:
    edges = [
        "easy.rows -> ask.rows",
        "ask.rows -> actor.demonstrations",
        "hard.rows -> actor.demonstrations",
        "held_out.rows -> probe.rows",
    ]
    probe = {"kind": "evaluate", "instead_of": "easy", "of": ["actor.demonstrations"]}
    actor = {"algorithm": {"name": "sft"}}

    [plan] = compiled(edges, probe=probe, actor=actor, ask=ASK, easy=DATASET, hard=DATASET).probes

    assert loads(plan) == ["held_out.load"]
    assert slice_of(plan) == ["ask.prepare"]


def test_of_what_a_teaching_port_reads_only_references_score_once_more(compiled: Compiled) -> None:
    """What leads to the reference ran for the probe already."""
    edges = [
        "easy.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> sides.scores",
        "actor.rollouts -> sides.rollouts",
        "sides.pairs -> actor.pairs",
        "sides.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
        "held_out.rows -> probe.rows",
    ]
    probe = {"kind": "evaluate", "instead_of": "easy", "of": ["actor.pairs"]}
    actor = {"algorithm": {"name": "dpo"}}

    [plan] = compiled(edges, probe=probe, actor=actor, sides={"kind": "pairs"}, easy=DATASET).probes

    assert [stage.name for stage in plan.of_stages if stage.node == "start"] == ["start.score"]
    assert {stage.verb for stage in plan.of_stages} == {"score"}


def test_what_a_slice_joins_with_its_rows_is_loaded(compiled: Compiled) -> None:
    ask = {"kind": "template", "text": "{{ others('prompt', 2) }} {{ prompt }}"}
    edges = [
        "easy.rows -> ask.rows",
        "hard.rows -> ask.library",
        "held_out.rows -> ask.library",
        "ask.rows -> actor.prompts",
        *BASE[1:],
    ]

    [plan] = compiled(edges, actor=PLAIN, probe=PROBE, ask=ask, easy=DATASET, hard=DATASET).probes

    assert sorted(loads(plan)) == ["hard.load", "held_out.load"]


@pytest.mark.parametrize("written", [0.0, 1.0])
def test_a_probe_runs_over_the_edges_that_live_in_its_phase(
    written: float, compiled: Compiled
) -> None:
    edges = [
        {"from": "easy.rows", "to": "ask.rows", "id": "asked", "weight": written},
        "ask.rows -> actor.prompts",
        *BASE,
    ]
    phases = [
        {"name": name, "steps": 1, "learn": ["actor"], "set": {"edges.asked.weight": weight}}
        for name, weight in (("without", 0.0), ("with", 1.0))
    ]

    plan = compiled(edges, {"phases": phases}, actor=PLAIN, probe=PROBE, ask=ASK, easy=DATASET)

    def in_phase(name: str) -> ProbePlan:
        return next(iter([*plan.phase(name).probes, *plan.probes]))

    assert "ask.prepare" in slice_of(in_phase("with"))
    assert "ask.prepare" not in slice_of(in_phase("without"))
