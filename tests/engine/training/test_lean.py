"""Blocks that learn as one function: the families' own numbers and gradients, and only where they
are meant."""

import copy
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, forward_terms, gradient_terms
from tests.engine.training.conftest import CONFIGS, tiny_model
from torch import Tensor
from transformers import PreTrainedModel, Qwen2Config

from coloop.spec.model import Lora
from coloop.workers.cpu import lean, lean_attention
from coloop.workers.cpu.lean import learn_lean
from coloop.workers.cpu.lean_block import BlockShape, BlockWeights, run_block
from coloop.workers.cpu.slabs import Slab, tokens_in
from coloop.workers.training.adapters import Adapter, add_adapter
from coloop.workers.training.forward import ForwardOptions, TokenModel

ROWS, TOKENS = 3, 11
FIELDS: dict[str, dict[str, Any]] = {
    "qwen3": {"num_attention_heads": 4, "num_key_value_heads": 2},
    "qwen2": {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4},
    "llama": {"num_attention_heads": 4, "num_key_value_heads": 4, "attention_bias": True},
    "mistral": {"sliding_window": 32},
}


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that rows of these tests have several."""
    monkeypatch.setattr(lean_attention, "STRETCH", 4)


@pytest.fixture
def blocks_run(monkeypatch: pytest.MonkeyPatch) -> list[torch.dtype]:
    """The type of each block that was run as one function."""
    run: list[torch.dtype] = []

    def watched(*given: Any) -> Tensor:
        run.append(given[-1])
        return run_block(*given)

    monkeypatch.setattr(lean, "run_block", watched)
    return run


def built(kind: str, **fields: Any) -> PreTrainedModel:
    """A tiny model of a family, its norms and biases away from one and zero."""
    if kind == "qwen2":
        CONFIGS.setdefault(kind, (Qwen2Config, {}))
    model = tiny_model(kind, **{**FIELDS[kind], **fields})
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:
                weight += 0.3 * torch.randn(weight.shape, generator=generator)
    return model


def token_ids() -> Tensor:
    return torch.randint(20, (ROWS, TOKENS), generator=torch.Generator().manual_seed(2))


def said(model: PreTrainedModel, *, half: bool = False) -> tuple[Tensor, list[Tensor]]:
    """Logits, and the gradients of their weighted sum."""
    model.zero_grad()
    weights = torch.randn(
        ROWS, TOKENS, model.config.vocab_size, generator=torch.Generator().manual_seed(3)
    )
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        logits = model(input_ids=token_ids(), use_cache=False).logits
    (logits * weights).sum().backward()
    return logits.detach(), [p.grad for p in model.parameters() if p.grad is not None]


def distance(found: list[Tensor], exact: list[Tensor]) -> float:
    """Of gradients from exact ones, each relative to its size."""
    pairs = zip(found, exact, strict=True)
    return sum(float((one - true).norm() / true.norm()) for one, true in pairs)


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "computed again"])
@pytest.mark.parametrize("kind", FIELDS)
def test_it_says_and_learns_what_the_family_wrote(
    kind: str, is_kept: bool, blocks_run: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_kept:
        monkeypatch.setattr(lean_attention, "SHARES_KEPT", ROWS * 4 * TOKENS * TOKENS - 1)
    model = built(kind)
    logits, gradients = said(copy.deepcopy(model).double())
    rough = copy.deepcopy(model)
    rough_logits, rough_gradients = said(rough, half=True)

    learn_lean(model)
    own_logits, own_gradients = said(model)
    half_logits, half_gradients = said(model, half=True)

    assert blocks_run == [torch.float32] * 2 + [torch.bfloat16] * 2
    assert_near(own_logits, logits, terms=forward_terms(model, TOKENS))
    terms, scale = gradient_terms(model, TOKENS, ROWS), max(float(g.abs().max()) for g in gradients)
    for found, expected in zip(own_gradients, gradients, strict=True):
        assert_near(found, expected, terms=terms, scale=scale)
    # Half precision is as near to the truth as the family's own half precision.
    assert (half_logits - logits).norm() <= 2 * (rough_logits - logits).norm()
    assert distance(half_gradients, gradients) <= 2 * distance(rough_gradients, gradients)


@pytest.mark.parametrize("kind", FIELDS)
def test_a_text_alone_is_read_as_one_among_others(kind: str) -> None:
    """Also where every head has keys of its own, as in `llama` here."""
    model, ids = built(kind), token_ids()
    learn_lean(model)

    alone = model(input_ids=ids[:1], use_cache=False).logits

    together = model(input_ids=ids, use_cache=False).logits[:1]
    assert_near(alone, together, terms=forward_terms(model, TOKENS))


@pytest.mark.parametrize("places", [1, 2, 9, 15, 16, 31, 32, 63, 64])
def test_shares_of_any_width_are_those_of_the_exact_scores(places: int) -> None:
    """Those of few places are computed by single operations; some see only their first place."""
    generator = torch.Generator().manual_seed(places)
    scores = (torch.randn(5, 3, places, generator=generator) * 4).bfloat16()
    scores[:, 0, 1:] = -torch.inf
    into = torch.randn(5, 3, places, generator=generator).bfloat16()
    exact = torch.softmax(scores.double(), -1)
    near = {"atol": 1e-4, "rtol": torch.finfo(torch.bfloat16).eps}

    shares = lean_attention._softmax(scores)

    assert shares.dtype == torch.bfloat16
    torch.testing.assert_close(shares.double(), exact, **near)
    assert not shares[:, 0, 1:].any()
    found = lean_attention._softmax_backward(into, shares)
    held = shares.double()
    product = held * into.double()
    expected = product - held * product.sum(-1, keepdim=True)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), expected, **near)


SLABS = (
    Slab(runs=2, tokens=3),
    Slab(
        runs=3,
        tokens=6,
        behind=0,
        before=3,
        sees=torch.tensor([1, 0, 1]),
        unseen=torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, -torch.inf], [0.0, 0.0, 0.0]]),
    ),
    Slab(runs=1, tokens=1, behind=0, before=3, sees=torch.tensor([1])),
)
"""Six tokens before others, 19 behind them; the first run is shorter by one."""


@pytest.mark.parametrize("slabs", [None, SLABS], ids=["rows", "slabs"])
@pytest.mark.parametrize("has_norms", [True, False], ids=["head norms", "biases"])
def test_its_gradient_is_that_of_its_numbers(has_norms: bool, slabs: Any) -> None:
    shape = BlockShape(heads=4, kv_heads=2, head_width=4, epsilon=1e-6, scale=0.4)
    generator = torch.Generator().manual_seed(4)

    def drawn(*size: int) -> Tensor:
        return torch.randn(size, generator=generator, dtype=torch.float64).requires_grad_()

    rows, tokens = (2, 6) if slabs is None else (1, tokens_in(slabs))
    whole = slabs or (Slab(runs=rows, tokens=tokens),)
    turned = torch.rand(1, tokens, 2, generator=generator, dtype=torch.float64)
    turns = torch.polar(torch.ones_like(turned), turned)
    weights = BlockWeights(
        norm_in=drawn(6),
        query=drawn(16, 6),
        key=drawn(8, 6),
        value=drawn(8, 6),
        output=drawn(6, 16),
        norm_out=drawn(6),
        gate=drawn(5, 6),
        up=drawn(5, 6),
        down=drawn(6, 5),
        query_norm=drawn(4) if has_norms else None,
        key_norm=drawn(4) if has_norms else None,
        query_bias=None if has_norms else drawn(16),
        key_bias=None if has_norms else drawn(8),
        value_bias=None if has_norms else drawn(8),
        output_bias=None if has_norms else drawn(6),
    )

    def block(hidden: Tensor, *given: Tensor | None) -> Tensor:
        return run_block(hidden, turns, whole, BlockWeights(*given), shape, torch.float64)

    assert torch.autograd.gradcheck(block, (drawn(rows, tokens, 6), *weights), fast_mode=True)


@pytest.mark.parametrize("why", ["mask", "cache", "float64", "attention"])
def test_a_pass_that_is_not_plain_is_the_familys(why: str, blocks_run: list[Any]) -> None:
    model = built("qwen3")
    if why == "float64":
        model.double()
    if why == "attention":
        model.set_attn_implementation("eager")
    given: dict[str, Any] = {"input_ids": token_ids(), "use_cache": why == "cache"}
    if why == "mask":
        given["attention_mask"] = torch.ones(ROWS, TOKENS).tril(-1)
    expected = model(**given).logits

    learn_lean(model)

    assert torch.equal(model(**given).logits, expected)
    assert blocks_run == []


@pytest.mark.parametrize("why", ["adapters", "dropout", "another family"])
def test_a_block_that_is_not_plain_stays_as_it_is(why: str, blocks_run: list[Any]) -> None:
    if why == "another family":
        model = tiny_model("gemma2")
    else:
        model = built("qwen3", attention_dropout=0.1 if why == "dropout" else 0.0)
    if why == "adapters":
        pytest.importorskip("peft")
        learn_lean(model)  # a copy of a model that others read gets one
        model = copy.deepcopy(model)
        add_adapter(model, Adapter(lora=Lora(rank=2), seed=0))

    TokenModel(model)
    model(input_ids=token_ids(), use_cache=False)

    assert blocks_run == []


def test_weights_stay_the_models_own(blocks_run: list[Any]) -> None:
    plain = built("qwen3")
    model = copy.deepcopy(plain)
    TokenModel(model, ForwardOptions())
    twin = copy.deepcopy(model)
    for weight in twin.model.layers[1].parameters():
        torch.nn.init.zeros_(weight.data)
        weight.requires_grad_(False)

    logits, gradients = said(model)
    twin_logits, twin_gradients = said(twin)

    assert list(model.state_dict()) == list(plain.state_dict())
    assert not torch.equal(logits, twin_logits), "a copy computes with the weights of the first"
    assert len(twin_gradients) == len(gradients) - len(list(twin.model.layers[1].parameters()))
    assert len(blocks_run) == 2 * 2 + 2 + 2  # what `TokenModel` tries twice, and each of both
