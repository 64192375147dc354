"""Architectures of transformers, and what follows from them: parameters and key-value cache.

A config is read by a formula (`formulas`) if its type has one, or else counted on the model that
transformers builds in a process of its own (`counted`). Both give the number of elements of that
model. Knows nothing of memory schemes or hardware.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from coloop.plan.settings.counted import counted_architecture
from coloop.plan.settings.formulas import FAMILIES, computed_architecture
from coloop.plan.settings.shapes import (
    Architecture,
    Cache,
    LatentAttention,
    MixtureOfExperts,
    ParameterCount,
    UnknownArchitecture,
)

__all__ = [
    "Architecture",
    "Cache",
    "LatentAttention",
    "MixtureOfExperts",
    "ParameterCount",
    "UnknownArchitecture",
    "architecture_from_config",
    "count_parameters",
    "kv_bytes_per_token",
]

NEEDED = (
    *("vocab_size", "hidden_size", "intermediate_size"),
    *("num_hidden_layers", "num_attention_heads"),
)
"""Fields with which a plain decoder of an unknown type is guessed."""


def architecture_from_config(config: Mapping[str, Any], name: str = "") -> Architecture:
    """The decoder of a Hugging Face config; of a composite one, its text model. Raises
    `UnknownArchitecture` if the type is not known here, or the config lacks what it needs."""
    if not isinstance(config.get("model_type"), str):
        raise UnknownArchitecture(f"the config of {name or 'the model'} has no `model_type`")
    name = name or str(config.get("_name_or_path") or config["model_type"])
    if (computed := computed_architecture(_text_of(config), name)) is not None:
        return computed
    try:
        return counted_architecture(config, name)
    except UnknownArchitecture:
        if (guessed := _guessed(config, name)) is None:
            raise
        return guessed


def _text_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The text part of a composite config. If it does not say whether embeddings are tied, the
    whole does."""
    text, tied = config.get("text_config"), config.get("tie_word_embeddings")
    if not isinstance(text, Mapping):
        return config
    return text if tied is None else {"tie_word_embeddings": tied, **text}


def _guessed(config: Mapping[str, Any], name: str) -> Architecture | None:
    """A Llama of the same size, if the config has no experts and only attention layers."""
    words = ("expert", "moe", "mamba", "ssm", "linear_", "conv", "kv_lora", "per_layer")
    is_plain = not config.get("text_config") and not any(
        word in str(key).lower() for key, value in config.items() if value for word in words
    )
    if not is_plain or str(config["model_type"]) in FAMILIES:
        return None
    if any(config.get(needed) is None for needed in NEEDED):
        return None
    heads = config.get("num_key_value_heads") or config["num_attention_heads"]
    fields = {**config, "auto_map": None, "model_type": "llama", "num_key_value_heads": heads}
    found = computed_architecture(fields, name)
    if found is None:
        return None
    return replace(found, model_type=str(config["model_type"]), is_exact=False)


@lru_cache(maxsize=256)
def count_parameters(arch: Architecture, head: str = "language_model") -> ParameterCount:
    """Parameters of a model; `head` is `language_model`, or `score` for one number per position."""
    count = arch.counted
    if head == "language_model":
        return count
    more = arch.hidden_size - count.head
    return replace(
        count, total=count.total + more, active=count.active + more, head=arch.hidden_size
    )


def shares_heads(arch: Architecture, degree: int) -> bool:
    """Whether an engine over so many GPUs can divide the attention heads: query heads evenly, and
    those of keys and values evenly, or each of them copied to equally many GPUs (vLLM,
    `config/model.py: verify_with_parallel_config`)."""
    is_copied = degree % arch.kv_heads == 0
    return arch.heads % degree == 0 and (is_copied or arch.kv_heads % degree == 0)


def kv_bytes_per_token(
    arch: Architecture, dtype_bytes: int = 2, tensor_parallel: int = 1, context: int = 0
) -> float:
    """Bytes of key-value cache per token on one GPU. With a `context` beyond a window, the mean
    over the context, as the cache of such layers stops growing there.

    Tensor-parallel ranks share the heads until each has one; the one vector of latent attention is
    kept whole by every rank (vLLM `kv_cache_utils`).
    """
    elements = 0.0
    for cache in arch.caches:
        held = min(1.0, cache.window / context) if cache.window and context else 1.0
        elements += cache.layers * cache.width * held / min(tensor_parallel, cache.heads)
    return elements * dtype_bytes
