"""Low-rank adapters (LoRA, arXiv 2106.09685): the weights of a model are frozen, beside each of
some linear layers two small matrices learn, and y = W x + (alpha / rank) B A x. A score head learns
whole.

What others get are merged weights, W + (alpha / rank) B A, under the names that the model had
before; what a checkpoint keeps besides are the small matrices, for W never changes. Layers by peft.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from coloop.errors import BackendMissing, ModelUnavailable
from coloop.models import SCORE
from coloop.spec.model import Lora
from coloop.spec.training import Optimizer
from coloop.training.forward import blocks_of
from coloop.training.states import ModelStates

BASE, FIRST, SECOND = ".base_layer.", ".lora_A.", ".lora_B."
EVERY = "all-linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """What learns beside a frozen model."""

    lora: Lora
    seed: int
    """Of its first matrices; the second ones begin at zero, so the model as it was."""

    @property
    def scale(self) -> float:
        return self.lora.alpha / self.lora.rank


def add_adapter(model: nn.Module, adapter: Adapter) -> None:
    """Freeze a model and put an adapter beside its layers; changed in place.

    Raises `ModelUnavailable` where the model has no such layer.
    """
    if find_spec("peft") is None:
        raise BackendMissing("`model.lora` needs peft; `pip install 'coloop[lora]'` brings it")
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
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(adapter.seed)
        inject_adapter_in_model(config, model)
    for name, parameter in model.named_parameters():
        if _is_own(name):
            parameter.data = parameter.data.float()
        parameter.requires_grad_(_is_own(name))


def linear_layers(model: nn.Module) -> set[str]:
    """Last names of the linear layers of a model's blocks."""
    return {
        name.rpartition(".")[2]
        for block in blocks_of(model)
        for name, layer in block.named_modules()
        if isinstance(layer, nn.Linear)
    }


class AdaptedStates:
    """Model states of a model with an adapter, by the names that it had without; see
    `ModelStates`."""

    def __init__(self, states: ModelStates, scale: float) -> None:
        self._states = states
        self._scale = scale
        self._is_replaced = False

    def backward(self, loss: Tensor) -> None:
        self._states.backward(loss)

    def step(self, section: Optimizer, *, rate: float, clip: float | None) -> Tensor:
        return self._states.step(section, rate=rate, clip=clip)

    def drop_gradient(self) -> None:
        self._states.drop_gradient()

    def reset_optimizer(self) -> None:
        self._states.reset_optimizer()

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        return merged(self._states.weights(), self._scale)

    def replace(self, weights: Mapping[str, Tensor]) -> None:
        held = self._states.state_dict()["model"]
        second = {name: torch.zeros_like(held[name]) for name in held if SECOND in name}
        base = {name: weights[_plain(name)] for name in held if _plain(name) in weights}
        self._states.replace({**base, **second})
        self._is_replaced = True

    def state_dict(self) -> dict[str, Any]:
        """`model` is empty: the weights that it began with are still there; where others took
        their place, `base` has those."""
        state = self._states.state_dict()
        own = {name: weight for name, weight in state["model"].items() if _is_own(name)}
        found = {**state, "model": {}, "adapter": own}
        if self._is_replaced:
            others = state["model"].items()
            found["base"] = {name: weight for name, weight in others if not _is_own(name)}
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        held = self._states.state_dict()["model"]
        own = {name for name in held if _is_own(name)}
        if own != set(state["adapter"]):
            raise KeyError(f"adapters {sorted(own ^ set(state['adapter']))[:2]} do not match")
        self._is_replaced = "base" in state
        whole = {**held, **state.get("base", {}), **state["adapter"]}
        self._states.load_state_dict({**state, "model": whole})


def merged(weights: Iterable[tuple[str, Tensor]], scale: float) -> Iterator[tuple[str, Tensor]]:
    """Weights of a model with an adapter as those of one without, a layer at a time.

    Args:
        weights: in the order of the model: a layer's own, then A, then B.
    """
    waiting: tuple[str, Tensor] | None = None
    first: Tensor | None = None
    for name, weight in weights:
        if BASE in name and name.endswith(".weight"):
            waiting = _plain(name), weight
        elif FIRST in name:
            first = weight
        elif SECOND in name:
            assert waiting is not None
            assert first is not None
            change = (weight.float() @ first.float()) * scale
            yield waiting[0], (waiting[1].float() + change).to(waiting[1].dtype)
        else:
            yield _plain(name), weight


def _plain(name: str) -> str:
    """What a weight was called before the adapter stood beside it."""
    return name.replace(BASE, ".")


def _is_own(name: str) -> bool:
    """Whether a weight learns: the adapter's, and those of a score head, which is kept whole."""
    return FIRST in name or SECOND in name or name.startswith(f"{SCORE}.")


def _is_named(layer: str, target: str) -> bool:
    return layer == target or target.endswith(f".{layer}")
