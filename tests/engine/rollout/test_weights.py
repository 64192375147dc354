"""Loading weights into an engine: whole, checked by name and shape, and told by version."""

import copy
from collections.abc import Callable, Iterator
from typing import get_args

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import near
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.errors import BackendMissing, WeightsNotUpdated
from coloop.spec.rollout import Engine
from coloop.workers.fingerprint import fingerprint
from coloop.workers.rollout import ENGINES, Generation, TorchEngine, build_engine

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]
ALL = (
    "qwen3",
    "qwen3-wide-heads",
    "qwen2",
    "llama",
    "llama-bias",
    "llama-3-rope",
    "qwen2-yarn",
    "gpt2",
    "gemma2",
)


def changed(model: PreTrainedModel) -> dict[str, Tensor]:
    return {name: weight.detach() * 1.1 for name, weight in model.named_parameters()}


@pytest.mark.parametrize("family", ALL)
def test_the_engine_holds_every_bit_of_the_model(
    family: str, models: Models, tokenizer: PreTrainedTokenizerFast
) -> None:
    engine = TorchEngine(models(family), tokenizer)

    assert engine.fingerprint() == fingerprint(models(family).named_parameters())


@pytest.mark.parametrize("family", ALL)
def test_loaded_weights_are_those_that_score(
    family: str, models: Models, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]]
) -> None:
    engine = TorchEngine(models(family), tokenizer)
    before = engine.score(prompts)
    weights = changed(models(family))

    engine.load_weights(weights.items(), 9)

    assert engine.version == 9
    assert engine.fingerprint() == fingerprint(weights.items())
    assert engine.score(prompts) != before


def test_the_engine_keeps_its_weights_while_the_model_learns(
    models: Models, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]]
) -> None:
    model = copy.deepcopy(models("qwen3"))
    engine = TorchEngine(model, tokenizer)
    before = engine.score(prompts)

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)

    assert engine.score(prompts) == before


@pytest.mark.parametrize("family", ["qwen3", "gpt2"])
def test_missing_unknown_and_misshapen_weights_are_told(
    family: str, models: Models, tokenizer: PreTrainedTokenizerFast
) -> None:
    weights = dict(models(family).named_parameters())
    name = next(iter(weights))

    for given, reason in (
        ({k: v for k, v in weights.items() if k != name}, f"did not receive 1 .*{name}"),
        ({**weights, "lora.A": torch.zeros(2)}, r"received 1 \(lora\.A\) that its model does not"),
        ({**weights, name: torch.zeros(3, 3)}, f"{name} has shape"),
    ):
        engine = TorchEngine(models(family), tokenizer)
        with pytest.raises(WeightsNotUpdated, match=reason):
            engine.load_weights(given.items(), 1)


def test_after_half_a_load_the_engine_refuses_to_work_until_a_whole_one(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer)
    weights = list(models("qwen3").named_parameters())

    def breaks() -> Iterator[tuple[str, Tensor]]:
        yield from weights[:3]
        raise OSError("connection lost")

    with pytest.raises(OSError, match="connection lost"):
        engine.load_weights(breaks(), 1)
    with pytest.raises(WeightsNotUpdated, match="midway"):
        generate(engine, [ask([5])])
    with pytest.raises(WeightsNotUpdated, match="midway"):
        engine.score([[5, 6]])

    engine.load_weights(weights, 2)
    assert generate(engine, [ask([5])])[0].versions == ((0, 2),)


def test_half_precision_is_close_to_the_model_in_half_precision(
    models: Models, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]]
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer, dtype=torch.bfloat16)
    exact = TorchEngine(models("qwen3"), tokenizer).score(prompts)

    for half, full in zip(engine.score(prompts), exact, strict=True):
        # Each of 7 products of 2 layers and the head's leaves 8 bits; logits are below 10.
        assert half == near(full, terms=15, scale=10.0, dtype=torch.bfloat16)


def test_engines_are_built_by_name(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    engine = build_engine(
        "torch", models("qwen3"), tokenizer=tokenizer, max_num_seqs=None, device="cpu", version=1
    )

    assert generate(engine, [ask([5])])[0].versions == ((0, 1),)


@pytest.mark.parametrize("name", get_args(Engine))
def test_an_engine_that_cannot_run_yet_is_refused_by_name(
    name: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(ENGINES, name)
    with pytest.raises(BackendMissing, match=f"not yet runnable: rollout.engine {name}"):
        build_engine(name)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_gpu_writes_the_same_greedy_text_as_the_cpu(
    models: Models, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]], ask: Ask
) -> None:
    requests = [ask(p, max_new_tokens=24, temperature=0.0) for p in prompts]

    on_gpu = generate(TorchEngine(models("qwen3"), tokenizer, device="cuda"), requests)

    on_cpu = generate(TorchEngine(models("qwen3"), tokenizer), requests)
    assert [row.token_ids for row in on_gpu] == [row.token_ids for row in on_cpu]
