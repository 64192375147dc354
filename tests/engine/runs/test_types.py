"""Half precision: what is built is what was decided and priced, and equal weights give equal
numbers in whatever role they stand."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import nn

from coloop.models.build import DTYPES
from coloop.plan.compile import compile_plan
from coloop.plan.unrolled import Unrolled
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.io import parse
from coloop.workers.initial_weights import Home
from coloop.workers.rollout_generator import RolloutGenerator
from coloop.workers.worker import Worker

Run = Callable[..., Any]
Text = Callable[..., str]

HALF = {"dtype": "bfloat16", "optimizer": {"name": "adamw", "lr": 1.0e-3}}
EXACT = 1e-6
"""Of numbers that are computed twice in the same way."""


@dataclass
class Built:
    """The homes of a run's hosts."""

    homes: dict[str, Home] = field(default_factory=dict)
    """By weights group."""
    engines: dict[tuple[str, str], RolloutGenerator] = field(default_factory=dict)
    """By weights group and pool."""


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Built:
    found = Built()
    build = Worker.build

    def watched(host: Worker) -> None:
        build(host)
        found.homes.update(host._homes)
        pool = host._settings.pool
        found.engines.update({(group, pool): one for group, one in host._engines.items()})

    monkeypatch.setattr(Worker, "build", watched)
    return found


@pytest.mark.sample(1)
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


APART = {
    "hardware.pools": {"write": {"workers": 1}, "score": {"workers": 1}, "train": {"workers": 1}},
    "nodes.actor.pool": "train",
    "nodes.actor.rollout.pool": "write",
    "nodes.start.pool": "score",
}
"""Trainer, engine and frozen copy in three pools, the trainer's is built last."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("pools", [{}, APART], ids=["one pool", "three pools"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_hosts_build_what_was_decided_and_priced(
    dtype: str, pools: dict[str, Any], runner: Run, tiny: Text, built: Built
) -> None:
    rollout = {"completions_per_prompt": 4, "max_new_tokens": 6}
    values = {"nodes.actor.training": {**HALF, "dtype": dtype}, "nodes.actor.rollout": rollout}
    text = tiny("grpo-arithmetic", values | pools)
    spec = parse(text).spec
    assert spec is not None
    survey = Unrolled(spec).settings().survey
    plan = compile_plan(spec)
    priced, planned = survey.weights, {weights.name: weights for weights in plan.weights}

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert built.homes.keys() == priced.keys() == planned.keys() == {"actor", "start"}
    for name, home in built.homes.items():
        decided, weights = planned[name].dtypes, priced[name]
        assert (planned[name].pool, home.weights.dtypes) == (weights.pool.name, decided)
        model: nn.Module = home.weights.loaded.model
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
    [engine] = survey.engines
    assert set(built.engines) == {("actor", engine.pool.name)}
    written = built.engines["actor", engine.pool.name].dtype
    assert written == DTYPES[planned["actor"].dtypes.engine]
    assert priced["actor"].precision.engine_bytes == torch.finfo(written).bits // 8
