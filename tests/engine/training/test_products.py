"""Attention by products: the same numbers as torch's kernel, and only where it is meant."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen3Config

from coloop.workers.cpu import lean_attention
from coloop.workers.cpu.lean_attention import ATTENTION, attend_in_two_products
from coloop.workers.training.forward import ForwardOptions, TokenModel

HALF = 2.0**-8
"""Rounding of bfloat16, relative."""


class Layer(nn.Module):
    """What a layer of attention says of itself."""

    is_causal = True
    num_key_value_groups = 2


def texts(rows: int, tokens: int, dtype: torch.dtype) -> list[Tensor]:
    """Query of 4 heads, key and value of 2, leaves of a graph."""
    generator = torch.Generator().manual_seed(tokens)
    return [
        torch.randn(rows, heads, tokens, 8, generator=generator).to(dtype).requires_grad_()
        for heads in (4, 2, 2)
    ]


def exact(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention in float64, (B, T, H, D)."""
    parts = (part.double() for part in (query, key, value))
    mixed = scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)
    return mixed.transpose(1, 2)


@pytest.mark.parametrize(("rows", "tokens"), [(1, 1), (3, 7), (2, 33)])
def test_it_is_attention_and_so_is_its_gradient(rows: int, tokens: int) -> None:
    given = texts(rows, tokens, torch.bfloat16)
    wide = [part.detach().double().requires_grad_() for part in given]

    mixed, _ = attend_in_two_products(Layer(), *given, None)
    expected = exact(*wide)
    mixed.sum().backward()
    expected.sum().backward()

    # Each number is a mean of at most T values of size 4, its gradient a sum over T of them.
    assert (mixed.double() - expected).abs().max() <= 4 * 4 * HALF
    for half, full in zip(given, wide, strict=True):
        assert half.grad is not None
        assert full.grad is not None
        scale = max(float(full.grad.abs().max()), 1.0)
        assert (half.grad.double() - full.grad).abs().max() <= 8 * HALF * scale


@pytest.mark.parametrize("why", ["mask", "dropout", "float32", "too many shares"])
def test_whatever_is_not_meant_goes_to_the_kernel(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def kernel(*given: Any, **named: Any) -> str:
        called.append(why)
        return "kernel"

    monkeypatch.setattr(lean_attention, "sdpa_attention_forward", kernel)
    given = texts(2, 5, torch.float32 if why == "float32" else torch.bfloat16)
    if why == "too many shares":
        monkeypatch.setattr(lean_attention, "SHARES_AT_ONCE", 2 * 4 * 5 * 5 - 1)
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool) if why == "mask" else None

    attend_in_two_products(Layer(), *given, mask, dropout=0.1 if why == "dropout" else 0.0)

    assert called == [why]


def model(**fields: Any) -> PreTrainedModel:
    config = Qwen3Config(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
        **fields,
    )
    torch.manual_seed(0)
    built: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    return built


@pytest.mark.parametrize(("autocast", "expected"), [(None, "sdpa"), (torch.bfloat16, ATTENTION)])
def test_a_model_attends_so_where_it_computes_in_bfloat16(
    autocast: torch.dtype | None, expected: str
) -> None:
    tokens = TokenModel(model(), ForwardOptions(autocast=autocast))

    assert tokens.model.config._attn_implementation == expected  # type: ignore[union-attr]


def test_blocks_of_several_functions_take_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.dtype] = []
    inner = lean_attention._by_products

    def watched(query: Tensor, *others: Any) -> Tensor:
        seen.append(query.dtype)
        return inner(query, *others)

    monkeypatch.setattr(lean_attention, "_by_products", watched)
    one = model(attention_dropout=0.1).eval()  # a family's own block: `lean` knows no dropout
    net = TokenModel(one, ForwardOptions(autocast=torch.bfloat16))
    with net._precision():
        net.model(input_ids=torch.arange(12)[None], use_cache=False).logits.sum().backward()

    assert set(seen) == {torch.bfloat16}
