"""The types of weights: decided once, the same whatever is written or built first."""

import random
from typing import Any

import pytest

from coloop.spec.dtypes import Dtypes, Usual, resolve_dtypes
from coloop.spec.io import from_dict

SCRATCH = {"type": "scratch", "architecture": "tiny-qwen3"}
NODES: dict[str, dict[str, Any]] = {
    "sums": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic", "size": 8}},
    "actor": {
        "kind": "actor",
        "model": SCRATCH,
        "algorithm": {"name": "grpo", "kl": {"coefficient": 0.1}},
        "training": {"dtype": "bfloat16"},
    },
    "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
    "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
}
EDGES = [
    "sums.rows -> actor.prompts",
    "actor.rollouts -> exact.rollouts",
    "actor.rollouts -> start.rollouts",
    "start.log_probs -> actor.reference",
    "exact.scores -> actor.rewards",
]


def types_of(nodes: dict[str, Any], *, has_gpu: bool = False) -> dict[str, Dtypes]:
    loop = {"coloop": 1, "name": "small", "nodes": nodes, "edges": EDGES, "schedule": {"steps": 1}}
    parsed = from_dict(loop)
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    return resolve_dtypes(parsed.spec, gpus=int(has_gpu))


def words(dtypes: Dtypes) -> str:
    return " ".join((dtypes.matrices, dtypes.rest, dtypes.compute, dtypes.engine))


@pytest.mark.parametrize(
    ("training", "model", "has_gpu", "actor", "start"),
    [
        ({}, {}, False, "float32 float32 float32 float32", "float32 float32 float32 float32"),
        (
            {"dtype": "bfloat16"},
            {},
            False,
            "float32 float32 bfloat16 bfloat16",
            "bfloat16 float32 bfloat16 bfloat16",
        ),
        (
            {},
            {},
            True,
            "float32 float32 bfloat16 bfloat16",
            "bfloat16 float32 bfloat16 bfloat16",
        ),
        (
            {"dtype": "bfloat16"},
            {"ema": 0.9},
            False,
            "float32 float32 bfloat16 bfloat16",
            "float32 float32 bfloat16 bfloat16",
        ),
        (
            {"dtype": "bfloat16", "master_weights": False},
            {},
            False,
            "bfloat16 bfloat16 bfloat16 bfloat16",
            "bfloat16 bfloat16 bfloat16 bfloat16",
        ),
        (
            {"dtype": "bfloat16"},
            {"type": "scratch", "of": None},
            False,
            "float32 float32 bfloat16 bfloat16",
            "bfloat16 float32 bfloat16 bfloat16",
        ),
        (
            {"dtype": "bfloat16"},
            {"type": "scratch", "of": None, "dtype": "float32"},
            False,
            "float32 float32 bfloat16 bfloat16",
            "float32 float32 float32 float32",
        ),
        (
            {"dtype": "fp8"},
            {},
            True,
            "float32 float32 fp8 fp8",
            "fp8 float32 fp8 fp8",
        ),
        (
            {"dtype": "fp8", "master_weights": False},
            {},
            True,
            "bfloat16 bfloat16 fp8 fp8",
            "fp8 bfloat16 fp8 fp8",
        ),
        (
            {"dtype": "fp8", "backend": "fsdp2"},
            {},
            True,
            "float32 float32 fp8 fp8",
            "fp8 bfloat16 fp8 fp8",
        ),
    ],
)
def test_a_reference_computes_as_the_learner_that_it_is_compared_with(
    training: dict[str, Any], model: dict[str, Any], has_gpu: bool, actor: str, start: str
) -> None:
    own = {**NODES["start"]["model"], **model}
    if own["type"] == "scratch":
        own = {"architecture": "tiny-qwen3", **{k: v for k, v in own.items() if k != "of"}}
    nodes = {
        **NODES,
        "actor": {**NODES["actor"], "training": training},
        "start": {**NODES["start"], "model": own},
    }

    found = types_of(nodes, has_gpu=has_gpu)

    assert (words(found["actor"]), words(found["start"])) == (actor, start)
    assert all(one.reason for one in found.values())


def test_the_order_of_the_nodes_decides_nothing() -> None:
    names = list(NODES)
    found = []
    for seed in range(4):
        random.Random(seed).shuffle(names)
        found.append(types_of({name: NODES[name] for name in names}))

    assert all(one == found[0] for one in found)


def test_only_products_are_in_fp8() -> None:
    actor = NODES["actor"]
    narrow = types_of({**NODES, "actor": {**actor, "training": {"dtype": "fp8"}}}, has_gpu=True)
    plain = types_of({**NODES, "actor": {**actor, "training": {}}})

    assert narrow["actor"].activations == "bfloat16"
    assert types_of(NODES, has_gpu=True)["actor"].activations == "bfloat16"
    assert plain["actor"].activations == "float32"


def test_what_is_usual_holds_where_nothing_is_said() -> None:
    actor = NODES["actor"]
    loop = {
        "coloop": 1,
        "name": "small",
        "nodes": {**NODES, "actor": {**actor, "training": {}}},
        "edges": EDGES,
        "schedule": {"steps": 1},
    }
    spec = from_dict(loop).spec
    said = from_dict({**loop, "nodes": NODES}).spec
    assert spec is not None
    assert said is not None
    usual = {"actor": Usual(dtype="bfloat16", reason="it is fast")}
    exact = {"actor": Usual(dtype="float32", reason="it is exact")}

    found = resolve_dtypes(spec, gpus=0, usual=usual)

    assert words(found["actor"]) == "float32 float32 bfloat16 bfloat16"
    assert words(found["start"]) == "bfloat16 float32 bfloat16 bfloat16"
    assert found["actor"].reason.startswith("it is fast; float32 master weights")
    assert resolve_dtypes(said, gpus=0, usual=exact)["actor"].compute == "bfloat16"
