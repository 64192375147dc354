"""Formulas and counts of every model type against models that transformers builds."""

import json
from typing import Any

import pytest
import torch
from tests.engine.models.architectures import small_config
from transformers import AutoModelForCausalLM

from coloop.models.counting import facts_of
from coloop.plan.settings.architecture import architecture_from_config, kv_bytes_per_token
from coloop.plan.settings.counted import from_facts
from coloop.plan.settings.families import causal_types, refusal_of
from coloop.plan.settings.formulas import FAMILIES, computed_architecture

RUNNING = sorted(
    kind for kind in causal_types() if refusal_of({"model_type": kind}) is None
)  # 122 types of transformers 5.19
SIZES = ("total", "active", "embedding", "head", "layer", "tables", "routed")
OTHER_CACHES = {
    "deepseek_v4": "what is not compressed yet is buffered",
    "openai-gpt": "it has no cache",
    "hrm_text": "its cycles share the layers of a cache",
}
"""Types whose cache in transformers has other entries."""
BIASES = (
    *("attention_bias", "mlp_bias", "use_bias", "qkv_bias", "use_qkv_bias", "attention_out_bias"),
    *("lm_head_bias", "bias", "conv_bias", "mamba_conv_bias", "use_qk_norm", "qk_layernorm"),
    *("new_decoder_architecture", "multi_query", "parallel_attn", "use_parallel_residual"),
    *("tie_word_embeddings", "mamba_rms_norm"),
)
"""Fields of configs that add or remove parameters."""


def _built(config: Any) -> Any:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def _text(config: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(config.get_text_config().to_dict(), default=str))
    return found


def _compare(config: Any) -> None:
    model = _built(config)
    ours = computed_architecture(_text(config), "here")
    theirs = from_facts(facts_of(model, config), config.to_dict(), "here")
    # the bias that balances the experts of DeepSeek-V3 is a buffer of the checkpoint
    balance = sum(buffer.numel() for name, buffer in model.named_buffers() if "e_score" in name)
    extra = balance if config.model_type == "deepseek_v3" else 0
    layer = config.n_routed_experts if extra else 0
    assert ours is not None
    for size in SIZES:
        more = {"total": extra, "active": extra, "layer": layer}.get(size, 0)
        assert getattr(ours.counted, size) == getattr(theirs.counted, size) + more, size
    assert ours.caches == theirs.caches
    assert ours.moe == theirs.moe
    assert (ours.kv_heads, ours.latent) == (theirs.kv_heads, theirs.latent)


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_a_formula_equals_the_model(kind):
    _compare(small_config(kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_a_formula_follows_every_switch(kind):
    config = small_config(kind)
    for name in BIASES:
        if isinstance(was := config.to_dict().get(name), bool):
            _compare(small_config(kind, **{name: not was}))


@pytest.mark.sample(10)
@pytest.mark.parametrize("kind", RUNNING)
def test_the_cache_of_a_running_model_is_as_large(kind):
    """Elements that 30 more tokens add to the cache of transformers. Latent attention is kept
    expanded there, and as one vector here, as by vLLM."""
    if kind in OTHER_CACHES:
        pytest.skip(OTHER_CACHES[kind])
    config = small_config(kind).get_text_config()
    arch = from_facts(facts_of(_built(config), config), config.to_dict(), kind)
    if arch.latent is not None or not arch.caches:
        pytest.skip("it keeps one vector, or a state of constant size")
    model = AutoModelForCausalLM.from_config(config).eval()
    short, long = (_elements(model, tokens) for tokens in (20, 50))

    def ours(tokens: int) -> float:
        return kv_bytes_per_token(arch, 1, context=tokens) * tokens

    assert long - short == pytest.approx(ours(50) - ours(20))


def _elements(model: Any, tokens: int) -> int:
    with torch.no_grad():
        cache = model(torch.ones(1, tokens, dtype=torch.long), use_cache=True).past_key_values
    held = [
        (getattr(layer, "keys", None), getattr(layer, "values", None)) for layer in cache.layers
    ]
    return sum(kept.numel() for pair in held for kept in pair if kept is not None)


@pytest.mark.parametrize("kind", RUNNING)
def test_every_type_that_runs_has_a_count(kind):
    config = small_config(kind).get_text_config()
    model = _built(config)
    arch = from_facts(facts_of(model, config), config.to_dict(), kind)

    assert arch.counted.total == sum(one.numel() for one in model.parameters())
    assert 0 < arch.counted.active <= arch.counted.total
    assert arch.counted.routed < arch.counted.total
    assert arch.attention_layers <= 2 * arch.layers or kind in OTHER_CACHES


def test_a_formula_needs_no_process_and_no_torch(monkeypatch):
    monkeypatch.setattr("coloop.plan.settings.counted._built", lambda config: pytest.fail(config))

    arch = architecture_from_config(_text(small_config("qwen3_next")), "here")

    assert not arch.is_built
    assert arch.attention_layers == 1


# Published counts, with the fields of their config.json

PUBLISHED = {
    "openai/gpt-oss-120b": (116_829_156_672, {"model_type": "gpt_oss"}),
    "openai-community/gpt2": (124_439_808, {"model_type": "gpt2"}),
    "tiiuae/falcon-7b": (6_921_720_704, {"model_type": "falcon"}),
    "EleutherAI/gpt-neox-20b": (20_554_567_680, {"model_type": "gpt_neox"}),
    "facebook/opt-125m": (125_239_296, {"model_type": "opt"}),
    "mistralai/Mixtral-8x7B": (46_702_792_704, {"model_type": "mixtral"}),
    "microsoft/Phi-3-mini": (3_821_079_552, {"model_type": "phi3"}),
    "HuggingFaceTB/SmolLM3-3B": (3_075_098_624, {"model_type": "smollm3"}),
}


@pytest.mark.parametrize("model", PUBLISHED)
def test_published_counts(model):
    """These checkpoints are the defaults of their types in transformers."""
    from transformers import AutoConfig

    total, named = PUBLISHED[model]
    found = computed_architecture(AutoConfig.for_model(**named).to_dict(), model)
    assert found is not None
    assert found.counted.total == total
