"""What a learner computes in where nobody says it: decided by the processor and the model's size,
with the reason in the plan, and the same run as where it is spelled out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coloop.diagnostics import Change
from coloop.events import RunStateName
from coloop.plan.compile import compile_plan
from coloop.plan.types import Plan
from coloop.sizing import processor, survey
from coloop.sizing.processor import Processor
from coloop.spec.io import parse, patch

Run = Callable[..., Any]
TRAINING = "nodes.actor.training"
PLAIN = Processor(cores=2, bfloat16=None)
NATIVE = replace(PLAIN, bfloat16="AVX-512 BF16")


def on(monkeypatch: pytest.MonkeyPatch, machine: Processor) -> None:
    monkeypatch.setattr(survey, "this_processor", lambda: machine)


def plan_of(text: str, **values: Any) -> Plan:
    spec = parse(with_values(text, values)).spec
    assert spec is not None
    return compile_plan(spec)


def with_values(text: str, values: dict[str, Any]) -> str:
    changes = [Change(op="set", path=path, value=value) for path, value in values.items()]
    return patch(text, changes) if changes else text


@pytest.mark.parametrize(
    ("machine", "architecture", "expected", "reason"),
    [
        (NATIVE, "qwen2.5-0.5b", "bfloat16", "AVX-512 BF16"),
        (PLAIN, "qwen2.5-0.5b", "float32", "no instructions for bfloat16"),
        (NATIVE, "tiny-qwen3", "float32", "on a CPU"),
    ],
)
def test_a_large_model_learns_in_bfloat16_where_the_processor_multiplies_it(
    machine: Processor,
    architecture: str,
    expected: str,
    reason: str,
    small: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on(monkeypatch, machine)

    plan = plan_of(small, **{"nodes.actor.model.architecture": architecture})

    decided = next(one for one in plan.decisions if one.path == f"{TRAINING}.dtype")
    assert decided.value == expected
    assert reason in decided.reason
    [actor] = [one for one in plan.weights if one.name == "actor"]
    assert (actor.dtypes.rest, actor.dtypes.compute, actor.dtypes.engine) == (
        "float32",
        expected,
        expected,
    )


def test_what_the_loop_says_is_not_decided(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, NATIVE)
    values = {"nodes.actor.model.architecture": "qwen2.5-0.5b", f"{TRAINING}.dtype": "float32"}

    plan = plan_of(small, **values)

    assert f"{TRAINING}.dtype" not in {one.path for one in plan.decisions}
    assert plan.weights[0].dtypes.compute == "float32"


def test_a_decided_precision_runs_as_one_that_is_spelled_out(
    small: str,
    runner: Run,
    equal: Callable[..., bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = runner(with_values(small, {f"{TRAINING}.dtype": "bfloat16"}))
    on(monkeypatch, NATIVE)
    monkeypatch.setattr(processor, "BFLOAT16_FROM_PARAMETERS", 0)

    decided = runner(small)

    assert said.state is decided.state is RunStateName.FINISHED
    assert equal(said.weights(), decided.weights())
    apart = decided.metrics("actor", "mismatch/max")
    assert apart
    assert max(apart) < 0.1  # of a log-prob near 5, at eight bits of mantissa and two layers
