"""Every planned stage stands after all its givers: of every loop that compiles, and a plan that
breaks it is refused."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import PlanInconsistent
from coloop.plan.compile import check_stages, compile_plan
from coloop.plan.stages import Order
from coloop.plan.types import Plan
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse

ROOT = Path(__file__).resolve().parents[3]
WRITTEN = [
    *sorted((ROOT / "presets" / "loops").glob("*.yaml")),
    *sorted((ROOT / "tests" / "engine" / "validate" / "loops").glob("*.yaml")),
    *sorted((ROOT.parent / "shared" / "language" / "examples").glob("*.yaml")),
    *sorted((ROOT.parent / "shared" / "cases").glob("*.yaml")),
]
FILL = {"kind": "filter", "keep": [{"rule": "nonzero_variance"}], "fill": {"groups": 4}}
WRITER = {
    "kind": "actor",
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
    "algorithm": {"name": "grpo"},
}
MARK = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}

READERS: dict[str, list[Any]] = {
    "reference": ["actor.rollouts -> start.rollouts", "start.log_probs -> actor.reference"],
    "second reward": ["actor.rollouts -> brief.rollouts", "brief.scores -> actor.rewards"],
    "second learner": [
        "problems.rows -> other.prompts",
        "other.rollouts -> mark.rollouts",
        "mark.scores -> other.rewards",
    ],
    "second fill": [
        "problems.rows -> third.prompts",
        "third.rollouts -> third_mark.rollouts",
        "third_mark.scores -> third_keep.scores",
        "third_keep.scores -> third.rewards",
    ],
    "two sources": ["held_out.rows -> actor.prompts"],
    "probe": ["held_out.rows -> probe.rows", "exact.scores -> probe.scores"],
    "reading": ["exact.scores -> reading.scores"],
    "demonstrations": ["problems.rows -> actor.demonstrations"],
    "buffer": ["actor.rollouts -> pool.rollouts"],
}
NODES = {
    "keep": FILL,
    "other": WRITER,
    "mark": MARK,
    "third": WRITER,
    "third_mark": MARK,
    "third_keep": FILL,
    "probe": {"kind": "evaluate", "instead_of": "problems", "metrics": ["score"]},
    "reading": {"kind": "evaluate", "metrics": ["score"]},
    "pool": {"kind": "buffer", "capacity": 8},
}


def readers() -> Iterator[tuple[str, ...]]:
    """None, each, and each two of them."""
    for count in range(3):
        yield from itertools.combinations(READERS, count)


def check(plan: Plan, spec: LoopSpec) -> None:
    """By the edges alone: whoever reads a slice from outside stands after its last stage."""
    edges = {edge.key: edge for edge in spec.edges}
    for phase in plan.phases:
        check_stages(spec, phase.stages, phase.refills)
        names = [stage.name for stage in phase.stages]
        for stage in phase.stages:
            assert set(stage.after) <= set(names[: names.index(stage.name)])
            for key in stage.edges:
                source = edges[key].source.node
                assert any(s.node == source for s in phase.stages[: names.index(stage.name)]), key


@pytest.mark.sample(60)
@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_written_loop_is_planned_in_order(path: Path) -> None:
    spec = parse(path.read_text(encoding="utf-8")).spec
    assert spec is not None
    check(compile_plan(spec), spec)


@pytest.mark.parametrize("which", list(readers()), ids=" and ".join)
def test_whatever_reads_the_rows_of_a_fill_is_planned_in_order(
    which: tuple[str, ...], loop: Callable[..., LoopSpec]
) -> None:
    more = [edge for name in which for edge in READERS[name]]
    named = {edge.partition(" -> ")[i].partition(".")[0] for edge in more for i in (0, 2)}
    spec = loop(
        [
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> keep.scores",
            "keep.scores -> actor.rewards",
            *more,
        ],
        {"steps": 2, "fill": ["pool"] if "buffer" in which else []},
        **{name: node for name, node in NODES.items() if name in named or name == "keep"},
    )

    plan = compile_plan(spec)

    check(plan, spec)
    [own] = [one for one in plan.phases[0].refills if one.filter == "keep"]
    names = [stage.name for stage in plan.phases[0].stages]
    for reader in ("start.score", "brief.score", "other.generate", "pool.write", "actor.learn"):
        assert reader not in own.stages
        if reader in names:
            assert names.index(reader) > names.index("keep.prepare")


def test_a_stage_before_its_giver_is_refused(loop: Callable[..., LoopSpec]) -> None:
    spec = loop(
        [
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> actor.rewards",
        ]
    )
    stages = list(compile_plan(spec).phases[0].stages)

    with pytest.raises(PlanInconsistent, match=r"actor\.generate is planned before problems\.load"):
        check_stages(spec, [stages[1], stages[0], *stages[2:]])
    with pytest.raises(PlanInconsistent, match=r"planned twice: actor\.generate"):
        check_stages(spec, [stages[0], stages[1], stages[1]])
    itself = stages[1].model_copy(update={"after": ("actor.generate",)})
    with pytest.raises(PlanInconsistent, match=r"generate is planned before actor\.generate"):
        check_stages(spec, [stages[0], itself, *stages[2:]])


def test_a_reader_within_a_slice_is_refused(loop: Callable[..., LoopSpec]) -> None:
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> start.rollouts",
        "exact.scores -> keep.scores",
        "keep.scores -> actor.rewards",
        "start.log_probs -> actor.reference",
    ]
    spec = loop(edges, keep=FILL)
    phase = compile_plan(spec).phases[0]
    by_name = {stage.name: stage for stage in phase.stages}
    late = by_name.pop("start.score").model_copy(update={"after": ()})
    early = [by_name.pop("problems.load"), by_name.pop("actor.generate"), late, *by_name.values()]

    with pytest.raises(PlanInconsistent, match=r"start\.score is planned before keep\.prepare"):
        check_stages(spec, early, phase.refills)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first_pass": ()}, "does not end with its filter"),
        ({"first_pass": ("problems.load", "actor.generate")}, "does not end with its filter"),
        ({"first_pass": ("actor.generate", "keep.prepare")}, "is not contiguous"),
        ({"stages": ("actor.learn", "keep.prepare")}, "actor.learn run after the slice of keep"),
    ],
)
def test_a_slice_that_is_no_slice_is_refused(
    change: dict[str, Any], message: str, loop: Callable[..., LoopSpec]
) -> None:
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> keep.scores",
        "keep.scores -> actor.rewards",
    ]
    spec = loop(edges, keep=FILL)
    phase = compile_plan(spec).phases[0]
    [refill] = phase.refills

    check_stages(spec, phase.stages, [refill])
    with pytest.raises(PlanInconsistent, match=message):
        check_stages(spec, phase.stages, [refill.model_copy(update=change)])


def test_a_piece_stands_where_its_first_member_would() -> None:
    """`a` and `z` are one piece: it goes before `m`, though `z` alone would not."""
    ranks = {"a": 0, "m": 5, "z": 9}

    order = Order(
        {"m": [], "z": ["a"], "a": []},
        lambda key: ("az",) if key in "az" else (),
        ranks.__getitem__,
    )

    assert order.keys == ["a", "z", "m"]
    assert order.circles == []


def test_a_piece_within_a_piece_is_in_one_run() -> None:
    before: dict[str, tuple[str, ...]] = dict.fromkeys("abcdef", ())
    inner, outer = {"b", "e"}, {"a", "b", "e", "f"}

    def within(key: str) -> tuple[str, ...]:
        return tuple(name for name, keys in (("outer", outer), ("inner", inner)) if key in keys)

    order = Order(before, within, "abcdef".index)

    assert order.keys == ["a", "b", "e", "f", "c", "d"]


def test_stages_that_wait_for_each_other_are_named() -> None:
    order = Order({"a": ["b"], "b": ["a", "c"], "c": []}, lambda key: (), "abc".index)

    assert order.circles == [("a", "b", "a")]
    assert order.keys == ["c", "a", "b"]
