"""What only a GPU can show of an update: the kernel of packed rows, and a copied learner."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import PreTrainedModel

from coloop.algorithms.batch import Batch, collate
from coloop.models import LoadedModel
from coloop.models.build import copy_model
from coloop.workers.training.forward import ForwardOptions, TokenModel

Build = Callable[..., PreTrainedModel]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
HELD = {"autocast": (torch.float32, torch.bfloat16), "bfloat16": (torch.bfloat16, None)}


@pytest.mark.parametrize("held", HELD)
def test_packed_rows_equal_padded_ones_and_run_in_the_kernel(
    held: str, build_model: Build, make_load: Callable[..., Any]
) -> None:
    kept, autocast = HELD[held]
    batch: Batch = collate(make_load("grpo", size=9, seed=3).rows).to("cuda")
    model = build_model("llama").to("cuda", kept)
    padded = TokenModel(copy.deepcopy(model), ForwardOptions(autocast=autocast))
    packed = TokenModel(model, ForwardOptions(autocast=autocast, packing="varlen"))

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        found = packed.outputs(batch).log_probs
        found.sum().backward()
    expected = padded.outputs(batch).log_probs
    expected.sum().backward()

    assert any("flash" in event.key.lower() for event in seen.key_averages())
    assert float((found - expected).detach().abs().max()) < 0.05
    for ours, theirs in zip(packed.model.parameters(), padded.model.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        apart = (ours.grad - theirs.grad).float().norm()
        assert float(apart) <= 0.05 * float(theirs.grad.float().norm()) + 1e-3


def test_a_copy_of_a_packed_learner_is_packed_as_well(build_model: Build) -> None:
    options = ForwardOptions(autocast=torch.bfloat16, packing="varlen")
    first = TokenModel(build_model("qwen3").to("cuda"), options)

    TokenModel(copy_model(LoadedModel(model=first.model, tokenizer=None)).model, options)
