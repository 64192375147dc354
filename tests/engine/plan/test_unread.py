"""Fields that nothing reads: a loop for every line of the tables, and a way out that mends each."""

import re
from typing import Any

import pytest
from tests.engine.plan.conftest import loop
from tests.engine.plan.refusals import ALL, refused_loop

from coloop.plan.unused import (
    OF_NODES,
    OF_WAYS,
    Unused,
    check_unused,
    unused_by_backend,
    unused_by_engine,
)
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec
from coloop.spec.io import dump, parse, patch, require
from coloop.spec.rollout import Rollout
from coloop.spec.training import Training

FOUND = [(spec, one) for spec in map(refused_loop, ALL) for one in check_unused(spec)]


@pytest.mark.parametrize("row", OF_NODES, ids=lambda row: f"{row.fields[0]} {row.what}")
def test_every_line_about_a_node_has_a_loop(row: Unused) -> None:
    said = re.sub(r"\\\{.*?\\\}", ".*", re.escape(row.what))
    fields = "|".join(map(re.escape, row.fields))

    told = [
        one.hint
        for spec, one in FOUND
        if re.search(f"`({fields})` {said}$", one.message)
        and one.node is not None
        and isinstance(spec.nodes[one.node], row.kind)
        and row.when(spec, one.node, spec.nodes[one.node])
    ]

    assert told
    assert set(told) == {row.hint}


@pytest.mark.parametrize("way", OF_WAYS)
def test_every_way_of_judging_has_a_loop(way: str) -> None:
    assert any(f"`, which {OF_WAYS[way].who} does not use" in one.message for _, one in FOUND)


def test_the_way_out_of_each_mends_it() -> None:
    assert FOUND
    for spec, one in FOUND:
        assert one.message not in messages(mended(spec, one))


def mended(spec: LoopSpec, found: Diagnostic) -> LoopSpec:
    [fix] = found.fixes
    return require(parse(patch(dump(spec), fix.changes)))


def messages(spec: LoopSpec) -> list[str]:
    return [one.message for one in check_unused(spec)]


def by_pairs(**algorithm: Any) -> LoopSpec:
    edges = ["problems.rows -> actor.prompts", "actor.rollouts -> two.rollouts"]
    pairs = {"kind": "pairs", "method": "all"}
    actor = {"algorithm": algorithm}
    return loop([*edges, "two.pairs -> actor.pairs"], two=pairs, actor=actor)


@pytest.mark.parametrize(
    ("algorithm", "hint"),
    [
        ({"name": "dpo", "gamma": 0.5}, "remove it, or set `loss: simpo`"),
        ({"name": "simpo", "loss": "sigmoid"}, "set it to 0, or set `loss: simpo`"),
        ({"name": "simpo", "loss": "ipo", "gamma": 0.7}, "set it to 0, or set `loss: simpo`"),
    ],
)
def test_a_lead_that_a_preset_wants_of_another_loss_is_set_to_nothing(
    algorithm: dict[str, Any], hint: str
) -> None:
    spec = by_pairs(**algorithm)

    [found] = check_unused(spec)

    assert (found.field, found.hint) == ("algorithm.gamma", hint)
    assert messages(mended(spec, found)) == []


@pytest.mark.parametrize("name", ["dpo", "simpo", "orpo", "kto", "nemo-dpo"])
def test_presets_of_pairs_alone_are_fine(name: str) -> None:
    assert messages(by_pairs(name=name)) == []


def test_engines_and_backends_that_read_a_field_do_not_refuse_it() -> None:
    written = Rollout(script=("yes",), max_new_tokens=4)
    shared = Training(tensor_parallel=2)

    assert list(unused_by_engine("actor", written, "torch")) == []
    assert list(unused_by_backend("actor", shared, "fsdp2")) == []
    [script] = unused_by_engine("actor", written, "vllm")
    [parallel] = unused_by_backend("actor", shared, "deepspeed")
    assert (script.field, parallel.field) == ("rollout.script", "training.tensor_parallel")
    assert [one.title for one in (*script.fixes, *parallel.fixes)] == [
        "Remove `rollout.script`",
        "Remove `training.tensor_parallel`",
    ]
