"""Slices that a filter with `fill` repeats: from the source to the filter, and no further."""

from collections.abc import Callable
from typing import Any

import pytest

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
    assert refill.sources == ("problems",)
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
    assert refill.sources == ("pool",)
    assert refill.stages[0] == "pool.read"
    assert "pool.write" not in refill.stages


def test_a_slice_may_begin_in_the_middle(compiled: Compiled) -> None:
    [refill] = compiled(edges(), keep=keep(groups="all", **{"from": "actor"})).phases[0].refills

    assert refill.sources == ("actor",)
    assert refill.only_lacking
    assert refill.stages == ("actor.generate", "exact.score", "keep.prepare")


@pytest.mark.parametrize("fill", [{"groups": 4}, {"groups": "all"}, {"groups": 4, "from": "actor"}])
def test_what_draws_new_rows_or_counts_groups_is_filled_up_with_any(
    compiled: Compiled, fill: dict[str, Any]
) -> None:
    [refill] = compiled(edges(), keep=keep(**fill)).phases[0].refills

    assert not refill.only_lacking


def test_spare_rows_from_outside_come_in_the_first_pass_alone(compiled: Compiled) -> None:
    gold = {"kind": "dataset", "source": {"type": "inline", "rows": [{"prompt": "1+1="}]}}
    cut = {"kind": "filter", "keep": [{"rule": "unique", "column": "completion"}]}
    spare = ["actor.rollouts -> cut.rollouts", "gold.rows -> cut.spare"]
    inside = [edge.replace("actor.rollouts -> keep", "cut.rollouts -> keep") for edge in edges()]

    fill = keep(rows=4, **{"from": "actor"})
    [refill] = compiled([*inside, *spare], keep=fill, cut=cut, gold=gold).phases[0].refills

    assert "cut.prepare" in refill.stages
    assert refill.once == ("gold.rows->cut.spare",)


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


def order(plan: Plan) -> list[str]:
    return [stage.name for stage in plan.phases[0].stages]


def sampled(*more: str, source: str = "problems.rows") -> list[Any]:
    """Dynamic sampling, with whatever else reads its rows."""
    return [
        f"{source} -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> keep.scores",
        "keep.scores -> actor.rewards",
        *more,
    ]


WRITER = {
    "kind": "actor",
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
}
LEARNER = {**WRITER, "algorithm": {"name": "grpo"}}
MARK = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}


@pytest.mark.parametrize(
    ("more", "reader"),
    [
        (["actor.rollouts -> start.rollouts", "start.log_probs -> actor.reference"], "start.score"),
        (["actor.rollouts -> brief.rollouts", "brief.scores -> actor.rewards"], "brief.score"),
        (["problems.rows -> actor.demonstrations"], "actor.learn"),
    ],
)
def test_whatever_else_reads_its_rows_stands_after_the_slice(
    compiled: Compiled, more: list[str], reader: str
) -> None:
    plan = compiled(sampled(*more), keep=keep(groups=4))

    names = order(plan)
    assert names.index("keep.prepare") < names.index(reader)
    [stage] = [one for one in plan.phases[0].stages if one.name == reader]
    assert "keep.prepare" in stage.after
    assert reader not in plan.phases[0].refills[0].stages


def test_a_second_learner_stands_after_the_slice_with_all_that_it_needs(
    compiled: Compiled,
) -> None:
    edges = sampled(
        "problems.rows -> other.prompts",
        "other.rollouts -> mark.rollouts",
        "mark.scores -> other.rewards",
    )

    names = order(compiled(edges, keep=keep(groups=4), other=LEARNER, mark=MARK))

    assert names[:4] == ["problems.load", "actor.generate", "exact.score", "keep.prepare"]
    assert names.index("keep.prepare") < names.index("other.generate")


def test_two_fills_of_one_source_are_two_slices_behind_one_first_load(compiled: Compiled) -> None:
    edges = [
        "problems.rows -> a.prompts",
        "problems.rows -> b.prompts",
        "a.rollouts -> sa.rollouts",
        "b.rollouts -> sb.rollouts",
        "sa.scores -> fa.scores",
        "sb.scores -> fb.scores",
        "fa.scores -> a.rewards",
        "fb.scores -> b.rewards",
    ]
    filters = {"fa": keep(groups=4), "fb": keep(groups=4)}

    phase = compiled(edges, a=LEARNER, b=LEARNER, sa=MARK, sb=MARK, **filters).phases[0]

    names = [stage.name for stage in phase.stages]
    assert names[:7] == [
        "problems.load",
        *("a.generate", "sa.score", "fa.prepare"),
        *("b.generate", "sb.score", "fb.prepare"),
    ]
    first, second = phase.refills
    assert first.stages == ("problems.load", "a.generate", "sa.score", "fa.prepare")
    assert first.first_pass == ("a.generate", "sa.score", "fa.prepare")
    assert first.shared == second.shared == ("problems.load",)
    assert second.stages == ("problems.load", "b.generate", "sb.score", "fb.prepare")
    [generate] = [stage for stage in phase.stages if stage.name == "b.generate"]
    assert generate.after == ("problems.load",)


def test_two_filters_of_one_writer_share_all_that_comes_before_them(compiled: Compiled) -> None:
    edges = sampled("actor.rollouts -> brief.rollouts", "brief.scores -> short.scores")
    edges.append("short.scores -> actor.rewards")

    phase = compiled(edges, keep=keep(groups=4), short=keep(groups=4)).phases[0]

    assert {refill.shared for refill in phase.refills} == {("problems.load", "actor.generate")}
    assert [refill.first_pass for refill in phase.refills] == [
        ("exact.score", "keep.prepare"),
        ("brief.score", "short.prepare"),
    ]


def test_a_slice_that_reads_another_ones_rows_stands_after_it(compiled: Compiled) -> None:
    edges = sampled("actor.rollouts -> brief.rollouts", "brief.scores -> again.scores")
    edges.append("again.scores -> actor.rewards")
    again = keep(groups="all", **{"from": "actor"})

    first, second = compiled(edges, keep=keep(groups=4), again=again).phases[0].refills

    assert (first.filter, second.filter) == ("keep", "again")
    assert second.stages == ("actor.generate", "brief.score", "again.prepare")
    assert second.first_pass == ("brief.score", "again.prepare")
    assert second.shared == ()


def test_every_dataset_that_feeds_a_slice_is_loaded_with_each_pass(compiled: Compiled) -> None:
    edges = sampled("held_out.rows -> actor.prompts")

    [refill] = compiled(edges, keep=keep(groups=4)).phases[0].refills

    assert refill.sources == ("problems", "held_out")
    assert refill.stages[:2] == ("problems.load", "held_out.load")
    assert refill.once == ()


def test_a_named_start_loads_one_dataset_and_writes_the_rows_of_the_other_once(
    compiled: Compiled,
) -> None:
    edges = sampled("held_out.rows -> actor.prompts")
    named = keep(groups=4, **{"from": "problems"})

    phase = compiled(edges, keep=named).phases[0]

    [refill] = phase.refills
    assert "held_out.load" not in refill.stages
    assert refill.once == ("held_out.rows->actor.prompts",)
    assert [stage.name for stage in phase.stages][:2] == ["held_out.load", "problems.load"]


def test_the_rows_of_a_slice_end_at_a_buffer(compiled: Compiled) -> None:
    """What filled the buffer is no part of the slice, be it a filter with a `fill` of its own."""
    edges = [
        *sampled(source="pool.rows"),
        "problems.rows -> chosen.rows",
        "chosen.rows -> pool.seed",
    ]
    nodes = {"pool": {"kind": "buffer", "capacity": 8}, "chosen": keep(rows=4)}

    phase = compiled(edges, keep=keep(groups=4), **nodes).phases[0]

    sources = {refill.filter: refill.sources for refill in phase.refills}
    assert sources == {"chosen": ("problems",), "keep": ("pool",)}
