"""Builds the model and tokenizer of a `model` section of type `scratch` or `pretrained`; the other
types refer to another node or run."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
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
from coloop.models.chats import set_template
from coloop.models.pretrained import load_outline, load_pretrained
from coloop.models.tokenizer import TOKENIZERS
from coloop.models.waiting import WeightsToCome
from coloop.spec import presets
from coloop.spec.model import ComputeDtype, Dtype, Model, PretrainedModel, ScratchModel

DTYPES: dict[ComputeDtype, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    to_come: WeightsToCome | None = None
    """Reads the weights, which are still on `meta`; None if the model has its weights."""


def build_model(
    section: Model,
    *,
    seed: int,
    root: Path,
    device: torch.device | str = "cpu",
    dtype: Dtype | None = None,
    may_wait: bool = False,
) -> LoadedModel:
    """The model of a section, on a device.

    Args:
        seed: of random weights.
        root: the folder from which relative paths are read.
        dtype: of the weights if the section names none; None: by the device, see `dtype_of`.
        may_wait: pretrained weights may be left on `meta`, with `to_come` to read them later.
    """
    device = torch.device(device)
    held = dtype_of(getattr(section, "dtype", None) or dtype, device)
    to_come: WeightsToCome | None = None
    match section:
        case ScratchModel():
            config, tokenizer = _from_scratch(section)
            model = build_scratch(config, seed=seed, dtype=held)
        case PretrainedModel():
            if section.quantization is not None:
                raise ModelUnavailable("not yet runnable: model.quantization")
            model, tokenizer, to_come = load_pretrained(
                section.path,
                root,
                dtype=held,
                revision=section.revision,
                trust_remote_code=section.trust_remote_code,
                may_wait=may_wait,
            )
            set_template(tokenizer, section.chat_template, section.chat_template_kwargs)
        case _:
            raise ModelUnavailable(
                f"a model of type {section.type!r} has no weights of its own; build the model that "
                "it refers to"
            )
    if to_come is None:
        torch.nn.Module.to(model, device)
    return LoadedModel(model=model, tokenizer=tokenizer, to_come=to_come)


def build_outline(section: Model, *, root: Path) -> LoadedModel:
    """A section's model on `meta`, with its tokenizer; its files need not contain weights."""
    match section:
        case ScratchModel():
            config, tokenizer = _from_scratch(section)
        case PretrainedModel():
            config, tokenizer = load_outline(
                section.path,
                root,
                revision=section.revision,
                trust_remote_code=section.trust_remote_code,
            )
            set_template(tokenizer, section.chat_template, section.chat_template_kwargs)
        case _:
            raise ModelUnavailable(
                f"a model of type {section.type!r} has no files of its own; use those of the model "
                "that it refers to"
            )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return LoadedModel(model=model, tokenizer=tokenizer)


def _from_scratch(section: ScratchModel) -> tuple[PretrainedConfig, PreTrainedTokenizerFast]:
    preset = presets.model(section.architecture)
    tokenizer = TOKENIZERS[preset.tokenizer]()
    return build_config(preset.architecture, tokenizer, section.initial_range), tokenizer


def copy_model(source: LoadedModel) -> LoadedModel:
    model = copy.deepcopy(source.model)
    model.zero_grad(set_to_none=True)
    return LoadedModel(model=model.requires_grad_(True), tokenizer=source.tokenizer)


def positions_of(model: PreTrainedModel) -> int | None:
    """Maximum length of a sequence in tokens; None if the config has none."""
    config = model.config.get_text_config(decoder=True)
    for name in ("max_position_embeddings", "n_positions"):
        limit = getattr(config, name, None)
        if limit:
            return int(limit)
    return None


def vocabulary_of(model: PreTrainedModel) -> int:
    return int(model.config.get_text_config(decoder=True).vocab_size)


def dtype_of(dtype: Dtype | None, device: torch.device) -> torch.dtype:
    """The requested type; None: float32 on a CPU, else bfloat16."""
    if dtype is not None:
        return DTYPES[dtype]
    return torch.float32 if device.type == "cpu" else torch.bfloat16


# Models from architecture facts. Invariant: weights are a function of facts, range and seed, not of
# the process's random state.


def build_config(
    facts: Mapping[str, Any], tokenizer: PreTrainedTokenizerFast, initial_range: float | None = None
) -> PretrainedConfig:
    """The Hugging Face config of an architecture, with the special tokens of the tokenizer."""
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
    """A model with random weights; drawn in float32, so that every dtype starts from equal
    values."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    built: PreTrainedModel = model.to(dtype)
    return built
