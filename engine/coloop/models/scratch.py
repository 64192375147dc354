"""Models made on the spot from architecture facts, with the tokenizer of single characters.

Invariant: the weights are a function of facts, range and seed; the process's own random state is
neither read nor changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from coloop.errors import ModelUnavailable


def build_config(
    facts: Mapping[str, Any],
    tokenizer: PreTrainedTokenizerFast,
    initial_range: float | None = None,
) -> PretrainedConfig:
    """The Hugging Face config of architecture facts, with the marks of the tokenizer."""
    own = {name: value for name, value in facts.items() if name != "model_type"}
    own.setdefault("vocab_size", len(tokenizer))
    if own["vocab_size"] < len(tokenizer):
        raise ModelUnavailable(
            f"the architecture has a vocabulary of {own['vocab_size']}, the character tokenizer"
            f" needs {len(tokenizer)}; set vocab_size to {len(tokenizer)} or more"
        )
    if initial_range is not None:
        own["initializer_range"] = initial_range
    own |= {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    try:
        return AutoConfig.for_model(facts["model_type"], **own)
    except (KeyError, ValueError) as error:
        raise ModelUnavailable(
            f"transformers builds no model from the facts of {facts.get('model_type')!r}: {error}"
        ) from error


def build_scratch(
    config: PretrainedConfig, *, seed: int, dtype: torch.dtype = torch.float32
) -> PreTrainedModel:
    """A model with random weights; drawn in float32, so that every dtype starts from the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    built: PreTrainedModel = model.to(dtype)
    return built
