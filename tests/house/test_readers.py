"""Every field of the language has a reader: what a run uses, or what refuses it by name.

A field counts as read by a run where a package that a run goes through names it, as an attribute or
in quotes. What no run reads stands in a table here, with who reads it instead.
"""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.smallest import GRPO

import coloop.spec
from coloop.diagnostics import Change
from coloop.plan.runnable import (
    BEYOND_BACKENDS,
    UNREAD_BY_BACKENDS,
    UNREAD_BY_TORCH,
    check_runs,
)
from coloop.spec.base import Section
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, patch

ENGINE = Path(coloop.spec.__file__).parents[1]

RUN = (
    *(
        "plan",
        "runtime",
        "cluster",
        "hosts",
        "roles",
        "training",
        "rollout",
        "sync",
        "recipes",
        "algos",
    ),
    *("models", "rewards", "data", "tables", "batch.py", "spec/lineage", "spec/algorithm.py"),
    *("spec/graph.py", "spec/groups.py", "spec/dtypes.py", "spec/schedule.py", "spec/paths.py"),
)
"""What a run goes through."""
REFUSING = "runnable.py"

LATER = {
    **dict.fromkeys(
        ("Lora", "Turns", "RoundsCredit", "ClassWeights", "Balance", "ValueLoss", "RemoteSource"),
        "refused by its section's name",
    ),
    **dict.fromkeys(
        ("VerifierNode", "Read", "ToolNode", "SearchNode", "Select", "Expand", "Progressive"),
        "refused by the node's kind",
    ),
    **dict.fromkeys(
        ("Budget", "CompletionsByRate", "CompletionBand", "RelativeProgress"),
        "refused by the node's kind",
    ),
}
"""Sections that are drawn and checked only."""
ELSEWHERE = {
    ("LoopSpec", "mode"): "the page and the checks: it sets defaults of what is drawn",
    ("LoopSpec", "layout"): "the page",
    ("Hardware", "preset"): "`preset_name`, by which GPUs are counted",
    ("Hardware", "gpu"): "the estimate, and who counts the GPUs",
    ("Rollout", "expected_tokens"): "the estimate",
    ("Hardware", "memory_budget"): "the estimate and its finding `memory.over_budget`",
}
REFUSED: dict[tuple[str, str], tuple[str, Any]] = {
    **{
        ("Training", field): (f"nodes.actor.training.{field}", 2)
        for field in UNREAD_BY_BACKENDS
        if field.endswith("parallel")
    },
    ("Training", "offload"): ("nodes.actor.training.offload", "optimizer"),
    ("Rollout", "on_sync"): ("nodes.actor.rollout.on_sync", "drop"),
    ("Rollout", "gpu_memory_utilization"): ("nodes.actor.rollout.gpu_memory_utilization", 0.5),
    ("Rollout", "tensor_parallel"): ("nodes.actor.rollout.tensor_parallel", 2),
    ("Schedule", "max_staleness"): ("schedule.max_staleness", 1),
    ("Schedule", "stream"): ("schedule.stream", True),
    ("RewardsAlgorithm", "covariance_share"): ("nodes.actor.algorithm.loss", "clip_cov"),
}
"""Fields that nothing on this path reads: a value that makes a difference is refused."""
WANTS: dict[str, dict[str, Any]] = {
    "pipeline_parallel": {"nodes.actor.training.backend": "megatron"},
}
"""What the language asks for beside a field."""


def sections() -> list[type[Any]]:
    """Every section of the language."""
    found: dict[str, type[Any]] = {"LoopSpec": LoopSpec}
    for module in pkgutil.walk_packages(coloop.spec.__path__, "coloop.spec."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Section) and value is not Section:
                found.setdefault(value.__name__, value)
    return list(found.values())


def names_in(path: Path) -> Iterator[str]:
    """Attributes and texts of a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def read_by_a_run() -> set[str]:
    roots = [ENGINE / name for name in RUN]
    files = [file for root in roots for file in ([root] if root.is_file() else root.rglob("*.py"))]
    return {name for file in files if file.name != REFUSING for name in names_in(file)}


def test_every_field_has_a_reader() -> None:
    read = read_by_a_run()
    unread = {
        (section.__name__, name)
        for section in sections()
        for name in section.model_fields
        if name not in read and section.__name__ not in LATER
    }

    assert sorted(unread - set(ELSEWHERE) - set(REFUSED)) == []
    gone = {key for key in (*ELSEWHERE, *REFUSED) if key[1] in read}
    assert sorted(gone) == [], "a run reads these now: take them from the table"


@pytest.mark.parametrize("key", REFUSED, ids=".".join)
def test_a_field_that_nothing_reads_is_refused_by_name(key: tuple[str, str]) -> None:
    path, value = REFUSED[key]
    wanted = {**WANTS.get(key[1], {}), path: value}
    changes = [Change(op="set", path=one, value=given) for one, given in wanted.items()]
    parsed = parse(patch(GRPO, changes))
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]

    found = check_runs(parsed.spec)

    fields = {f"nodes.{one.node}.{one.field}" if one.node else one.field for one in found}
    expected = next(iter(WANTS.get(key[1], {path: None})))
    assert expected.replace("algorithm.loss", "algorithm.rewards.loss") in fields


FINE = [
    *(
        ("training", field, value)
        for field, fine in UNREAD_BY_BACKENDS.items()
        if field not in WANTS
        for value in fine
    ),
    *(("rollout", field, value) for field, fine in UNREAD_BY_TORCH.items() for value in fine),
]


@pytest.mark.parametrize(("section", "field", "value"), FINE)
def test_a_value_that_says_what_happens_anyway_is_fine(
    section: str, field: str, value: Any
) -> None:
    path = f"nodes.actor.{section}.{field}"
    spec = parse(patch(GRPO, [Change(op="set", path=path, value=value)])).spec
    assert spec is not None

    assert check_runs(spec) == []


BEYOND = [(field, value) for field, values in BEYOND_BACKENDS.items() for value in values]


@pytest.mark.parametrize(("field", "value"), BEYOND)
def test_a_value_beyond_the_backend_is_refused_by_name(field: str, value: Any) -> None:
    path = f"nodes.actor.training.{field}"
    spec = parse(patch(GRPO, [Change(op="set", path=path, value=value)])).spec
    assert spec is not None

    (found,) = check_runs(spec)

    assert (found.code, found.node) == ("run.not_yet_runnable", "actor")
    assert found.field == f"training.{field}"
    assert f"{field}: {value}" in found.message


def test_what_the_backend_does_is_not_refused() -> None:
    for given in (
        {"gradient_checkpointing": True},
        {"dtype": "bfloat16"},
        {"backend": "fsdp2", "reshard_after_forward": True},
        {"backend": "deepspeed", "zero_stage": 3},
    ):
        changes = [
            Change(op="set", path=f"nodes.actor.training.{path}", value=value)
            for path, value in given.items()
        ]
        spec = parse(patch(GRPO, changes)).spec
        assert spec is not None
        assert check_runs(spec) == []
