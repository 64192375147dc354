"""Long texts are written with matrices in the processor's own order: the same texts as without, by
the weights of the moment, and whatever was written before."""

from collections.abc import Callable

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import assert_near, forward_terms, near
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.workers.cpu.lean_weights import (
    WORTH_TOKENS,
    LeanWeights,
    added,
    can_pack,
    packed,
    product,
    shape_of,
)
from coloop.workers.rollout import Generation, TorchEngine

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]
LONG, SHORT = WORTH_TOKENS + 4, WORTH_TOKENS // 4
TYPES = [torch.float32, torch.bfloat16]


def write(engine: TorchEngine, ask: Ask, prompts: list[list[int]], tokens: int) -> list[Generation]:
    return generate(engine, [ask(p, seed=i, max_new_tokens=tokens) for i, p in enumerate(prompts)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("family", ["qwen3", "llama-bias"])
def test_products_are_those_of_the_matrices_as_they_are(
    family: str, dtype: torch.dtype, models: Models
) -> None:
    shape = shape_of(models(family).config)
    assert shape is not None
    weights = LeanWeights(shape, torch.device("cpu"), dtype)
    weights.load(models(family).named_parameters())
    if not can_pack(weights):
        pytest.skip(f"this processor has no order of its own for {dtype}")
    found = packed(weights)
    x = torch.randn(5, shape.width, dtype=dtype)

    inner = torch.randn(5, shape.inner, dtype=dtype)
    terms = shape.inner if dtype == torch.float32 else 4  # what is added up is added in float32

    for plain, own in zip(weights.layers, found.layers, strict=True):
        expected = product(x, plain.qkv, plain.qkv_bias)
        assert_near(product(x, own.qkv, own.qkv_bias), expected, terms=terms, dtype=dtype)
        expected = added(x, inner, plain.down)
        assert_near(added(x, inner, own.down), expected, terms=terms, dtype=dtype)


@pytest.mark.parametrize("family", ["qwen3", "llama-bias", "qwen2"])
def test_log_probs_of_long_texts_equal_a_full_forward(
    family: str,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    ask: Ask,
    scored_by_forward: Callable[..., list[float]],
) -> None:
    model = models(family)

    for row, prompt in zip(
        write(TorchEngine(model, tokenizer), ask, prompts, LONG), prompts, strict=True
    ):
        expected = scored_by_forward(model, prompt, row.token_ids)
        assert row.log_probs == near(expected, terms=forward_terms(model, 64), scale=10.0)


@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_written_does_not_depend_on_what_was_written_before(
    dtype: torch.dtype,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    ask: Ask,
) -> None:
    def fresh() -> TorchEngine:
        return TorchEngine(models("qwen3"), tokenizer, dtype=dtype)

    long, short = write(fresh(), ask, prompts, LONG), write(fresh(), ask, prompts, SHORT)
    engine = fresh()
    scored = engine.score(prompts)

    assert write(engine, ask, prompts, LONG) == long
    assert engine.score(prompts) == scored
    assert write(engine, ask, prompts, SHORT) == short
    engine.sleep()
    engine.wake()
    assert write(engine, ask, prompts, LONG) == long


@pytest.mark.parametrize("dtype", TYPES)
def test_long_texts_are_written_by_the_newest_weights(
    dtype: torch.dtype,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    ask: Ask,
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer, dtype=dtype)
    before = write(engine, ask, prompts, LONG)
    moved = {name: weight * 1.5 for name, weight in models("qwen3").named_parameters()}

    engine.load_weights(moved.items(), 1)

    after = write(engine, ask, prompts, LONG)
    other = TorchEngine(models("qwen3"), tokenizer, dtype=dtype)
    other.load_weights(moved.items(), 1)
    assert after == write(other, ask, prompts, LONG)
    assert [row.token_ids for row in after] != [row.token_ids for row in before]


def test_half_precision_is_as_near_to_the_model_as_the_family_itself(
    models: Models, tokenizer: PreTrainedTokenizerFast
) -> None:
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(3, 128, (16, 48), generator=generator)
    model = models("qwen3")
    exact = TorchEngine(model, tokenizer).score(tokens.tolist())
    ours = TorchEngine(model, tokenizer, dtype=torch.bfloat16).score(tokens.tolist())
    half = type(model)(model.config).to(torch.bfloat16).eval()
    half.load_state_dict(model.state_dict())
    with torch.inference_mode():
        log_p = half(input_ids=tokens).logits.float().log_softmax(-1)[:, :-1]
    theirs = torch.nn.functional.pad(log_p.gather(2, tokens[:, 1:, None]).squeeze(2), (1, 0))

    def error(found: object) -> float:
        return float((torch.as_tensor(found) - torch.tensor(exact)).square().mean().sqrt())

    assert error(ours) < 1.25 * error(theirs)
