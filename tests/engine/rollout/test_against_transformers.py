"""What the engine writes and scores is what the Hugging Face model would."""

from collections.abc import Callable

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerFast

from coloop.workers.rollout import Generation, TorchEngine

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]

LOGITS = 10.0
"""Greatest logit of these models."""

LEAN = (
    "qwen3",
    "qwen3-wide-heads",
    "qwen2",
    "llama",
    "llama-bias",
    "llama-3-rope",
    "qwen2-yarn",
)
FOREIGN = ("mistral-window", "gemma2", "gpt2")


@pytest.mark.sample(5)
@pytest.mark.parametrize("family", [*LEAN, *FOREIGN])
def test_greedy_text_equals_generate_token_for_token(
    family: str,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    ask: Ask,
    written_by_transformers: Callable[..., list[list[int]]],
) -> None:
    engine = TorchEngine(models(family), tokenizer)

    written = generate(engine, [ask(p, max_new_tokens=24, temperature=0.0) for p in prompts])

    expected = written_by_transformers(models(family), prompts, 24)
    assert [row.token_ids for row in written] == expected
    assert engine.is_lean is (family in LEAN)


@pytest.mark.sample(3)
@pytest.mark.parametrize("family", [*LEAN, *FOREIGN])
def test_log_probs_of_samples_equal_a_full_forward(
    family: str,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    ask: Ask,
    scored_by_forward: Callable[..., list[float]],
) -> None:
    model = models(family)
    requests = [ask(p, seed=i, max_new_tokens=20) for i, p in enumerate(prompts)]

    for row, request in zip(
        generate(TorchEngine(model, tokenizer), requests), requests, strict=True
    ):
        expected = scored_by_forward(model, list(request.prompt_ids), row.token_ids)
        assert row.log_probs == near(expected, terms=forward_terms(model, 40), scale=LOGITS)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_log_probs_are_those_at_the_sampling_temperature(
    temperature: float,
    models: Models,
    engine: TorchEngine,
    prompts: list[list[int]],
    ask: Ask,
    scored_by_forward: Callable[..., list[float]],
) -> None:
    written = generate(engine, [ask(p, temperature=temperature) for p in prompts])

    for row, prompt in zip(written, prompts, strict=True):
        expected = scored_by_forward(models("qwen3"), prompt, row.token_ids, temperature)
        terms = forward_terms(models("qwen3"), 40)
        assert row.log_probs == near(expected, terms=terms, scale=LOGITS)


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", ["qwen3", "llama-3-rope", "gpt2"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_scores_equal_a_full_forward_of_each_sequence(
    family: str,
    temperature: float,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    scored_by_forward: Callable[..., list[float]],
) -> None:
    scored = TorchEngine(models(family), tokenizer).score(prompts, temperature)

    for values, ids in zip(scored, prompts, strict=True):
        expected = scored_by_forward(models(family), ids[:1], ids[1:], temperature)
        terms = forward_terms(models(family), 40)
        assert values == near([0.0, *expected], terms=terms, scale=LOGITS)


def test_log_probs_stay_with_those_of_the_forward_over_a_long_text(
    models: Models,
    engine: TorchEngine,
    ask: Ask,
    scored_by_forward: Callable[..., list[float]],
) -> None:
    prompt = [5, 6, 7]

    row = generate(engine, [ask(prompt, max_new_tokens=120, seed=4)])[0]

    assert len(row.token_ids) > 60
    expected = scored_by_forward(models("qwen3"), prompt, row.token_ids)
    terms = forward_terms(models("qwen3"), 123)
    assert row.log_probs == near(expected, terms=terms, scale=LOGITS)


@pytest.mark.sample(1)
@pytest.mark.parametrize("stop", ["0", "ab", "é\n"])
def test_stop_texts_end_where_generate_ends(
    stop: str,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    ask: Ask,
    written_by_transformers: Callable[..., list[list[int]]],
) -> None:
    model = models("qwen3")
    engine = TorchEngine(model, tokenizer)
    plain = generate(engine, [ask(p, max_new_tokens=24, temperature=0.0) for p in prompts])
    if stop != "é\n":  # a text that greedy rows do write: two characters out of the middle of one
        written = tokenizer.decode(max((row.token_ids for row in plain), key=len))
        stop = written[6 : 6 + len(stop)]

    rows = generate(
        engine, [ask(p, max_new_tokens=24, temperature=0.0, stop=(stop,)) for p in prompts]
    )

    for prompt, row in zip(prompts, rows, strict=True):
        expected = written_by_transformers(_with_tokenizer(model, tokenizer, stop), [prompt], 24)
        assert row.token_ids == expected[0]


def _with_tokenizer(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, stop: str
) -> PreTrainedModel:
    """The model with a `generate` that knows stop texts."""

    class Stopping:
        def generate(
            self,
            ids: torch.Tensor,
            attention_mask: torch.Tensor,
            generation_config: GenerationConfig,
        ) -> torch.Tensor:
            generation_config.stop_strings = [stop]
            return model.generate(
                ids,
                attention_mask=attention_mask,
                generation_config=generation_config,
                tokenizer=tokenizer,
            )

    return Stopping()  # type: ignore[return-value]
