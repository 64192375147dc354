"""Who decides that texts share rows, and why: the loop where it says so, else the resolver."""

import pytest
from tests.engine.smallest import GRPO

from coloop.plan.compile import compile_plan
from coloop.spec.io import parse

PATH = "nodes.actor.training.packing"
CPU, GPU = "hardware: {preset: cpu}", "hardware: {preset: 1xH100}"


def planned(architecture: str, hardware: str, more: str = "") -> tuple[bool, str | None]:
    """Whether the plan packs, and its reason where the loop leaves it open.

    Args:
        more: fields of `training`.
    """
    text = GRPO.replace(CPU, hardware).replace("tiny-qwen3", architecture)
    spec = parse(text.replace("lr: 1.0e-4}}", f"lr: 1.0e-4}}{more}}}")).spec
    assert spec is not None
    plan = compile_plan(spec)
    [weights] = [one for one in plan.weights if one.name == "actor"]
    assert weights.update is not None
    told = {one.path: one for one in plan.decisions}
    if PATH not in told:
        return weights.update.packing, None
    assert told[PATH].value == weights.update.packing
    return weights.update.packing, told[PATH].reason


@pytest.mark.parametrize(
    ("architecture", "hardware", "is_packed", "why"),
    [
        ("tiny-qwen3", CPU, False, "a mask over several"),
        ("qwen3-0.6b", GPU, True, "no token is padding"),
        ("llama-3.2-1b", GPU, True, "no token is padding"),
        ("gemma-2-2b", GPU, False, "of this family"),
    ],
)
def test_the_resolver_says_whether_and_why(
    architecture: str, hardware: str, is_packed: bool, why: str
) -> None:
    found, reason = planned(architecture, hardware)

    assert found is is_packed
    assert why in str(reason)


def test_a_kernel_of_sixteen_bits_is_not_asked_for_more() -> None:
    found, reason = planned("qwen3-0.6b", GPU, ", dtype: float32")

    assert found is False
    assert "16 bits" in str(reason)


@pytest.mark.parametrize(("hardware", "packing"), [(CPU, "true"), (GPU, "false")])
def test_what_the_loop_says_is_obeyed(hardware: str, packing: str) -> None:
    found = planned("qwen3-0.6b", hardware, f", packing: {packing}")

    assert found == (packing == "true", None)
