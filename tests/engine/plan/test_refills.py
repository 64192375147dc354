"""Slices that a filter with `fill` repeats: from the source to the filter, and no further."""

from collections.abc import Callable
from typing import Any

from coloop.plan.types import Plan

Compiled = Callable[..., Plan]


def edges(source: str = "problems.rows") -> list[Any]:
    """Dynamic sampling: groups whose scores differ are kept, the reference sees what was kept."""
    return [
        f"{source} -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> keep.rollouts",
        "exact.scores -> keep.scores",
        "keep.rollouts -> start.rollouts",
        "keep.rollouts -> brief.rollouts",
        "keep.scores -> actor.rewards",
        "brief.scores -> actor.rewards",
        "start.log_probs -> actor.reference",
    ]


def keep(**fill: Any) -> dict[str, Any]:
    return {"kind": "filter", "keep": [{"rule": "nonzero_variance"}], "fill": fill}


def test_a_slice_begins_at_the_dataset_and_ends_at_the_filter(compiled: Compiled) -> None:
    phase = compiled(edges(), keep=keep(groups=4, max_rounds=7)).phases[0]

    [refill] = phase.refills
    assert refill.filter == "keep"
    assert refill.source == "problems"
    assert refill.max_rounds == 7
    assert refill.stages == ("problems.load", "actor.generate", "exact.score", "keep.prepare")


def test_what_reads_the_filter_runs_once_and_after_it(compiled: Compiled) -> None:
    names = [stage.name for stage in compiled(edges(), keep=keep(rows=4)).phases[0].stages]

    assert names.index("keep.prepare") < names.index("start.score")
    assert names.index("keep.prepare") < names.index("brief.score")
    assert names[:4] == ["problems.load", "actor.generate", "exact.score", "keep.prepare"]


def test_a_slice_may_begin_at_a_buffer(compiled: Compiled) -> None:
    plan = compiled(
        [*edges("pool.rows"), "problems.rows -> pool.rows"],
        {"steps": 2, "fill": ["pool"]},
        keep=keep(groups=4),
        pool={"kind": "buffer", "capacity": 8},
    )

    [refill] = plan.phases[0].refills
    assert refill.source == "pool"
    assert refill.stages[0] == "pool.read"
    assert "pool.write" not in refill.stages


def test_a_slice_may_begin_in_the_middle(compiled: Compiled) -> None:
    [refill] = compiled(edges(), keep=keep(groups="all", **{"from": "actor"})).phases[0].refills

    assert refill.source == "actor"
    assert refill.only_lacking
    assert refill.stages == ("actor.generate", "exact.score", "keep.prepare")


def test_stages_beside_the_slice_run_before_it(compiled: Compiled) -> None:
    plan = compiled(
        [
            *edges(),
            "problems.rows -> other.prompts",
            "other.rollouts -> judge.rollouts",
            "judge.scores -> other.rewards",
        ],
        keep=keep(groups=4),
        other={
            "kind": "actor",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "algorithm": {"name": "grpo"},
        },
        judge={"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    )

    phase = plan.phases[0]
    names = [stage.name for stage in phase.stages]
    [refill] = phase.refills
    at = names.index(refill.stages[0])
    assert tuple(names[at : at + len(refill.stages)]) == refill.stages
    assert "other.generate" not in refill.stages


def test_a_phase_in_which_the_filter_rests_refills_nothing(compiled: Compiled) -> None:
    phases = [{"name": "imitate", "steps": 1, "learn": ["actor.demonstrations"]}]

    plan = compiled(
        [*edges(), "problems.rows -> actor.demonstrations"],
        {"phases": phases},
        keep=keep(groups=4),
    )

    assert plan.phases[0].refills == ()
