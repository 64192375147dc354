"""Dropout: on while texts are learned, off while anything is compared with other log-probs."""

from typing import Any

import pytest
import torch
from tests.engine.models.architectures import make_model

from coloop.spec.training import Training
from coloop.workers.training.forward import recompute_blocks
from coloop.workers.training.learner import Dropout, drops

SHARES: dict[str, dict[str, Any]] = {
    "gpt2": {"attn_pdrop": 0.3, "embd_pdrop": 0.3, "resid_pdrop": 0.3},
    "phi": {"attention_dropout": 0.3, "resid_pdrop": 0.3, "embd_pdrop": 0.3},
    "starcoder2": {"attention_dropout": 0.3, "residual_dropout": 0.3, "embedding_dropout": 0.3},
    "opt": {"dropout": 0.3, "attention_dropout": 0.3, "word_embed_proj_dim": 64, "ffn_dim": 96},
    "falcon": {"attention_dropout": 0.3, "hidden_dropout": 0.3},
    "mixtral": {"attention_dropout": 0.3, "router_jitter_noise": 0.3},
}


@pytest.mark.parametrize("is_recomputed", [False, True])
@pytest.mark.parametrize("kind", SHARES)
def test_a_model_that_learns_without_dropout_says_what_it_says_when_it_reads(
    kind: str, is_recomputed: bool
) -> None:
    model = make_model(kind, **SHARES[kind])
    if is_recomputed:
        recompute_blocks(model, Training(gradient_checkpointing=True))
    ids = torch.arange(12)[None, :]
    dropout = Dropout(model)

    def said(seed: int = 0) -> torch.Tensor:
        torch.manual_seed(seed)
        found: torch.Tensor = model(input_ids=ids, use_cache=False).logits
        return found

    read = said().detach()
    dropout.set("learns")
    learned = said()
    learned.sum().backward()
    dropout.set("drops")
    dropped, again = said().detach(), said(1).detach()
    dropout.set("reads")

    assert torch.equal(learned, read)
    assert not torch.equal(dropped, read)
    assert not torch.equal(dropped, again)
    assert torch.equal(said().detach(), read)
    assert not any(module.training for module in model.modules())


@pytest.mark.parametrize(
    ("port", "setting", "expected"),
    [
        ("demonstrations", None, True),
        ("rewards", None, False),
        ("pairs", None, False),
        ("returns", None, False),
        ("labels", None, False),
        ("rewards", True, True),
        ("demonstrations", False, False),
    ],
)
def test_only_texts_are_learned_with_dropout_unless_the_loop_says_so(
    port: str, setting: bool | None, expected: bool
) -> None:
    assert drops(port, Training(dropout=setting)) is expected
