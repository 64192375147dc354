"""How a backend holds its model states: weights, gradients and the optimizer's running means.

The update itself is the same everywhere (`learner`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from coloop.errors import BackendMissing
from coloop.models.build import DTYPES
from coloop.spec.dtypes import Dtypes
from coloop.spec.training import Optimizer
from coloop.workers.training.optimizers import GroupOptimizer
from coloop.workers.training.shards import blend, replace_parts

NORM_EPSILON = 1e-6  # beside a norm that a gradient is divided by, as torch has it

Keep = Callable[[str], bool]  # which weights are asked for, by their names


def everything(name: str) -> bool:
    del name
    return True


class ModelStates:
    """Weights, gradients and running means of one group, all of them in this process; subclasses
    spread them. All ranks call alike."""

    is_whole = True  # whether the model still holds all weights, for others to read
    is_in_step = True
    """Whether all ranks make each pass together, not only meet in `sum_up`."""

    def __init__(self, model: nn.Module, section: Optimizer) -> None:
        self._model = model
        self._section = section
        self._optimizer = GroupOptimizer(model, section)

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of this rank's share of a step's loss."""
        loss.backward()  # type: ignore[no-untyped-call]

    def sum_up(self, flags: Sequence[bool]) -> list[bool]:
        """After a step's passes: sum the gradient over ranks; of each flag whether any has it."""
        return list(flags)

    def step(self, section: Optimizer, *, rate: float, clip: float | None) -> Tensor:
        """One optimizer step, clipped to a norm of `clip`; the norm before, no step if not
        finite."""
        gradients = [p.grad for p in self._model.parameters() if p.grad is not None]
        norm = self._norm(gradients)
        if torch.isfinite(norm):
            if clip is not None and (share := clip / (norm + NORM_EPSILON)) < 1:
                torch._foreach_mul_(gradients, share)
            self._optimizer.set_rate(section, rate)
            for optimizer in self._optimizer.ready():
                optimizer.step()
            self._optimizer.zero_grad()
        return norm

    def _norm(self, gradients: list[Tensor]) -> Tensor:
        norms = torch._foreach_norm(gradients) if gradients else [torch.zeros(())]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms))
        return norm

    def drop_gradient(self) -> None:
        """Forget the gradient, and whatever a failed pass has left."""
        self._optimizer.zero_grad()

    def reset_optimizer(self) -> None:
        self._optimizer = GroupOptimizer(self._model, self._section)

    def weights(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        """Weights that are asked for, whole, by Hugging Face name, one at a time in memory."""
        for name, parameter in self._model.named_parameters():
            if keep(name):
                yield name, parameter.detach()

    def replace(self, weights: Mapping[str, Tensor]) -> None:
        """Whole weights, by their names, in place of those that are held; running means stay."""
        replace_parts(dict(self._model.named_parameters()), weights)

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        """own = ema * own + (1 - ema) * given, a weight at a time; names that were not given."""
        return blend(dict(self._model.named_parameters()), given, ema)

    def state_dict(self, *, has_weights: bool = True) -> dict[str, Any]:
        """`model` and `optimizer` as one process would hold them; only the first rank's counts.
        `has_weights`: else only what is no weight."""
        weights = {"model": self._kept(self._model.state_dict())} if has_weights else {}
        return {**weights, "optimizer": self.optimizer_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """What `state_dict` gave on any number of ranks. Raises `KeyError`, `ValueError` or
        `RuntimeError` where it does not fit."""
        self._model.load_state_dict(state["model"])
        self.load_optimizer_state(state["optimizer"])

    def optimizer_state(self) -> dict[str, Any]:
        return self._kept(self._optimizer.state_dict())  # type: ignore[no-any-return]

    def _kept(self, tree: Any) -> Any:
        return tree

    def load_optimizer_state(self, state: Mapping[str, Any]) -> None:
        """What `optimizer_state` gave; raises as `load_state_dict`."""
        self._optimizer.load_state_dict(state)


# Types of weights and matrix products, as `coloop.spec.dtypes` decides them. Losses are float32.


def autocast_of(dtypes: Dtypes) -> torch.dtype | None:
    """Type of the matrix products where it is not that of all weights."""
    return DTYPES[dtypes.compute] if dtypes.casts else None


def place_weights(
    model: nn.Module, dtypes: Dtypes, *, after_each: Callable[[], None] | None = None
) -> nn.Module:
    """The model with its weights in the decided types; changed in place. A head's weight that is
    the embedding's is held as the embedding is. `after_each`: called after each cast."""
    after_each = after_each or (lambda: None)
    model.to(DTYPES[dtypes.rest])
    after_each()
    if dtypes.matrices != dtypes.rest:
        tied = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
        for layer in model.modules():
            if isinstance(layer, nn.Linear) and id(layer.weight) not in tied:
                layer.to(DTYPES[dtypes.matrices])
        after_each()
    return model


def check_trainable(dtypes: Dtypes, *, backend: str) -> None:
    """Raises `BackendMissing` where a backend cannot train in these types."""
    if dtypes.compute not in DTYPES:
        raise BackendMissing(f"`{backend}` cannot train in {dtypes.compute}; use bfloat16")
    if "float16" in (dtypes.matrices, dtypes.compute):
        raise BackendMissing(
            f"training in float16 needs loss scaling, which `{backend}` has not; use bfloat16"
        )
