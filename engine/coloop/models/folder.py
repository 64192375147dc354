"""Model folders in Hugging Face format: written whole or not at all, and read tensor by tensor.

Nobody sees half a folder: it is written aside, read back and compared, and only then renamed into
its place. A full disk leaves what stood there before.
"""

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
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from coloop.data.files.marks import settle, settle_one
from coloop.errors import CheckpointError, StorageFull, is_full
from coloop.models.on_disk import (
    Conversion,
    Part,
    damage_of_weights,
    from_disk,
    outline_from,
    without_bars,
)

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def save_hf(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Writes a model so that transformers loads it (`AutoModelForCausalLM`, with a score head
    `AutoModelForSequenceClassification`), and `AutoTokenizer` its tokenizer; replaces the
    folder."""
    with written_aside(folder) as aside:
        with without_bars():
            model.save_pretrained(aside)
        tokenizer.save_pretrained(aside)
        _check_readable(aside, model)


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """A folder to write to, which takes the place of another once it is whole.

    Raises `StorageFull`, `CheckpointError`: what stood there before stays.
    """
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


def link_folder(source: Path, folder: Path) -> None:
    """The files of a model folder in another one, written once: as further names of the same files
    where the file system can, else copied. What stands there is replaced, nobody writes into it."""
    with written_aside(folder) as aside:
        link_tree(source, aside)


def link_tree(
    source: Path, folder: Path, *, without: Sequence[str] = (), copies: bool = False
) -> None:
    """The files below a folder below another one, which may be there: as further names where the
    file system can, else copied. Of a link to a file, the file that it leads to.

    Args:
        without: patterns of names that stay where they are.
        copies: files of their own, which somebody may change.

    Raises:
        CheckpointError: a link leads to a folder, which may be any.
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
    """Each weight of a model folder by the name that the model has for it, one at a time in memory;
    what no model has for itself comes as the file has it.

    Args:
        like: a model of the folder's kind, weights or not; None: made of its config.
    """
    with _opened(folder) as places:
        model = like if like is not None else _outline_of(folder)
        if model is None:
            for name, weights in places.items():
                yield name, weights.get_tensor(name)
            return
        read = from_disk(model)
        yield from _converted(read, read.parts(places), places)


def shapes_in(folder: Path, read: Conversion) -> dict[str, torch.Size]:
    """The shape of each weight that a model folder has for a model, by the model's name for it; of
    its files only the headers are read.

    Args:
        read: from the names of the folder's files.
    """
    with _opened(folder) as places:
        found = _converted(read, _known_parts(read, places), places, is_outline=True)
        return {name: weight.shape for name, weight in found}


def read_for(
    folder: Path, read: Conversion, only: Collection[str] | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Each weight that a model folder has for a model, by the model's name for it, one at a time in
    memory: a view of its file, unless it is converted.

    Args:
        read: from the names of the folder's files.
        only: names of those that are read; of such as are converted together the first has it.
    """
    with _opened(folder) as places:
        parts = _known_parts(read, places)
        yield from _converted(read, (p for p in parts if only is None or p.target in only), places)


def _known_parts(read: Conversion, places: Mapping[str, Any]) -> list[Part]:
    return [part for part in read.parts(places) if read.knows(part.target)]


def _converted(
    read: Conversion, parts: Iterable[Part], places: Mapping[str, Any], *, is_outline: bool = False
) -> Iterator[tuple[str, Tensor]]:
    """
    Args:
        is_outline: weights have their shapes alone.
    """

    def weight_of(name: str) -> Tensor:
        if is_outline:
            return torch.empty(places[name].get_slice(name).get_shape(), device="meta")
        found: Tensor = places[name].get_tensor(name)
        return found

    for part in parts:
        yield from read.converted(part, weight_of).items()


def read_part(folder: Path, prefix: str) -> dict[str, Tensor]:
    """The weights of a model folder whose names on disk begin so, by name."""
    with _opened(folder) as places:
        return {
            name: weights.get_tensor(name)
            for name, weights in places.items()
            if name.startswith(prefix)
        }


@contextmanager
def _opened(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The open file in which each weight of a folder lies, by the name that it has there."""
    with ExitStack() as files:
        places: dict[str, Any] = {}
        for file in _weight_files(folder):
            if (damage := damage_of_weights(file)) is not None:
                raise CheckpointError(damage)
            weights = files.enter_context(safe_open(file, framework="pt"))
            places |= dict.fromkeys(weights.keys(), weights)
        yield places


def _outline_of(folder: Path) -> PreTrainedModel | None:
    """A model of the folder's config without weights; None where transformers has none for it."""
    try:
        return outline_from(AutoConfig.from_pretrained(folder))
    except (OSError, ValueError, KeyError):
        return None


def load_weights(folder: Path, like: PreTrainedModel | None = None) -> dict[str, Tensor]:
    """All weights of a model folder by name, on the CPU; see `read_weights`."""
    try:
        return dict(read_weights(folder, like))
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"the weights in {folder} cannot be read: {error}") from error


def replace_folder(aside: Path, folder: Path) -> None:
    """Puts a finished folder in the place of another, which is gone only once the new one
    stands."""
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
    """A hidden name in the same file system, so that renaming is one act."""
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
    """Reads the folder back: config, tokenizer, and every weight bit for bit."""
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
