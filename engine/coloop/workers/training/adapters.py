"""Low-rank adapters (LoRA, arXiv 2106.09685): y = W x + (alpha / rank) B A x beside frozen linear
layers; a score head learns whole.

    frozen weights, held once ─┬─ adapter of the actor      each role has modules of its own around
                               ├─ adapter of the critic     the same tensors: nothing is switched,
                               └─ adapter of a snapshot     copied or put back between two roles

Others get merged weights, W + (alpha / rank) B A, under the model's names; who stands on the same
frozen weights, and a checkpoint, gets the small matrices. Layers by peft.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from transformers import PreTrainedModel

from coloop.errors import BackendMissing, ModelUnavailable
from coloop.models import LoadedModel
from coloop.models.folder import ADAPTER, EVERY, FIRST, SECOND, is_moved, is_own, merged, plain_name
from coloop.spec.model import Lora
from coloop.workers.training.forward import blocks_of
from coloop.workers.training.shards import blend, gathered, let_go, replace_parts
from coloop.workers.training.states import Keep, ModelStates, everything


class Adapted(ABC):
    replaced = 0  # how often others took the place of the frozen weights

    def __init__(self, scale: float) -> None:
        self._scale = scale

    @abstractmethod
    def _held(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]: ...

    def weights(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, merged, by the name that it has without an adapter."""
        return merged(self._held(keep), self._scale)

    def moved(self) -> Iterator[tuple[str, Tensor]]:
        """Of `weights` those that the adapter changes."""
        return self.weights(is_moved)

    def unmoved(self) -> Iterator[tuple[str, Tensor]]:
        """The others of `weights`."""
        return self.weights(lambda name: not is_moved(name))

    def adapter(self) -> dict[str, Tensor]:
        """The small matrices and a score head, whole."""
        return dict(self._held(is_own))

    def base(self) -> Iterator[tuple[str, Tensor]]:
        """The frozen weights, whole, by the names of `weights`."""
        held = self._held(lambda name: not is_own(name))
        return ((plain_name(name), weight) for name, weight in held)


Spread = dict[int, tuple[nn.Parameter, nn.Parameter]]
"""By the id of a weight that several models have: itself, and what a backend put in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    lora: Lora
    seed: int
    """Of its first matrices; the second ones begin at zero, so the model as it was."""
    is_shared: bool = False
    """Whether others stand on the same frozen weights: nobody writes into them."""
    spread: Spread = field(default_factory=dict)
    """What a backend made of the frozen weights, for the next that stands on them."""

    @property
    def scale(self) -> float:
        return self.lora.alpha / self.lora.rank


def add_adapter(model: nn.Module, adapter: Adapter) -> None:
    """Freeze a model and add an adapter, in place; `ModelUnavailable` without such a layer."""
    if find_spec("peft") is None:
        raise BackendMissing(
            "`model.lora` needs peft; install it with `pip install 'coloop[lora]'`"
        )
    from peft import LoraConfig, inject_adapter_in_model

    there = linear_layers(model)
    asked = set(adapter.lora.targets) - {EVERY} or there
    unknown = {
        name
        for name in asked
        if not any(layer == name or name.endswith(f".{layer}") for layer in there)
    }
    if unknown or not there:
        raise ModelUnavailable(
            f"`model.lora.targets`: {type(model).__name__} has no linear layer "
            f"{', '.join(sorted(unknown))}; it has {', '.join(sorted(there)) or 'none'}"
        )
    alpha: Any = adapter.lora.alpha  # peft says whole number, and scales by any
    config = LoraConfig(
        r=adapter.lora.rank,
        lora_alpha=alpha,
        lora_dropout=adapter.lora.dropout,
        target_modules=sorted(asked),
    )
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[]), _stand_ins(model):
        torch.manual_seed(adapter.seed)
        inject_adapter_in_model(config, model, adapter_name=ADAPTER)
    for name, parameter in model.named_parameters():
        if is_own(name):
            parameter.data = parameter.data.float()
        parameter.requires_grad_(is_own(name))


@contextmanager
def _stand_ins(model: nn.Module) -> Iterator[None]:
    """Layers on `meta` get CPU weights without memory, because peft puts its matrices there."""
    waiting = [
        layer for layer in model.modules() if isinstance(layer, nn.Linear) and layer.weight.is_meta
    ]
    kept = [layer.weight for layer in waiting]
    for layer, weight in zip(waiting, kept, strict=True):
        nothing = torch.zeros((), dtype=weight.dtype).expand(weight.shape)
        layer.weight = nn.Parameter(nothing, weight.requires_grad)
    try:
        yield
    finally:
        for layer, weight in zip(waiting, kept, strict=True):
            layer.weight = weight


def linear_layers(model: nn.Module) -> set[str]:
    """Last names of the linear layers of a model's blocks."""
    return {
        name.rpartition(".")[2]
        for block in blocks_of(model)
        for name, layer in block.named_modules()
        if isinstance(layer, nn.Linear)
    }


def names_of(model: nn.Module) -> list[str]:
    return [name for name, _ in model.named_parameters()]


def beside(loaded: LoadedModel) -> LoadedModel:
    """The model with modules of its own around the same frozen weights, and its own score head."""
    kept: dict[int, Any] = {
        id(weight): weight for name, weight in loaded.model.named_parameters() if not is_own(name)
    }
    model = copy.deepcopy(loaded.model, memo=kept)
    return replace(loaded, model=model)


def share_spread(model: nn.Module, before: Mapping[str, nn.Parameter], spread: Spread) -> None:
    """What a backend put in the place of frozen weights (`before`, by name) is shared."""
    for name, parameter in list(model.named_parameters(remove_duplicate=False)):
        frozen = before.get(name)
        if frozen is None or frozen.requires_grad:
            continue
        _, held = spread.setdefault(id(frozen), (frozen, parameter))
        if held is not parameter:
            path, _, last = name.rpartition(".")
            setattr(model.get_submodule(path), last, held)


class LearningAdapter(Adapted):
    """The weights of model states with an adapter, by the names that they had without."""

    def __init__(self, states: ModelStates, adapter: Adapter, names: Sequence[str]) -> None:
        """`names`: of the model's weights."""
        super().__init__(adapter.scale)
        self._states, self._is_shared = states, adapter.is_shared
        self._names = names

    def _held(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        return self._states.weights(keep)

    def replace(self, weights: Mapping[str, Tensor]) -> None:
        self._check_own()
        self._states.replace(self._inside(weights))
        self._begin_anew()

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        self._check_own()
        frozen = (name for name in self._names if FIRST not in name and SECOND not in name)
        inside = {plain_name(name): name for name in frozen}
        missing = set(inside)
        for name, weight in given:
            if name in missing:
                layer = name.removesuffix(".weight")
                needed = {
                    inside[name],
                    *(f"{layer}{part}{ADAPTER}.weight" for part in (FIRST, SECOND)),
                }
                own = {name: dict(self.weights(needed.__contains__))[name].clone()}
                blend(own, [(name, weight)], ema)
                self._states.replace({inside[name]: own[name]})
                missing.discard(name)
        self._begin_anew()
        return missing

    def _check_own(self) -> None:
        if self._is_shared:
            raise ModelUnavailable(
                "other roles use the same frozen weights, so these cannot be replaced; use a "
                "separate `copy`: `model: {type: copy, of: ..., at: a phase}`"
            )

    def _begin_anew(self) -> None:
        """With other frozen weights the adapter changes nothing."""
        second = {
            name: torch.zeros_like(matrix)
            for name, matrix in self.adapter().items()
            if SECOND in name
        }
        self._states.replace(second)
        self.replaced += 1

    def state_dict(self, *, has_weights: bool = True) -> dict[str, Any]:
        """`model` is empty; `base` has the frozen weights once they were `replaced`."""
        state = {"optimizer": self._states.optimizer_state(), "replaced": self.replaced}
        if not has_weights:
            return state
        whole = {"model": {}, "adapter": self.adapter(), **state}
        return {**whole, "base": dict(self.base())} if self.replaced else whole

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if "adapter" not in state:
            raise KeyError("it was saved without an adapter, but `model.lora` needs one")
        held, given = self.adapter(), state["adapter"]
        check_fits(held, given)
        self.replaced = state["replaced"]
        self._states.replace({**self._inside(state.get("base", {})), **given})
        self._states.load_optimizer_state(state["optimizer"])

    def _inside(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {n: weights[plain_name(n)] for n in self._names if plain_name(n) in weights}


def check_fits(held: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Raises `KeyError`, `ValueError` where one adapter cannot take the place of another."""
    if set(held) != set(given):
        raise KeyError(f"adapters {sorted(set(held) ^ set(given))[:2]} do not match")
    for name, weight in given.items():
        if weight.shape != held[name].shape:
            there, here = tuple(weight.shape), tuple(held[name].shape)
            raise ValueError(f"{name} has shape {there}, not {here}")


class FrozenAdapter(Adapted):
    """A snapshot of a learner's adapter, on the learner's frozen weights."""

    def __init__(self, model: PreTrainedModel, adapter: Adapter) -> None:
        super().__init__(adapter.scale)
        add_adapter(model, adapter)
        model.requires_grad_(False)
        self.model = model
        self._groups: list[FSDPModule] = []
        self._show(self.adapter())

    def spread(self, groups: list[FSDPModule]) -> None:
        """The model was spread over ranks, which ask together from here on."""
        self._groups = groups

    def _held(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        let_go(self._groups)
        named = ((name, weight) for name, weight in self.model.named_parameters() if keep(name))
        if not self._groups:
            return named
        return gathered((name, weight.detach()) for name, weight in named)

    @torch.no_grad()
    def replace_adapter(self, given: Mapping[str, Tensor]) -> None:
        """Others in their place, by name. Raises `KeyError`, `ValueError` where they do not fit."""
        check_fits(self.adapter(), given)
        replace_parts(dict(self.model.named_parameters()), given)
        self._show(given)

    def _show(self, matrices: Mapping[str, Tensor]) -> None:
        """An adapter that changes nothing costs nothing: the model is its base."""
        changes = any(bool(matrix.any()) for name, matrix in matrices.items() if SECOND in name)
        for module in self.model.modules():
            enable: Callable[[bool], None] | None = getattr(module, "enable_adapters", None)
            if enable is not None and hasattr(module, "lora_A"):
                enable(changes)
        self.model.requires_grad_(False)


def blended(
    own: Mapping[str, Tensor], given: Iterable[tuple[str, Tensor]], ema: float
) -> dict[str, Tensor]:
    """ema * own + (1 - ema) * given, each matrix for itself."""
    return {
        name: own[name].mul(ema).add(weight.to(own[name].device, own[name].dtype), alpha=1.0 - ema)
        for name, weight in given
    }
