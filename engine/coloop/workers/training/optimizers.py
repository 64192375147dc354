"""Optimizers of a weights group, built from its section of the spec: torch's, or our own Lion.

Weight decay is decoupled and applies to matrices only. Muon trains hidden matrices; embeddings,
heads, norms and biases go to AdamW. The learning rate is set before each update.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from coloop.errors import BackendMissing
from coloop.models.heads import score_heads
from coloop.spec.training import Optimizer as OptimizerSection
from coloop.spec.training import OtherMatrices

DECAYED = "decayed"
KEPT = "kept"


class Lion(torch.optim.Optimizer):
    """u = sign(β1 m + (1−β1) g); p ← p − lr (u + λ p); m ← β2 m + (1−β2) g. arXiv 2302.06675."""

    def __init__(
        self,
        params: Iterable[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        del closure
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                average = state["exp_avg"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(average.lerp(p.grad, 1 - beta1).sign_(), alpha=-group["lr"])
                average.lerp_(p.grad, 1 - beta2)


class GroupOptimizer:
    """The optimizers of one weights group, stepped together."""

    def __init__(self, model: nn.Module, section: OptimizerSection) -> None:
        self._name = section.name
        self._parts = _build(model, section)

    @property
    def only(self) -> torch.optim.Optimizer:
        """The optimizer of a group that has exactly one."""
        (optimizer,) = self._parts.values()
        return optimizer

    def set_rate(self, section: OptimizerSection, rate: float) -> None:
        """Set the learning rate and weight decay of the next steps. The rate of the AdamW beside
        Muon is scaled in proportion."""
        for role, optimizer in self._parts.items():
            own_section: OptimizerSection | OtherMatrices = section
            lr = rate
            if role == "others":
                own_section = _others(section)
                lr = rate * own_section.lr / section.lr if section.lr > 0 else 0.0
            for group in optimizer.param_groups:
                group["lr"] = lr
                decay = own_section.weight_decay if group["kind"] == DECAYED else 0.0
                group["decoupled" if "decoupled" in group else "weight_decay"] = decay

    def ready(self) -> Iterator[torch.optim.Optimizer]:
        """Yield each optimizer once, after decoupled weight decay where it has none of its own; the
        caller then steps it."""
        for optimizer in self._parts.values():
            _decay(optimizer)
            yield optimizer

    def zero_grad(self) -> None:
        for optimizer in self._parts.values():
            for group in optimizer.param_groups:
                for weight in group["params"]:
                    weight.grad = None

    def state_dict(self) -> dict[str, Any]:
        parts = {role: optimizer.state_dict() for role, optimizer in self._parts.items()}
        return {"name": self._name, "parts": parts}

    def load_state_dict(
        self, state: Mapping[str, Any], place: Callable[[Any, Tensor], Any] | None = None
    ) -> None:
        """`place` returns this process's part of a state value, given the value and its weight;
        None: each value is loaded whole."""
        if state["name"] != self._name:
            raise ValueError(f"the state is of {state['name']!r}, the optimizer is {self._name!r}")
        for role, optimizer in self._parts.items():
            part = state["parts"][role]
            if place is not None:
                part = {**part, "state": _placed(part["state"], optimizer, place)}
            optimizer.load_state_dict(part)


def _placed(
    state: Mapping[int, Mapping[str, Any]],
    optimizer: torch.optim.Optimizer,
    place: Callable[[Any, Tensor], Any],
) -> dict[int, dict[str, Any]]:
    weights = [p for group in optimizer.param_groups for p in group["params"]]
    return {
        number: {name: place(value, weights[number]) for name, value in values.items()}
        for number, values in state.items()
    }


def _build(model: nn.Module, section: OptimizerSection) -> dict[str, torch.optim.Optimizer]:
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not named:
        raise ValueError("no weight of this model is trained")
    everything = [p for _, p in named]
    betas, lr, momentum = section.betas, section.lr, section.momentum
    match section.name:
        case "adamw":
            return {"main": _adamw(everything, lr, betas or (0.9, 0.999), section.epsilon)}
        case "lion":
            groups = _decay_groups(everything)
            return {"main": Lion(groups, lr=lr, betas=betas or (0.95, 0.98))}
        case "sgd":
            groups = _decay_groups(everything, decoupled=0.0)
            return {"main": torch.optim.SGD(groups, lr=lr, momentum=momentum or 0.0)}
        case "rmsprop":
            return {
                "main": torch.optim.RMSprop(
                    _decay_groups(everything, decoupled=0.0),
                    lr=lr,
                    alpha=betas[1] if betas else 0.99,
                    eps=section.epsilon,
                    momentum=momentum or 0.0,
                    foreach=True,
                )
            }
        case "muon":
            return _muon(model, named, section)
    raise BackendMissing(
        f"optimizer {section.name!r} needs bitsandbytes on an NVIDIA GPU, which coloop does not "
        "install; use 'adamw'"
    )


def _muon(
    model: nn.Module, named: list[tuple[str, nn.Parameter]], section: OptimizerSection
) -> dict[str, torch.optim.Optimizer]:
    if not hasattr(torch.optim, "Muon"):
        raise BackendMissing(f"torch {torch.__version__} has no Muon; use 'adamw'")
    outer = _embeddings(model)
    hidden = [p for _, p in named if p.ndim == 2 and id(p) not in outer]
    rest = [p for _, p in named if p.ndim != 2 or id(p) in outer]
    parts: dict[str, torch.optim.Optimizer] = {}
    if hidden:
        momentum = 0.95 if section.momentum is None else section.momentum
        parts["main"] = torch.optim.Muon(
            _decay_groups(hidden), lr=section.lr, momentum=momentum, weight_decay=0.0
        )
    if rest:
        others = _others(section)
        parts["others"] = _adamw(rest, others.lr, others.betas, section.epsilon)
    return parts


def _others(section: OptimizerSection) -> OtherMatrices:
    return section.adamw or OtherMatrices(lr=min(section.lr, 1.0) or 1e-12)


def _embeddings(model: nn.Module) -> set[int]:
    ids = set()
    for name in ("get_input_embeddings", "get_output_embeddings"):
        module = getattr(model, name, lambda: None)()
        if module is not None:
            ids |= {id(p) for p in module.parameters()}
    return ids | {id(p) for head in score_heads(model).values() for p in head.parameters()}


def _adamw(
    params: list[nn.Parameter], lr: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.AdamW:
    is_fusable = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in params)
    return torch.optim.AdamW(
        _decay_groups(params), lr=lr, betas=betas, eps=epsilon, weight_decay=0.0, fused=is_fusable
    )


def _decay_groups(params: list[nn.Parameter], **extra: float) -> list[dict[str, Any]]:
    kinds = {DECAYED: [p for p in params if p.ndim >= 2], KEPT: [p for p in params if p.ndim < 2]}
    return [{"params": own, "kind": kind, **extra} for kind, own in kinds.items() if own]


@torch.no_grad()
def _decay(optimizer: torch.optim.Optimizer) -> None:
    """Decoupled decay for optimizers whose built-in decay is added to the gradient."""
    for group in optimizer.param_groups:
        shrink = group["lr"] * group.get("decoupled", 0.0)
        if shrink:
            trained: list[Tensor] = [p for p in group["params"] if p.grad is not None]
            torch._foreach_mul_(trained, 1 - shrink)


# Learning rates over the updates of one pass through a phase. All optimizer steps of an update
# have the same rate.


def learning_rate(optimizer: OptimizerSection, *, done: int, total: int | None) -> float:
    """The rate of update `done` (counted from 0) of the phase's `total`. It rises linearly to `lr`,
    the first update's already being above 0, then stays there or decays to `min_lr`."""
    warmup = warmup_updates(optimizer, total)
    if done < warmup:
        return optimizer.lr * (done + 1) / (warmup + 1)
    if optimizer.schedule == "constant":
        return optimizer.lr
    if total is None:
        raise ValueError(
            f"schedule {optimizer.schedule!r} decays over a phase, but this phase does not set its "
            "number of steps"
        )
    share = min((done - warmup) / max(total - warmup, 1), 1.0)
    if optimizer.schedule == "cosine":
        share = (1 - math.cos(math.pi * share)) / 2
    return optimizer.lr + (optimizer.min_lr - optimizer.lr) * share


def warmup_updates(optimizer: OptimizerSection, total: int | None) -> int:
    """Number of warm-up updates; a `warmup` below 1 is a fraction of the phase's updates."""
    if optimizer.warmup >= 1 or optimizer.warmup == 0:
        return int(optimizer.warmup)
    if total is None:
        raise ValueError(
            f"warmup {optimizer.warmup} is a share of a phase that does not set its number of steps"
        )
    return math.ceil(optimizer.warmup * total)
