"""Converts weights between the form of a model and the form of its files.

transformers may hold weights in another form than files do, such as all experts of a layer in one
tensor:

    model.layers.0.mlp.experts.gate_up_proj (E, 2 F, W)    in the model
    model.layers.0.mlp.experts.0.gate_proj.weight (F, W)   on disk, for each of E experts
    model.layers.0.mlp.experts.0.up_proj.weight (F, W)

Which weights are converted together follows from their names, so only these are in memory at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    PrefixChange,
    WeightConverter,
    WeightRenaming,
    WeightTransform,
    dot_natural_key,
    rename_source_key,
)
from transformers.utils import logging

from coloop.data.files.marks import Marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    target: str  # what the first of those that come out is called
    names: tuple[str, ...]  # of those that go in
    patterns: tuple[str, ...]
    """For each name, the pattern that matched it; the name itself if it is only renamed."""
    converter: WeightConverter | None  # None: the weight only has another name, or the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A conversion in one direction, between the weights of a model and those of its files."""

    model: PreTrainedModel  # of the names; weights may be missing in it
    transforms: Sequence[WeightTransform]  # as they are applied; none: both have the same names
    is_to_disk: bool
    _known: Mapping[str, Any] = field(default_factory=dict)
    """The model's state by name; names in files may lack its prefix, or have it in addition."""

    def parts(self, names: Iterable[str]) -> list[Part]:
        """These names, grouped by what is converted together."""
        renamings = [one for one in self.transforms if isinstance(one, WeightRenaming)]
        converters = [one for one in self.transforms if isinstance(one, WeightConverter)]
        by_pattern = {name: one for one in converters for name in one.source_patterns}
        by_target: dict[str, list[tuple[str, str | None]]] = {}
        for name in sorted(names, key=dot_natural_key):
            target, pattern = self._target(name, renamings, converters)
            by_target.setdefault(target, []).append((name, pattern))
        return [
            Part(
                target=target,
                names=tuple(name for name, _ in members),
                patterns=tuple(pattern or name for name, pattern in members),
                converter=None if members[0][1] is None else by_pattern[members[0][1]],
            )
            for target, members in by_target.items()
        ]

    def _target(
        self, name: str, renamings: list[WeightRenaming], converters: list[WeightConverter]
    ) -> tuple[str, str | None]:
        if self.is_to_disk:
            return rename_source_key(name, renamings, converters, reverse=True)  # type: ignore[no-any-return]
        prefix, known = self.model.base_model_prefix, dict(self._known)
        target, pattern = rename_source_key(name, renamings, converters, prefix, known)
        if target not in known and name in known:
            return rename_source_key(name, [], [], prefix, known)  # type: ignore[no-any-return]
        return target, pattern

    def knows(self, name: str) -> bool:
        return name in self._known

    def used(self) -> list[WeightTransform]:
        """The transforms that applied to some name; `to_disk` reverses them."""
        return [transform for transform in self.transforms if transform.was_used()]

    def converted(self, part: Part, weight_of: Callable[[str], Tensor]) -> dict[str, Tensor]:
        """The converted weights of a part, by name."""
        if part.converter is None:
            (name,) = part.names
            return {part.target: weight_of(name)}
        converter: Any = deepcopy(part.converter)
        for name, pattern in zip(part.names, part.patterns, strict=True):
            converter.add_tensor(part.target, name, pattern, weight_of(name))
        with torch.no_grad():
            made = converter.convert(part.target, model=self.model, config=self.model.config)
        return {
            name: (weight[0] if isinstance(weight, list) else weight).contiguous()
            for name, weight in made.items()
        }

    def streamed(
        self, names: Iterable[str], weights: Iterable[tuple[str, Tensor]]
    ) -> Iterator[tuple[str, Tensor]]:
        """Converts a stream of weights; each part as soon as all of its weights have arrived."""
        part_of = {name: part for part in self.parts(names) for name in part.names}
        waiting: dict[str, Tensor] = {}
        for name, weight in weights:
            part = part_of.get(name)
            if part is None:
                yield name, weight
                continue
            waiting[name] = weight
            if all(one in waiting for one in part.names):
                yield from self.converted(part, waiting.__getitem__).items()
                for one in part.names:
                    del waiting[one]


def to_disk(model: PreTrainedModel) -> Conversion:
    """The conversion of a model to files: the reverse of how it was loaded, else that of its
    type."""
    loaded: Sequence[WeightTransform] | None = getattr(model, "_weight_conversions", None)
    if loaded is None:
        known = get_model_conversion_mapping(model, add_legacy=False)
        # Whether files had a prefix is known only of a model that was read from files.
        loaded = [transform for transform in known if not isinstance(transform, PrefixChange)]
    back = [transform.reverse_transform() for transform in reversed(loaded)]
    return Conversion(model=model, transforms=back, is_to_disk=True)


def from_disk(model: PreTrainedModel) -> Conversion:
    return Conversion(
        model=model,
        transforms=get_model_conversion_mapping(model),
        is_to_disk=False,
        _known=model.state_dict(),
    )


def types_in(model: PreTrainedModel, dtype: torch.dtype) -> Callable[[str], torch.dtype | None]:
    """A function of a weight's name: float32 if transformers keeps it so in a model of `dtype`,
    else None."""
    family: Any = model
    strict, loose = family._keep_in_fp32_modules_strict, family._keep_in_fp32_modules
    kept = [*(strict or ())] if dtype in (torch.float16, torch.bfloat16) else []
    kept += [*(loose or ())] if dtype == torch.float16 else []
    patterns = [re.compile(pattern.replace("*", ".*")) for pattern in kept]
    return lambda name: torch.float32 if any(pattern.search(name) for pattern in patterns) else None


def kind_of(config: PretrainedConfig) -> Any:
    """The auto class of transformers for a config: by its `architectures`, for scores or for
    text."""
    named = config.architectures or ()
    is_scorer = any(name.endswith("ForSequenceClassification") for name in named)
    return AutoModelForSequenceClassification if is_scorer else AutoModelForCausalLM


def outline_from(config: PretrainedConfig) -> PreTrainedModel:
    with torch.device("meta"):
        model: PreTrainedModel = kind_of(config).from_config(config)
    return model


# Checks that a file of weights is as long as its header says, before anything is loaded from it.
#     8 bytes: length of the header | header: JSON, each weight's offsets | the weights
# In a checkpoint, the manifest next to the folder has the SHA-256 of each file.

COUNT_BYTES = 8
LONGEST_HEADER = 100_000_000  # bytes; what the library reads at most


def damage_of_weights(path: Path) -> str | None:
    """What is wrong with a safetensors file, by its header and length; None if nothing is."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            count = int.from_bytes(file.read(COUNT_BYTES), "little")
            if size < COUNT_BYTES or count > min(LONGEST_HEADER, size - COUNT_BYTES):
                return f"{path} has {size} bytes: it is truncated, or not a safetensors file"
            header = json.loads(file.read(count))
        places = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
        wanted = COUNT_BYTES + count + max((int(offsets[1]) for offsets in places), default=0)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return f"{path} is damaged: its header cannot be read"
    if wanted == size:
        return None
    return f"{path} has {size} bytes, but {wanted} according to its header"


def damage_in_checkpoint(folder: Path) -> str | None:
    """A file of a folder that differs from the manifest of its checkpoint, as a message; None if
    none does, or there is no manifest."""
    try:
        manifest = json.loads((folder.parent / "manifest.json").read_text(encoding="utf-8"))
        hashes = {str(name): str(sha256) for name, sha256 in manifest["hashes"].items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return f"{folder.parent / 'manifest.json'} cannot be read"
    own = {
        folder.parent / name: sha256_of
        for name, sha256_of in hashes.items()
        if name.startswith(f"{folder.name}/") and not name.endswith(".pt")
    }
    try:
        marks = Marks().of(own)
    except OSError as error:
        return f"{error.filename} cannot be read: {error.strerror}"
    changed = next((path for path, sha256 in own.items() if marks[path].sha256 != sha256), None)
    if changed is None:
        return None
    return f"{changed} was changed after it was written: its SHA-256 differs"


@contextmanager
def without_bars() -> Iterator[None]:
    """Without progress bars of transformers inside the block."""
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()
