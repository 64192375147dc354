"""Models of a folder built without memory for their weights, which are read later, one by one.

The result is bit for bit what `from_pretrained` makes. Where that could not be so, nothing is built
and the folder is loaded whole: foreign code, quantized, missing or misshapen weights, tied weights
that differ, tables that are no function of the config.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import GenerationConfig, PretrainedConfig, PreTrainedModel
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

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

# Weights that a model is still to be given, each rank its part, so nobody needs room for all of
# them.
#     built    every weight on `meta`; there are only score heads, and tables that no file has
#     placed   types, heads and adapters, as with any model
#     given    `weights()`, once: each weight whole, by its name when the model was built
# Weights are known by identity, not by name: modules are built around them meanwhile.


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a model a weight comes to lie."""

    name: str  # the first that the model has for it now
    types: tuple[torch.dtype, ...]  # that it is cast to, one after the other


class WeightsToCome:
    def __init__(self, model: nn.Module, read: Callable[[], Iterable[tuple[str, Tensor]]]) -> None:
        """`model`: has the names and types that weights are read by. `read`: each whole."""
        named = model.named_parameters(remove_duplicate=False)
        self._weights = {name: weight for name, weight in named if weight.is_meta}
        self._types = {id(weight): [weight.dtype] for weight in self._weights.values()}
        self._read = read

    def note_types(self) -> None:
        """Weights were placed in other types: later ones are cast to these too."""
        for weight in self._weights.values():
            types = self._types[id(weight)]
            if weight.dtype != types[-1]:
                types.append(weight.dtype)

    def places_in(self, model: nn.Module) -> dict[str, Place]:
        """By name, where a weight lies in what was built of the model, one place each. Raises
        `ValueError` where the model wants a weight that nobody gives."""
        self.note_types()
        here = {id(weight): name for name, weight in model.named_parameters() if weight.is_meta}
        known = {id(weight) for weight in self._weights.values()}
        if strangers := [name for key, name in here.items() if key not in known]:
            raise ValueError(f"{len(strangers)} weights have no source, such as {strangers[0]}")
        return {
            name: Place(name=here[id(weight)], types=tuple(self._types[id(weight)]))
            for name, weight in self._weights.items()
            if id(weight) in here
        }

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, by the name that it is read by. All ranks iterate to the end."""
        yield from self._read()


class WithoutMemory(TorchFunctionMode):
    """While entered in this thread, empty tensors have no memory; tables are computed."""

    def __torch_function__(
        self, function: Any, types: Any, given: Any = (), named: Any = None
    ) -> Any:
        named = dict(named or {})
        if function is torch.empty and named.get("device") is None:
            named["device"] = torch.device("meta")
        return function(*given, **named)


logger = logging.getLogger(__name__)

FOREIGN = ("quantization_config", "transformers_weights")
"""Fields of a config with which a folder's files are not read by their names alone."""


def build_waiting(
    kind: Any,
    config: PretrainedConfig,
    held: Path | str,
    source: Path | str,
    *,
    dtype: torch.dtype,
    revision: str | None = None,
) -> tuple[PreTrainedModel, WeightsToCome] | None:
    """A folder's model and its weights to come; None where it is to be loaded whole.

    Args:
        kind: one of transformers' classes for any model.
        held: the folder of the weights, or their hub id; `source` is the folder of an adapter on
            them.
        dtype: of the weights.
        revision: on the hub.
    """
    if any(getattr(config, field, None) for field in FOREIGN):
        return None
    try:
        folder = held if isinstance(held, Path) else _downloaded(held, revision)
        if (folder / INDEX).exists() and (folder / ONE_FILE).exists():
            return None  # which of both is read, transformers decides
        built = _built(kind, config, folder, str(held), dtype)
        read = from_disk(outline_of(built))  # of its own: the model is built around later
        if not _is_whole(built, folder, read):
            return None
        model = outline_of(built)
        type_of = types_in(model, dtype)
        for name, weight in model.named_parameters():
            weight.data = weight.data.to(type_of(name) or weight.dtype)
            weight.requires_grad_(weight.is_floating_point())
        _compute_tables(model)
        _give_tables(model, folder, read, type_of)
        adapter = source if isinstance(source, Path) and source != held else folder
        if isinstance(held, Path) or score_heads(model):  # of a folder more is read than its kind
            give_scores(model, folder, adapter)
    except (
        *(OSError, ValueError, LookupError, RuntimeError),
        *(SafetensorError, CheckpointError),
    ) as error:
        logger.info("%s is loaded completely: %s", source, error)
        return None
    heads = (head.weight for head in score_heads(model).values())
    if any(tensor.is_meta for tensor in (*heads, *model.buffers())):
        return None
    model._weight_conversions = read.used()
    if adapter != folder:
        return model, WeightsToCome(model, lambda: merged_weights(adapter))
    return model, WeightsToCome(model, lambda: read_for(folder, read))


def _downloaded(name: str, revision: str | None) -> Path:
    options: dict[str, Any] = {"revision": revision, "_raise_exceptions_for_missing_entries": False}
    cached_file(name, "generation_config.json", **options)
    index, files_of = cached_file(name, INDEX, **options), cast(Any, get_checkpoint_shard_files)
    if index is not None:
        files_of(name, index, revision=revision)
    file = index or cached_file(name, ONE_FILE, **options)
    if file is None:
        raise OSError(f"{name} has neither {ONE_FILE} nor {INDEX}")
    return Path(file).parent


def _built(
    kind: Any, config: PretrainedConfig, held: Path, name: str, dtype: torch.dtype
) -> PreTrainedModel:
    config = copy.deepcopy(config)
    config.name_or_path = name
    with without_bars(), torch.random.fork_rng(devices=[]), WithoutMemory():
        made: Any = kind.from_config(config, dtype=dtype, trust_remote_code=False)
    model: PreTrainedModel = made.eval()
    if model.can_generate():
        try:
            model.generation_config = GenerationConfig.from_pretrained(held)
        except OSError:
            model.generation_config = GenerationConfig.from_pretrained(
                held, config_file_name="config.json", _from_model_config=True
            )
    return model


def _is_whole(model: PreTrainedModel, held: Path, read: Conversion) -> bool:
    shapes, tied = shapes_in(held, read), list[list[str]]()
    for names in tied_names(model):
        there = [name for name in names if name in shapes]
        shape = model.get_parameter(names[0]).shape
        if not there or any(shapes[name] != shape for name in there):
            return False
        if len(there) > 1:
            tied.append(there)
    if any(shapes.get(name) != table.shape for name, table in _kept_tables(model).items()):
        return False
    values = dict(read_for(held, read, {name for names in tied for name in names})) if tied else {}
    return all(
        name in values and torch.equal(values[name], values[names[0]])
        for names in tied
        for name in names
    )


def tied_names(model: nn.Module) -> list[list[str]]:
    """Of each weight all names under which the model has it; more than one where it is tied."""
    names: dict[int, list[str]] = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(weight), []).append(name)
    return list(names.values())


def _kept_tables(model: nn.Module) -> dict[str, Tensor]:
    kept = model.state_dict(keep_vars=True)
    return {name: table for name, table in model.named_buffers() if name in kept}


def _compute_tables(model: PreTrainedModel) -> None:
    """The buffers that no file has, computed once the model stands, in their own type."""
    for module in model.modules():
        module._is_hf_initialized = False
    with torch.random.fork_rng(devices=[]):
        draw: Any = model.initialize_weights  # nothing is drawn of weights on `meta`
        draw()


def _give_tables(
    model: PreTrainedModel,
    held: Path,
    read: Conversion,
    type_of: Callable[[str], torch.dtype | None],
) -> None:
    """The buffers that files have are small and no rank's part: they are there at once."""
    kept = _kept_tables(model)
    for name, value in read_for(held, read, kept.keys()) if kept else ():
        if name in kept:
            path, _, last = name.rpartition(".")
            dtype = type_of(name) or kept[name].dtype
            setattr(model.get_submodule(path), last, value.to(dtype, copy=True))


def give_scores(model: PreTrainedModel, held: Path, source: Path) -> None:
    """Give a model its folder's score heads: its only one, beside words, or of several nodes. They
    are small and are asked for as what they say, so they are there at once.

    `held`: the folder of the weights; `source`: that of an adapter on them where it is another.
    """
    weights = scores_among(read_part(held, f"{SCORE}."))
    if source != held:
        weights |= scores_among(read_adapter(source))
    own = score_heads(model).get(ONLY)
    if own is not None and ONLY in weights:
        own.weight = nn.Parameter(weights[ONLY].to(own.weight.dtype, copy=True))
    elif weights:
        dtype = next(model.parameters()).dtype
        add_scores(model, {node: weight.to(dtype, copy=True) for node, weight in weights.items()})


# A model apart from its weights: kept while they lie elsewhere, made whole again from them.


def outline_of(model: PreTrainedModel) -> PreTrainedModel:
    """The model without its weights, which take no memory; what else it holds is copied."""
    empty: dict[int, Any] = {
        id(p): nn.Parameter(p.detach().to("meta"), p.requires_grad) for p in model.parameters()
    }
    return copy.deepcopy(model, memo=empty)


def filled(outline: PreTrainedModel, weights: Iterable[tuple[str, Tensor]]) -> PreTrainedModel:
    """A model of the outline's shape with these weights, by name; ties hold."""
    named = dict(outline.named_parameters())
    given: dict[int, Any] = {
        id(named[name]): nn.Parameter(weight, named[name].requires_grad) for name, weight in weights
    }
    missing = [name for name, weight in named.items() if id(weight) not in given]
    if missing:
        raise ValueError(f"{len(missing)} weights are missing, such as {missing[0]}")
    return copy.deepcopy(outline, memo=given)
