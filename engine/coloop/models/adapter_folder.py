"""Folders of adapters: peft's files, and what they stand on in a folder of its own.

    adapter_model.safetensors   A and B of each layer, and a score head
    adapter_config.json         rank, alpha, layers, as peft reads them
    config.json                 of the model that both make
    base/                       the frozen weights in Hugging Face format, written once: in later
                                folders, and in those of other adapters on them, the same files

A folder is written whole or not at all, as those of models are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from coloop.errors import CheckpointError
from coloop.models.folder import link_tree, read_weights, save_hf, written_aside
from coloop.models.heads import SCORE, has_words
from coloop.spec.model import Lora

BASE_FOLDER = "base"
CONFIG = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"
ADAPTER_FILES = (CONFIG, _WEIGHTS)
_PREFIX = "base_model.model."
EVERY = "all-linear"


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter with what it stands on."""
    return (folder / CONFIG).is_file() and (folder / BASE_FOLDER).is_dir()


def save_adapter(
    folder: Path,
    weights: Mapping[str, Tensor],
    lora: Lora,
    *,
    outline: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    base: Path | PreTrainedModel,
) -> None:
    """Writes an adapter; replaces the folder.

    Args:
        weights: of the adapter, by the names of `models.adapters`.
        outline: a model of the shape that base and adapter make.
        base: the model without the adapter, or a folder that has it already, maybe beside what
            a trainer keeps.
    """
    with written_aside(folder) as aside:
        tensors = {_out(name): one.detach().to("cpu").contiguous() for name, one in weights.items()}
        save_file(tensors, aside / _WEIGHTS, metadata={"format": "pt"})
        text = json.dumps(_config(lora, weights, outline), indent=2)
        (aside / CONFIG).write_text(text, encoding="utf-8")
        outline.config.architectures = [type(outline).__name__]
        outline.config.save_pretrained(aside)
        tokenizer.save_pretrained(aside)
        if isinstance(base, Path):
            link_tree(base, aside / BASE_FOLDER, without=("*.pt",))
        else:
            save_hf(aside / BASE_FOLDER, base, tokenizer)
        found = load_file(aside / _WEIGHTS)
        if any(not torch.equal(found[name], one) for name, one in tensors.items()):
            raise CheckpointError(f"the adapter saved in {folder} differs from the one in memory")


def read_adapter(folder: Path) -> dict[str, Tensor]:
    """The adapter's weights by the names of `models.adapters`, on the CPU."""
    try:
        return {_in(name): one for name, one in load_file(folder / _WEIGHTS).items()}
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"the adapter in {folder} cannot be read: {error}") from error


def dtype_in(folder: Path) -> torch.dtype:
    """Type of the frozen matrices, which is that of the merged ones."""
    held = {weight.dtype for _, weight in read_weights(folder / BASE_FOLDER) if weight.dim() > 1}
    return max(held, key=lambda one: one.itemsize)


def weights_in(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Each weight of a model's folder, be it an adapter's, one at a time in memory."""
    return merged_weights(folder) if is_adapter(folder) else read_weights(folder)


def merged_weights(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Each weight of the model that base and adapter make, one at a time in memory."""
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    scale = config["lora_alpha"] / config["r"]
    own = read_adapter(folder)
    layers = {name.partition(FIRST)[0] for name in own if FIRST in name}
    heads = {name for name in own if name.startswith(f"{SCORE}.")}
    for name, weight in read_weights(folder / BASE_FOLDER):
        layer = name.removesuffix(".weight")
        if layer in layers:
            first, second = (f"{layer}{part}{ADAPTER}.weight" for part in (FIRST, SECOND))
            inside = f"{layer}.base_layer.weight", weight
            yield from merged([inside, (first, own[first]), (second, own[second])], scale)
        elif name not in heads:
            yield name, weight
    for name in heads:
        yield name, own[name]


def _config(lora: Lora, weights: Mapping[str, Tensor], outline: PreTrainedModel) -> dict[str, Any]:
    layers = {name.partition(FIRST)[0].rpartition(".")[2] for name in weights if FIRST in name}
    named = set(lora.targets) - {EVERY}
    has_score = any(name.startswith(f"{SCORE}.") for name in weights)
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM" if has_words(outline) else "SEQ_CLS",
        "base_model_name_or_path": BASE_FOLDER,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "target_modules": sorted(named or layers),
        "modules_to_save": [SCORE] if has_score else None,
        "bias": "none",
        "inference_mode": True,
    }


def _out(name: str) -> str:
    """As peft writes it."""
    return _PREFIX + name.replace(f".{ADAPTER}.", ".")


def _in(name: str) -> str:
    plain = name.removeprefix(_PREFIX)
    for part in (FIRST, SECOND):
        plain = plain.replace(part, f"{part}{ADAPTER}.")
    return plain


# Adapters by their weights' names: what belongs to one, and what a model becomes by it.
#
#     y = W x + (alpha / rank) B A x        merged: W + (alpha / rank) B A, under W's own name
#
# Names inside a model are peft's: a layer `q_proj` with an adapter has
# `q_proj.base_layer.weight`, `q_proj.lora_A.default.weight` (rank, in) and
# `q_proj.lora_B.default.weight` (out, rank). A score head learns whole and counts as part of the
# adapter. Needs no peft.

BASE, FIRST, SECOND = ".base_layer.", ".lora_A.", ".lora_B."
ADAPTER = "default"
"""Name of the one adapter of a model, as peft calls it."""


def is_own(name: str) -> bool:
    """Whether a weight is the adapter's: its matrices, and those of a score head."""
    return FIRST in name or SECOND in name or name.startswith(f"{SCORE}.")


def is_moved(name: str) -> bool:
    """Whether a weight is needed for what an adapter changes: its own, and those that it stands
    beside."""
    return is_own(name) or (BASE in name and name.endswith(".weight"))


def plain_name(name: str) -> str:
    """What a weight was called before an adapter stood beside it."""
    return name.replace(BASE, ".")


def merged(weights: Iterable[tuple[str, Tensor]], scale: float) -> Iterator[tuple[str, Tensor]]:
    """Weights of a model with an adapter as those of one without, a layer at a time. Products are
    taken in float32; what comes has the type that the layer had.

    Args:
        weights: in the order of the model: a layer's own, then A, then B.
        scale: alpha / rank.
    """
    waiting: tuple[str, Tensor] | None = None
    first: Tensor | None = None
    for name, weight in weights:
        if BASE in name and name.endswith(".weight"):
            waiting = plain_name(name), weight
        elif FIRST in name:
            first = weight
        elif SECOND in name:
            assert waiting is not None
            assert first is not None
            change = (weight.float() @ first.float()) * scale
            yield waiting[0], (waiting[1].float() + change).to(waiting[1].dtype)
        else:
            yield plain_name(name), weight
