"""Low-rank adapters (LoRA, arXiv 2106.09685): the weights of a model are frozen, beside each of
some linear layers two small matrices learn, and y = W x + (alpha / rank) B A x. A score head learns
whole.

    frozen weights, held once ─┬─ adapter of the actor      each role has modules of its own around
                               ├─ adapter of the critic     the same tensors: nothing is switched,
                               └─ adapter of a snapshot     copied or put back between two roles

What others get are merged weights, W + (alpha / rank) B A, under the names that the model had
before; who stands on the same frozen weights gets the small matrices. What a checkpoint keeps are
these, for W never changes. Layers by peft.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from coloop.errors import BackendMissing, ModelUnavailable
from coloop.models import LoadedModel
from coloop.models.adapter_folder import (
    ADAPTER,
    FIRST,
    SECOND,
    is_moved,
    is_own,
    merged,
    plain_name,
)
from coloop.spec.model import Lora
from coloop.spec.training import Optimizer
from coloop.workers.training.forward import blocks_of
from coloop.workers.training.states import Keep, ModelStates, blend, everything

EVERY = "all-linear"


class Adapted(Protocol):
    """Weights that are an adapter on frozen ones."""

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, merged, by the name that it has without an adapter."""
        ...

    def moved(self) -> Iterator[tuple[str, Tensor]]:
        """Of `weights` those that the adapter changes."""
        ...

    def unmoved(self) -> Iterator[tuple[str, Tensor]]:
        """The others of `weights`."""
        ...

    def adapter(self) -> dict[str, Tensor]:
        """The small matrices and a score head, whole."""
        ...

    def base(self) -> Iterator[tuple[str, Tensor]]:
        """What they stand on, whole, by the names of `weights`."""
        ...

    @property
    def replaced(self) -> int:
        """How often others took the place of the frozen weights."""
        ...


Spread = dict[int, tuple[nn.Parameter, nn.Parameter]]
"""By the id of a weight that several models have: itself, and what a backend put in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """What learns beside a frozen model."""

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
    """Freeze a model and put an adapter beside its layers; changed in place.

    Raises `ModelUnavailable` where the model has no such layer.
    """
    if find_spec("peft") is None:
        raise BackendMissing(
            "`model.lora` needs peft; install it with `pip install 'coloop[lora]'`"
        )
    from peft import LoraConfig, inject_adapter_in_model

    there = linear_layers(model)
    asked = set(adapter.lora.targets) - {EVERY} or there
    unknown = {name for name in asked if not any(_is_named(layer, name) for layer in there)}
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
    """Meanwhile layers whose weights are still to come have others without memory on the CPU: an
    adapter's matrices are put where the layer's weight is, and on `meta` they would be lost."""
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
    """Of its weights, in its own order."""
    return [name for name, _ in model.named_parameters()]


def beside(loaded: LoadedModel) -> LoadedModel:
    """The same model again, with modules of its own around the same frozen weights; a score head is
    its own as well."""
    kept: dict[int, Any] = {
        id(weight): weight for name, weight in loaded.model.named_parameters() if not is_own(name)
    }
    model = copy.deepcopy(loaded.model, memo=kept)
    return replace(loaded, model=model)


def share_spread(model: nn.Module, before: Mapping[str, nn.Parameter], spread: Spread) -> None:
    """Where a backend has put something in the place of frozen weights (`before`, by name): what
    the first of those that stand on them got is what all have."""
    for name, parameter in list(model.named_parameters(remove_duplicate=False)):
        frozen = before.get(name)
        if frozen is None or frozen.requires_grad:
            continue
        _, held = spread.setdefault(id(frozen), (frozen, parameter))
        if held is not parameter:
            path, _, last = name.rpartition(".")
            setattr(model.get_submodule(path), last, held)


class AdaptedStates:
    """Model states of a model with an adapter, by the names that it had without; see
    `ModelStates`."""

    def __init__(self, states: ModelStates, adapter: Adapter, names: Sequence[str]) -> None:
        """
        Args:
            names: of the model's weights.
        """
        self._states = states
        self._scale, self._is_shared = adapter.scale, adapter.is_shared
        self._names = names
        self._replaced = 0

    @property
    def replaced(self) -> int:
        return self._replaced

    @property
    def is_in_step(self) -> bool:
        return self._states.is_in_step

    def backward(self, loss: Tensor) -> None:
        self._states.backward(loss)

    def sum_up(self, flags: Sequence[bool]) -> list[bool]:
        return self._states.sum_up(flags)

    def step(self, section: Optimizer, *, rate: float, clip: float | None) -> Tensor:
        return self._states.step(section, rate=rate, clip=clip)

    def drop_gradient(self) -> None:
        self._states.drop_gradient()

    def reset_optimizer(self) -> None:
        self._states.reset_optimizer()

    def weights(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        return merged(self._states.weights(keep), self._scale)

    def moved(self) -> Iterator[tuple[str, Tensor]]:
        """Of `weights` those that the adapter changes."""
        return self.weights(is_moved)

    def unmoved(self) -> Iterator[tuple[str, Tensor]]:
        """The others of `weights`."""
        return self.weights(lambda name: not is_moved(name))

    def adapter(self) -> dict[str, Tensor]:
        """The small matrices and a score head, whole."""
        return dict(self._states.weights(is_own))

    def base(self) -> Iterator[tuple[str, Tensor]]:
        """What they stand on, whole, by the names of `weights`."""
        held = self._states.weights(lambda name: not is_own(name))
        return ((plain_name(name), weight) for name, weight in held)

    def replace(self, weights: Mapping[str, Tensor]) -> None:
        self._check_own()
        self._states.replace(self._inside(weights))
        self._begin_anew()

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        self._check_own()
        inside = {plain_name(one): one for one in self._names if not is_matrix(one)}
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
        """Raises `ModelUnavailable` where the frozen weights are not to be replaced."""
        if self._is_shared:
            raise ModelUnavailable(
                "other roles use the same frozen weights, so these cannot be replaced; use a "
                "separate `copy`: `model: {type: copy, of: ..., at: a phase}`"
            )

    def _begin_anew(self) -> None:
        """Others have taken the place of the frozen weights: the adapter changes nothing."""
        second = {
            name: torch.zeros_like(one) for name, one in self.adapter().items() if is_second(name)
        }
        self._states.replace(second)
        self._replaced += 1

    def state_dict(self, *, has_weights: bool = True) -> dict[str, Any]:
        """`model` is empty: the weights that it began with are still there; where others took
        their place (`replaced` times), `base` has those."""
        state = {"optimizer": self._states.optimizer_state(), "replaced": self._replaced}
        if not has_weights:
            return state
        found = {"model": {}, "adapter": self.adapter(), **state}
        return {**found, "base": dict(self.base())} if self._replaced else found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if "adapter" not in state:
            raise KeyError("it was saved without an adapter, but `model.lora` needs one")
        held, given = self.adapter(), state["adapter"]
        check_fits(held, given)
        self._replaced = state["replaced"]
        self._states.replace({**self._inside(state.get("base", {})), **given})
        self._states.load_optimizer_state(state["optimizer"])

    def optimizer_state(self) -> dict[str, Any]:
        return self._states.optimizer_state()

    def load_optimizer_state(self, state: Mapping[str, Any]) -> None:
        self._states.load_optimizer_state(state)

    def _inside(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the names that they have beside an adapter."""
        return {n: weights[plain_name(n)] for n in self._names if plain_name(n) in weights}


def check_fits(held: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Raises `KeyError`, `ValueError` where one adapter cannot take the place of another."""
    if set(held) != set(given):
        raise KeyError(f"adapters {sorted(set(held) ^ set(given))[:2]} do not match")
    for name, weight in given.items():
        if weight.shape != held[name].shape:
            there, here = tuple(weight.shape), tuple(held[name].shape)
            raise ValueError(f"{name} has shape {there}, not {here}")


def is_matrix(name: str) -> bool:
    """Whether a weight is one of the two of a layer."""
    return FIRST in name or SECOND in name


def is_second(name: str) -> bool:
    """Whether a weight is the second matrix of a layer, which begins at zero."""
    return SECOND in name


def _is_named(layer: str, target: str) -> bool:
    return layer == target or target.endswith(f".{layer}")
