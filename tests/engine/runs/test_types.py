"""Half precision: what is built is what was decided and priced, and equal weights give equal
numbers in whatever role they stand."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from coloop.estimate.survey import Survey
from coloop.events import RunStateName
from coloop.hosts.holder import Holder, build_holder
from coloop.models import DTYPES
from coloop.plan.compile import compile_plan
from coloop.roles import host as hosts
from coloop.spec.io import parse

Run = Callable[..., Any]
Text = Callable[..., str]

HALF = {"dtype": "bfloat16", "optimizer": {"name": "adamw", "lr": 1.0e-3}}
EXACT = 1e-6
"""Of numbers that are computed twice in the same way."""


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> dict[str, Holder]:
    """The holders of a run, by weights group."""
    found: dict[str, Holder] = {}

    def build(*arguments: Any, **options: Any) -> Holder:
        holder = build_holder(*arguments, **options)
        found[holder.name] = holder
        return holder

    monkeypatch.setattr(hosts, "build_holder", build)
    return found


@pytest.mark.parametrize("order", ["actor first", "reference first"])
def test_kl_at_the_start_is_zero_and_the_first_ratio_one(
    order: str, runner: Run, tiny: Text
) -> None:
    values = {"nodes.actor.training": HALF, "nodes.probe.every": 100}
    text = tiny("grpo-arithmetic", values)
    if order == "reference first":
        [line] = [one for one in text.splitlines() if one.strip().startswith("start:")]
        text = text.replace(line + "\n", "").replace("nodes:\n", f"nodes:\n{line}\n")

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    kl = ended.metrics("actor", "kl")
    assert abs(kl[0]) < EXACT
    assert kl[1] > EXACT


def test_the_first_loss_of_spin_is_ln_2_in_half_precision(runner: Run, tiny: Text) -> None:
    training = {"dtype": "bfloat16", "optimizer": {"name": "rmsprop", "lr": 1.0e-3}}

    ended = runner(tiny("spin", {"nodes.policy.training": training}))

    begins = [e["step"] + 1 for e in ended.of("phase", phase="train", state="started")]
    losses = {
        event["step"]: event["metrics"]["loss"]
        for event in ended.of("metrics", node="policy")
        if "loss" in event["metrics"]
    }
    assert [losses[step] for step in begins] == pytest.approx([math.log(2)] * 2, abs=EXACT)
    assert all(abs(losses[step + 1] - math.log(2)) > EXACT for step in begins)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_hosts_build_what_was_decided_and_priced(
    dtype: str, runner: Run, tiny: Text, built: dict[str, Holder]
) -> None:
    text = tiny("grpo-arithmetic", {"nodes.actor.training": {**HALF, "dtype": dtype}})
    spec = parse(text).spec
    assert spec is not None
    priced = Survey(spec).weights
    planned = {weights.name: weights.dtypes for weights in compile_plan(spec).weights}

    runner(text)

    assert built.keys() == priced.keys() == planned.keys() == {"actor", "start"}
    for name, holder in built.items():
        decided, weights = planned[name], priced[name]
        assert holder.dtypes == decided
        model: nn.Module = holder.loaded.model
        tied = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
        for layer in model.modules():
            for weight in layer.parameters(recurse=False):
                is_matrix = isinstance(layer, nn.Linear) and id(weight) not in tied
                held = decided.matrices if is_matrix else decided.rest
                assert weight.dtype == DTYPES[held]
        size = sum(weight.nbytes for weight in model.parameters())
        expected = weights.states.weights
        assert size == pytest.approx(expected, rel=0.02)  # norms are priced as matrices
        assert weights.precision.compute_bytes == torch.finfo(DTYPES[decided.compute]).bits // 8
    engine = built["actor"].engine()
    assert engine.dtype == DTYPES[planned["actor"].engine]
    assert priced["actor"].precision.engine_bytes == torch.finfo(engine.dtype).bits // 8
