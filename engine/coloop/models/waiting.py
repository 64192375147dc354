"""Builds models on `meta`; their weights are read later from the model's folder, one by one.

The result equals that of `from_pretrained` bit for bit. A folder for which that is not certain is
loaded as a whole instead: custom code, quantized weights, missing weights or wrong shapes, tied
weights with different values, buffers that do not follow from the config.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import GenerationConfig, PretrainedConfig, PreTrainedModel

from coloop.errors import CheckpointError
from coloop.models.folder import (
    INDEX,
    ONE_FILE,
    merged_weights,
    read_adapter,
    read_for,
    read_part,
    shapes_in,
)
from coloop.models.heads import ONLY, SCORE, add_scores, score_heads, scores_among
from coloop.models.on_disk import Conversion, from_disk, types_in, without_bars

# Weights that a model gets after it is sharded: each rank copies its part of one weight at a time,
# so no process has memory for all of them.
#     built    weights on `meta`; only score heads and buffers have values
#     placed   types, heads and adapters are set up, as with any model
#     given    `weights()`, once: each whole weight, by its name when the model was built
# Weights are known by identity, not by name: wrapping the model in modules changes names.


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The parameter that a weight is copied to."""

    name: str  # its first name in the model as it is now
    types: tuple[torch.dtype, ...]  # it is cast to each, in this order


class WeightsToCome:
    def __init__(self, model: nn.Module, read: Callable[[], Iterable[tuple[str, Tensor]]]) -> None:
        """`model`: has the names and types under which `read` returns the whole weights."""
        parameters = model.named_parameters(remove_duplicate=False)
        self._weights = {name: weight for name, weight in parameters if weight.is_meta}
        self._types = {id(weight): [weight.dtype] for weight in self._weights.values()}
        self._read = read

    def note_types(self) -> None:
        """Record the types that weights have now; they are cast to these as well."""
        for weight in self._weights.values():
            types = self._types[id(weight)]
            if weight.dtype != types[-1]:
                types.append(weight.dtype)

    def places_in(self, model: nn.Module) -> dict[str, Place]:
        """By name in `weights`, the parameter of `model` that each is copied to. Raises
        `ValueError` if a parameter of the model has no such weight."""
        self.note_types()
        names = {id(weight): name for name, weight in model.named_parameters() if weight.is_meta}
        known = {id(weight) for weight in self._weights.values()}
        if unknown := [name for key, name in names.items() if key not in known]:
            raise ValueError(f"{len(unknown)} weights have no source, such as {unknown[0]}")
        return {
            name: Place(name=names[id(weight)], types=tuple(self._types[id(weight)]))
            for name, weight in self._weights.items()
            if id(weight) in names
        }

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each whole weight with its name in the folder. All ranks iterate to the end."""
        yield from self._read()


class EmptyOnMeta(TorchFunctionMode):
    """A context that puts this thread's `torch.empty` on `meta`; buffers are computed as usual."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.empty and kwargs.get("device") is None:
            kwargs["device"] = torch.device("meta")
        return function(*args, **kwargs)


logger = logging.getLogger(__name__)

UNSUPPORTED_FIELDS = ("quantization_config", "transformers_weights")
"""Config fields that change how files are read; a folder with one is loaded as a whole."""


def build_without_weights(
    auto_class: Any,
    config: PretrainedConfig,
    folder: Path,
    source: Path,
    *,
    dtype: torch.dtype,
) -> tuple[PreTrainedModel, WeightsToCome] | None:
    """A folder's model on `meta` and what reads its weights; None: load it as a whole.

    Args:
        auto_class: `AutoModelForCausalLM` or another of transformers' auto classes.
        folder: of the full weights.
        source: folder of an adapter for them; else the same as `folder`.
        dtype: of the weights.
    """
    if any(getattr(config, field, None) for field in UNSUPPORTED_FIELDS):
        return None
    try:
        if (folder / INDEX).exists() and (folder / ONE_FILE).exists():
            return None  # transformers decides which of them it reads
        built = _built(auto_class, config, folder, dtype)
        conversion = from_disk(outline_of(built))  # on a copy: the model itself is changed later
        if not _is_complete(built, folder, conversion):
            return None
        model = outline_of(built)
        type_of = types_in(model, dtype)
        for name, weight in model.named_parameters():
            weight.data = weight.data.to(type_of(name) or weight.dtype)
            weight.requires_grad_(weight.is_floating_point())
        _compute_buffers(model)
        _load_buffers(model, folder, conversion, type_of)
        load_score_heads(model, folder, source)
    except (
        *(OSError, ValueError, LookupError, RuntimeError),
        *(SafetensorError, CheckpointError),
    ) as error:
        logger.info("%s is loaded completely: %s", source, error)
        return None
    heads = (head.weight for head in score_heads(model).values())
    if any(tensor.is_meta for tensor in (*heads, *model.buffers())):
        return None
    model._weight_conversions = conversion.used()
    if source != folder:
        return model, WeightsToCome(model, lambda: merged_weights(source))
    return model, WeightsToCome(model, lambda: read_for(folder, conversion))


def _built(
    auto_class: Any, config: PretrainedConfig, folder: Path, dtype: torch.dtype
) -> PreTrainedModel:
    config = copy.deepcopy(config)
    config.name_or_path = str(folder)
    with without_bars(), torch.random.fork_rng(devices=[]), EmptyOnMeta():
        built: Any = auto_class.from_config(config, dtype=dtype, trust_remote_code=False)
    model: PreTrainedModel = built.eval()
    if model.can_generate():
        try:
            model.generation_config = GenerationConfig.from_pretrained(folder)
        except OSError:
            model.generation_config = GenerationConfig.from_pretrained(
                folder, config_file_name="config.json", _from_model_config=True
            )
    return model


def _is_complete(model: PreTrainedModel, folder: Path, conversion: Conversion) -> bool:
    """Whether a folder has every weight and saved buffer in its shape, and ties have one value."""
    shapes, tied = shapes_in(folder, conversion), list[list[str]]()
    for names in tied_names(model):
        present = [name for name in names if name in shapes]
        shape = model.get_parameter(names[0]).shape
        if not present or any(shapes[name] != shape for name in present):
            return False
        if len(present) > 1:
            tied.append(present)
    if any(shapes.get(name) != buffer.shape for name, buffer in _saved_buffers(model).items()):
        return False
    wanted = {name for names in tied for name in names}
    values = dict(read_for(folder, conversion, wanted)) if wanted else {}
    return all(
        name in values and torch.equal(values[name], values[names[0]])
        for names in tied
        for name in names
    )


def tied_names(model: nn.Module) -> list[list[str]]:
    """All names of each weight in the model; more than one if it is tied."""
    names: dict[int, list[str]] = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(weight), []).append(name)
    return list(names.values())


def _saved_buffers(model: nn.Module) -> dict[str, Tensor]:
    saved = model.state_dict(keep_vars=True)
    return {name: buffer for name, buffer in model.named_buffers() if name in saved}


def _compute_buffers(model: PreTrainedModel) -> None:
    """Compute the buffers that no file contains, in their own type, once the model is built."""
    for module in model.modules():
        module._is_hf_initialized = False
    with torch.random.fork_rng(devices=[]):
        initialize: Any = model.initialize_weights  # it has no effect on weights on `meta`
        initialize()


def _load_buffers(
    model: PreTrainedModel,
    folder: Path,
    conversion: Conversion,
    type_of: Callable[[str], torch.dtype | None],
) -> None:
    """Load the buffers that files contain now: they are small and are not sharded."""
    saved = _saved_buffers(model)
    for name, value in read_for(folder, conversion, saved.keys()) if saved else ():
        if name in saved:
            path, _, attribute = name.rpartition(".")
            dtype = type_of(name) or saved[name].dtype
            setattr(model.get_submodule(path), attribute, value.to(dtype, copy=True))


def load_score_heads(model: PreTrainedModel, base: Path, source: Path) -> None:
    """Load the score heads of a folder into a model; heads that it lacks are added.

    `base`: folder of the full weights; `source`: of an adapter for them, or the same folder.
    """
    weights = scores_among(read_part(base, f"{SCORE}."))
    if source != base:
        weights |= scores_among(read_adapter(source))
    own = score_heads(model).get(ONLY)
    if own is not None and ONLY in weights:
        own.weight = nn.Parameter(weights[ONLY].to(own.weight.dtype, copy=True))
    elif weights:
        dtype = next(model.parameters()).dtype
        add_scores(model, {node: weight.to(dtype, copy=True) for node, weight in weights.items()})


# A model without its weights, kept while they are elsewhere, and a model made from it and them.


def outline_of(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model with its weights on `meta`."""
    empty: dict[int, Any] = {
        id(p): nn.Parameter(p.detach().to("meta"), p.requires_grad) for p in model.parameters()
    }
    return copy.deepcopy(model, memo=empty)


def filled(outline: PreTrainedModel, weights: Iterable[tuple[str, Tensor]]) -> PreTrainedModel:
    """A copy of an outline with these weights, by name; tied weights stay tied. Raises `ValueError`
    if one is missing."""
    named = dict(outline.named_parameters())
    given: dict[int, Any] = {
        id(named[name]): nn.Parameter(weight, named[name].requires_grad) for name, weight in weights
    }
    missing = [name for name, weight in named.items() if id(weight) not in given]
    if missing:
        raise ValueError(f"{len(missing)} weights are missing, such as {missing[0]}")
    return copy.deepcopy(outline, memo=given)
