"""Reads and writes model folders in Hugging Face format, also of adapters. A folder is written
under another name, read back and compared, and then renamed; weights are read one by one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from coloop.data.files.marks import settle, settle_one
from coloop.errors import CheckpointError, StorageFull, is_full
from coloop.models.heads import SCORE, has_words
from coloop.models.on_disk import (
    Conversion,
    Part,
    damage_of_weights,
    from_disk,
    outline_from,
    without_bars,
)
from coloop.spec.model import Lora

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def save_hf(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write a model and its tokenizer for transformers: `AutoModelForCausalLM`, or with a score
    head only, `AutoModelForSequenceClassification`. Replaces the folder."""
    with written_aside(folder) as aside:
        with without_bars():
            model.save_pretrained(aside)
        tokenizer.save_pretrained(aside)
        _check_readable(aside, model)


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """A temporary folder that replaces `folder` at the end of the block. Raises `StorageFull` or
    `CheckpointError`, and then leaves `folder` as it was."""
    aside = _beside(folder, "writing")
    try:
        aside.mkdir(parents=True)
        yield aside
        settle(aside)
        replace_folder(aside, folder)
        settle_one(folder.parent)
    except (OSError, SafetensorError) as error:
        if is_full(error):
            raise StorageFull(f"no room to save the model in {folder}: {error}") from error
        raise CheckpointError(f"the model cannot be saved in {folder}: {error}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def link_tree(
    source: Path, folder: Path, *, without: Sequence[str] = (), copies: bool = False
) -> None:
    """Put the files below `source` into `folder`: as hard links if possible, else copied.

    Args:
        without: patterns of names to leave out.
        copies: always copy, so that the files may be changed.

    Raises `CheckpointError` for a symbolic link to a folder.
    """
    stays = shutil.ignore_patterns(*without)

    def ignored(above: str, names: list[str]) -> set[str]:
        left = stays(above, names)
        for path in (Path(above, name) for name in names if name not in left):
            if path.is_symlink() and path.is_dir():
                raise CheckpointError(f"{path} is a link to a folder; put the folder itself there")
        return left

    put = shutil.copy2 if copies else _link
    shutil.copytree(source, folder, copy_function=put, dirs_exist_ok=True, ignore=ignored)


def _link(source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)  # of a link, the file that it leads to
    except OSError:
        shutil.copy2(source, target)


def read_weights(folder: Path, like: PreTrainedModel | None = None) -> Iterator[tuple[str, Tensor]]:
    """Each weight of a model folder, one at a time, with its name in the model, or in the file if
    the config cannot be read. `like`: a model of this architecture, possibly on `meta`; None: it is
    built from the config."""
    with _opened(folder) as places:
        model = like if like is not None else _outline_of(folder)
        if model is None:
            for name, weights in places.items():
                yield name, weights.get_tensor(name)
            return
        read = from_disk(model)
        yield from _converted(read, read.parts(places), places)


def shapes_in(folder: Path, read: Conversion) -> dict[str, torch.Size]:
    """By name, the shapes of the model's weights in a folder; reads only headers."""
    return {name: weight.shape for name, weight in read_for(folder, read, is_outline=True)}


def read_for(
    folder: Path,
    read: Conversion,
    only: Collection[str] | None = None,
    *,
    is_outline: bool = False,
) -> Iterator[tuple[str, Tensor]]:
    """Each weight of a model in a folder, one at a time: a view of its file, unless converted.

    Args:
        read: the conversion from the names in files to those of the model.
        only: names of weights to read; of those that are converted together, the first.
        is_outline: weights are on `meta`; only headers are read.
    """
    with _opened(folder) as places:
        known = (part for part in read.parts(places) if read.knows(part.target))
        wanted = (part for part in known if only is None or part.target in only)
        yield from _converted(read, wanted, places, is_outline=is_outline)


def _converted(
    read: Conversion, parts: Iterable[Part], places: Mapping[str, Any], *, is_outline: bool = False
) -> Iterator[tuple[str, Tensor]]:
    def weight_of(name: str) -> Tensor:
        if is_outline:
            return torch.empty(places[name].get_slice(name).get_shape(), device="meta")
        weight: Tensor = places[name].get_tensor(name)
        return weight

    for part in parts:
        yield from read.converted(part, weight_of).items()


def read_part(folder: Path, prefix: str) -> dict[str, Tensor]:
    with _opened(folder) as places:
        return {
            name: weights.get_tensor(name)
            for name, weights in places.items()
            if name.startswith(prefix)
        }


@contextmanager
def _opened(folder: Path) -> Iterator[Mapping[str, Any]]:
    with ExitStack() as files:
        places: dict[str, Any] = {}
        for file in _weight_files(folder):
            if (damage := damage_of_weights(file)) is not None:
                raise CheckpointError(damage)
            weights = files.enter_context(safe_open(file, framework="pt"))
            places |= dict.fromkeys(weights.keys(), weights)
        yield places


def _outline_of(folder: Path) -> PreTrainedModel | None:
    try:
        return outline_from(AutoConfig.from_pretrained(folder))
    except (OSError, ValueError, KeyError):
        return None


def load_weights(folder: Path, like: PreTrainedModel | None = None) -> dict[str, Tensor]:
    try:
        return dict(read_weights(folder, like))
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"the weights in {folder} cannot be read: {error}") from error


def replace_folder(aside: Path, folder: Path) -> None:
    """Rename `aside` to `folder`, and then delete the earlier folder; if that fails, it is
    restored."""
    before = _beside(folder, "before")
    if folder.exists():
        folder.rename(before)
    try:
        aside.rename(folder)
    except OSError:
        if before.exists():
            before.rename(folder)
        raise
    shutil.rmtree(before, ignore_errors=True)


def _beside(folder: Path, purpose: str) -> Path:
    """A hidden name in the same file system, so that renaming is atomic."""
    return folder.parent / f".{folder.name}.{purpose}-{os.getpid()}"


def _weight_files(folder: Path) -> list[Path]:
    if (folder / INDEX).exists():
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        names = sorted(set(index["weight_map"].values()))
        if any(Path(name).name != name for name in names):
            raise CheckpointError(f"{folder / INDEX} names files that are not beside it")
        return [folder / name for name in names]
    if (folder / ONE_FILE).exists():
        return [folder / ONE_FILE]
    raise CheckpointError(f"{folder} contains no weights: neither {ONE_FILE} nor {INDEX}")


def _check_readable(folder: Path, model: PreTrainedModel) -> None:
    """Read the folder back and compare every weight; raises CheckpointError for a difference."""
    try:
        AutoConfig.from_pretrained(folder)
        AutoTokenizer.from_pretrained(folder)
    except ValueError as error:
        raise CheckpointError(f"what was saved cannot be loaded again: {error}") from error
    missing = dict(model.named_parameters())  # one name for each tied weight
    held = missing | dict(model.named_buffers())
    for name, saved in read_weights(folder, model):
        missing.pop(name, None)
        if name in held and not torch.equal(saved, held[name].detach().cpu()):
            raise CheckpointError(f"the saved {name} differs from the one in memory")
    if missing:
        raise CheckpointError(f"{len(missing)} weights were not saved, such as {min(missing)}")


# Folders of adapters, written atomically.
#     adapter_model.safetensors   A and B of each layer, and a score head
#     adapter_config.json         rank, alpha, layers, as peft reads them
#     config.json                 of the merged model
#     base/                       the frozen weights in Hugging Face format, linked in later folders

BASE_FOLDER = "base"
CONFIG = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"
ADAPTER_FILES = (CONFIG, _WEIGHTS)
_PREFIX = "base_model.model."
EVERY = "all-linear"


def is_adapter(folder: Path) -> bool:
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
    """Write an adapter; replaces the folder.

    Args:
        weights: of the adapter, by peft's names inside the model.
        outline: the merged model, possibly on `meta`.
        base: the model without the adapter, or a folder of it.
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
        written = load_file(aside / _WEIGHTS)
        if any(not torch.equal(written[name], one) for name, one in tensors.items()):
            raise CheckpointError(f"the adapter saved in {folder} differs from the one in memory")


def read_adapter(folder: Path) -> dict[str, Tensor]:
    """The adapter's weights by peft's names inside the model, on the CPU."""
    try:
        return {_in(name): weight for name, weight in load_file(folder / _WEIGHTS).items()}
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"the adapter in {folder} cannot be read: {error}") from error


def dtype_in(folder: Path) -> torch.dtype:
    """The widest type of the base's matrices, which merged ones have too."""
    held = {weight.dtype for _, weight in read_weights(folder / BASE_FOLDER) if weight.dim() > 1}
    return max(held, key=lambda one: one.itemsize)


def weights_in(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Each weight of a model folder, one at a time; those of an adapter are merged with its
    base."""
    return merged_weights(folder) if is_adapter(folder) else read_weights(folder)


def merged_weights(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Each weight of an adapter folder, merged with the base, one at a time."""
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
    return _PREFIX + name.replace(f".{ADAPTER}.", ".")


def _in(name: str) -> str:
    plain = name.removeprefix(_PREFIX)
    for part in (FIRST, SECOND):
        plain = plain.replace(part, f"{part}{ADAPTER}.")
    return plain


# y = W x + (alpha / rank) B A x        merged: W + (alpha / rank) B A, under W's own name
# Names are peft's: `q_proj.base_layer.weight`, `q_proj.lora_A.default.weight` (rank, in),
# `q_proj.lora_B.default.weight` (out, rank). A score head is part of the adapter. Needs no peft.

BASE, FIRST, SECOND = ".base_layer.", ".lora_A.", ".lora_B."
ADAPTER = "default"  # name of the one adapter of a model, as peft calls it


def is_own(name: str) -> bool:
    """Whether a weight belongs to the adapter: its matrices, and those of score heads."""
    return FIRST in name or SECOND in name or name.startswith(f"{SCORE}.")


def is_moved(name: str) -> bool:
    """Whether a weight belongs to the adapter, or is one that it modifies."""
    return is_own(name) or (BASE in name and name.endswith(".weight"))


def plain_name(name: str) -> str:
    """Name of a weight in the model without the adapter."""
    return name.replace(BASE, ".")


def merged(weights: Iterable[tuple[str, Tensor]], scale: float) -> Iterator[tuple[str, Tensor]]:
    """Weights with the adapter merged into them, in float32; they keep their types. `weights`: in
    the order of the model: a layer's own, then A, then B. `scale`: alpha / rank."""
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
