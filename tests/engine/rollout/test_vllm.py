"""What vLLM does with what it is handed, beyond the contract of every engine."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near
from tests.engine.rollout.conftest import build
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.errors import BackendMissing
from coloop.workers.rollout import Generation, TorchEngine, vllm_engine
from coloop.workers.rollout.vllm_engine import VllmEngine
from coloop.workers.sync import (
    ChecksumVerifier,
    checksum_of_engine,
    checksum_of_model,
)

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]

LOGITS = 10.0
"""Greatest logit of these models."""
PROMPT = [5, 6, 7]
needs_vllm = pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")


def test_a_missing_vllm_is_told_with_what_brings_it(
    models: Models, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_engine, "find_spec", lambda name: None)

    with pytest.raises(BackendMissing, match=r"coloop\[vllm\].* make vllm-cpu"):
        VllmEngine(models("qwen3"), tokenizer)


@pytest.mark.vllm
@needs_vllm
@pytest.mark.parametrize("family", ["llama-bias", "qwen2"])
def test_a_push_is_proved_for_tied_and_untied_output_layers(
    family: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    model = build(family, num_attention_heads=2)  # of width 32
    engine = VllmEngine(model, tokenizer, max_num_seqs=2)
    verifier = ChecksumVerifier()

    for version in (1, 2):
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.05)
        sent = checksum_of_model(model, version, dtype=engine.dtype)
        engine.load_weights(model.named_parameters(), version)
        proof = verifier.check(sent, checksum_of_engine(engine, sent.probe))

    engine.close()
    assert proof.moved is not None
    assert proof.moved > 0.01
    assert proof.difference <= proof.tolerance
    assert proof.fingerprint is None


@pytest.mark.vllm
@needs_vllm
def test_heads_that_it_cannot_hold_are_refused_before_it_starts(
    models: Models, tokenizer: PreTrainedTokenizerFast
) -> None:
    with pytest.raises(BackendMissing, match="head_dim of 48, only 32, 64"):
        VllmEngine(models("qwen3-wide-heads"), tokenizer)


@pytest.mark.vllm
@pytest.mark.gpu
@needs_vllm
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_asleep_it_gives_memory_back(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    engine = VllmEngine(models("qwen3"), tokenizer, device="cuda", memory_share=0.3)
    before = generate(engine, [ask(PROMPT, max_new_tokens=9)])[0]
    free, _ = torch.cuda.mem_get_info()

    engine.sleep()
    freed = torch.cuda.mem_get_info()[0] - free
    engine.wake()
    after = generate(engine, [ask(PROMPT, max_new_tokens=9)])[0]

    engine.close()
    assert freed > 2**30
    assert after.token_ids == before.token_ids


@pytest.fixture(scope="module")
def engine(models: Models, tokenizer: PreTrainedTokenizerFast) -> Iterator[VllmEngine]:
    built = VllmEngine(models("qwen3"), tokenizer, max_num_seqs=8)
    yield built
    built.close()


@pytest.mark.vllm
@needs_vllm
def test_a_process_holds_one_of_them(
    engine: VllmEngine, models: Models, tokenizer: PreTrainedTokenizerFast
) -> None:
    with pytest.raises(BackendMissing, match="cannot have two; give each"):
        VllmEngine(models("qwen3"), tokenizer)


@pytest.mark.vllm
@needs_vllm
def test_it_draws_the_tokens_that_the_torch_engine_draws(
    engine: VllmEngine,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    ask: Ask,
) -> None:
    settings: list[dict[str, Any]] = [
        {},
        {"temperature": 0.7},
        {"temperature": 1.3, "top_k": 9},
        {"top_p": 0.8},
        {"temperature": 0.0},
        {"greedy": True, "temperature": 0.7},
        {"stop": ("a", "01")},
    ]
    asked = [
        ask(prompts[i % 7], seed=50 + i, max_new_tokens=12, **settings[i % len(settings)])
        for i in range(21)
    ]

    theirs = generate(engine, asked)

    ours = generate(TorchEngine(models("qwen3"), tokenizer), asked)
    terms = forward_terms(models("qwen3"), 40)
    for one, other in zip(theirs, ours, strict=True):
        assert (list(one.token_ids), one.reason) == (list(other.token_ids), other.reason)
        assert list(one.log_probs) == near(list(other.log_probs), terms=terms, scale=LOGITS)
        assert (one.sampled_log_probs is None) == (other.sampled_log_probs is None)
        if one.sampled_log_probs is not None and other.sampled_log_probs is not None:
            # It is told as a sum of three numbers up to the scale.
            after = near(list(other.sampled_log_probs), terms=terms + 8, scale=LOGITS)
            assert list(one.sampled_log_probs) == after


@pytest.mark.vllm
@needs_vllm
def test_a_kept_text_is_found_in_the_cache_until_new_weights_come(
    engine: VllmEngine, models: Models, ask: Ask
) -> None:
    cached: list[int] = []
    as_it_is = engine._vllm.step

    def watching() -> list[Any]:
        outputs: list[Any] = as_it_is()
        cached.extend(one.num_cached_tokens for one in outputs if one.finished)
        return outputs

    prompt = list(range(30, 100))
    first = generate(engine, [ask(prompt, seed=8, max_new_tokens=4, keep=True)])[0]
    asked = ask([*prompt, *first.token_ids, 9, 10], max_new_tokens=2, continues=first.ticket)
    engine._vllm.step = watching
    try:
        generate(engine, [asked])
        engine.load_weights(models("qwen3").named_parameters(), 0)
        generate(engine, [asked])
    finally:
        engine._vllm.step = as_it_is
    engine.release([first.ticket])

    assert cached == [64, 0]  # two whole blocks of 32


@pytest.mark.vllm
@needs_vllm
def test_branches_share_what_is_computed_of_their_beginning(engine: VllmEngine, ask: Ask) -> None:
    cached: dict[str, int] = {}
    as_it_is = engine._vllm.step

    def watching() -> list[Any]:
        outputs: list[Any] = as_it_is()
        cached.update((one.request_id, one.num_cached_tokens) for one in outputs if one.finished)
        return outputs

    prompt = list(range(20, 110))
    [stem] = generate(engine, [ask(prompt, seed=8, max_new_tokens=8, keep=True)])
    begun = [*prompt, *stem.token_ids]
    asked = [ask(begun, seed=n, max_new_tokens=6, continues=stem.ticket) for n in range(4)]
    engine._vllm.step = watching
    try:
        branches = generate(engine, asked)
    finally:
        engine._vllm.step = as_it_is
    engine.release([stem.ticket])

    assert list(cached.values()) == [len(begun) // 32 * 32] * 4
    assert len({tuple(one.token_ids) for one in branches}) == 4


@pytest.mark.vllm
@needs_vllm
def test_the_process_keeps_its_threads(engine: VllmEngine) -> None:
    before = torch.get_num_threads()

    torch.set_num_threads(before + 1)

    assert torch.get_num_threads() == before + 1
    torch.set_num_threads(before)
