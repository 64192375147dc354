"""Every loop for this machine is built as one GPU would have it, on the CPU: what a GPU decides
otherwise is decided so here."""

from typing import Any

import pytest
import torch

from coloop.plan.compile import compile_plan
from coloop.plan.types import Plan
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, patch
from coloop.workers.initial_weights import Home, InitialWeights
from coloop.workers.trainer import Trainer
from coloop.workers.training import forward, single
from coloop.workers.training.packing import ATTENTION

LOOPS = presets.presets_root() / "loops"
SCRATCH = {"type": "scratch", "architecture": "tiny-qwen3"}


def spec_of(text: str) -> LoopSpec:
    parsed = parse(text)
    assert parsed.spec is not None, [found.describe() for found in parsed.diagnostics]
    return parsed.spec


NAMES = [
    loop.name
    for loop in presets.list_loops()
    if spec_of(presets.load_loop_text(loop.name)).hardware.preset == "cpu"
]


def on_one_gpu(name: str) -> LoopSpec:
    """A loop on one GPU; what begins with a run, of which there is none, begins at random."""
    text = presets.load_loop_text(name)
    changes = [Change(op="set", path="hardware.preset", value="1xH100")]
    changes += [
        Change(op="set", path=f"nodes.{node}.model", value=SCRATCH)
        for node, section in spec_of(text).nodes.items()
        if getattr(getattr(section, "model", None), "type", None) == "run"
    ]
    return spec_of(patch(text, changes))


def built(spec: LoopSpec, plan: Plan) -> dict[str, Home]:
    """The homes of all pools."""
    plans = {one.name: one for one in plan.weights}
    here = InitialWeights(spec=spec, plans=plans, root=LOOPS, seed=0)
    return {group: home for pool in plan.pools for group, home in here.homes(pool.name).items()}


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed rows go to the kernel of variable length, and no block computes in a processor's
    own way."""

    def packing_on(device: torch.device, *, is_packed: bool) -> forward.Packing:
        del device
        return "varlen" if is_packed else "none"

    monkeypatch.setattr(single, "packing_on", packing_on)
    monkeypatch.setattr(forward, "learn_lean", lambda model: [])
    monkeypatch.setattr(forward, "attend_by_products", lambda *arguments: None)


@pytest.mark.sample(5)
@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("name", NAMES)
def test_every_loop_for_this_machine_is_built_on_one_gpu_and_packed(name: str) -> None:
    spec = on_one_gpu(name)
    plan = compile_plan(spec)

    homes = built(spec, plan)

    assert homes.keys() == {one.name for one in plan.weights}
    learners: dict[str, Any] = {
        group: home.backend for group, home in homes.items() if isinstance(home, Trainer)
    }
    assert learners.keys() == {one.name for one in plan.weights if one.trains}
    for backend in learners.values():
        assert backend._tokens.options.packing == "varlen"
        assert backend._tokens.model.config._attn_implementation == ATTENTION
