"""Log-probs of chosen words, and the entropy of all, straight from states and the head's weights.

    z = f(states weightᵀ + bias) / heat      log p = z[target] − log Σ e^z      entropy = −Σ p log p

The vocabulary is walked in parts: of each, the logits of all states are computed and let go, and
what is left of them is their log-sum. The backward pass computes them again and makes of them at
once what states and weights learn; each part of the head's gradient is written once. Where ranks
have the vocabulary in parts of their own, one number a state goes between them.

N states, H width, V words, P words of a part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from coloop.algorithms.masks import wide
from coloop.workers.training.vocabulary import EntropyMode, first_word, summed_behind

ALIGNED = 128
"""Words of a part come in multiples of this where there are as many: products of matrices with odd
sides are slow on a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """What a family does to the logits of its head."""

    scale: float = 1.0
    cap: float | None = None
    """cap · tanh(z / cap) in place of z."""

    def __call__(self, logits: Tensor) -> Tensor:
        if self.scale != 1.0:
            logits = logits * self.scale
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)

    def slope(self, finished: Tensor) -> Tensor | float:
        """What a finished logit grows by with the raw one."""
        if self.cap is None:
            return self.scale
        return (1 - (finished / self.cap).square_()).mul_(self.scale)


PLAIN = Finish()


def finish_of(config: Any) -> Finish:
    """What a family's settings say of it."""
    cap = getattr(config, "final_logit_softcapping", None)
    scale = getattr(config, "logit_scale", None) or 1.0
    divisor = getattr(config, "logits_scaling", None) or 1.0
    return Finish(scale=float(scale) / float(divisor), cap=None if cap is None else float(cap))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """All that is no tensor which learns."""

    targets: Tensor
    """(N,) counted from the first word of this rank."""
    heat: float | Tensor
    """One, or (N, 1)."""
    entropy: EntropyMode
    part: int
    finish: Finish
    mesh: DeviceMesh | None
    """Of the ranks that have the other words."""
    compute: torch.dtype


def log_probs_of_states(
    head: nn.Linear,
    states: Tensor,
    targets: Tensor,
    heat: float | Tensor,
    entropy: EntropyMode,
    chunk: int,
    finish: Finish = PLAIN,
) -> tuple[Tensor, Tensor | None]:
    """Log-probs (N,) of the targets and entropies (N,), float32 at least, while no more logits are
    held than those of `chunk` states; entropies carry a gradient where they are `learned`."""
    weight: Tensor = head.weight
    bias: Tensor | None = head.bias
    mesh = None
    if isinstance(weight, DTensor):
        mesh = weight.device_mesh
        targets = targets - first_word(weight.shape[0], mesh)
        states = summed_behind(states, mesh)
        weight = weight.to_local()
        bias = bias.to_local() if isinstance(bias, DTensor) else None
    part = max(chunk * len(weight) // max(len(states), 1), 1)
    if part > ALIGNED:
        part -= part % ALIGNED
    call = _Call(
        targets=targets,
        heat=heat,
        entropy=entropy,
        part=part,
        finish=finish,
        mesh=mesh,
        compute=_compute_type(weight),
    )
    log_probs, spread = _LogProbsOfStates.apply(states, weight, bias, call)  # type: ignore[no-untyped-call]
    return log_probs, None if entropy == "none" else spread


class _LogProbsOfStates(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, call: _Call
    ) -> tuple[Tensor, Tensor | None]:
        narrow = states.to(call.compute)
        with torch.autocast(states.device.type, enabled=False):
            said, total, spread = _forward(narrow, weight, bias, call)
        ctx.call, ctx.state_type = call, states.dtype
        ctx.save_for_backward(narrow, weight, bias, total, spread)
        if call.entropy == "measured":
            ctx.mark_non_differentiable(spread)
        return said - total, spread

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, grad: Tensor, grad_entropy: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        states, weight, bias, total, spread = ctx.saved_tensors
        call: _Call = ctx.call
        learns, less = ctx.needs_input_grad, -grad
        to_states = torch.zeros_like(states, dtype=total.dtype) if learns[0] else None
        to_weight = torch.empty_like(weight) if learns[1] else None
        to_bias = torch.empty_like(bias) if bias is not None and learns[2] else None
        with torch.autocast(states.device.type, enabled=False):
            for own, first, place, is_here, finished in _parts(states, weight, bias, call):
                logits = finished / call.heat if _is_hot(call.heat) else finished
                away = logits - total[:, None]  # log p, (N, P)
                into = away.exp()
                if call.entropy == "learned" and grad_entropy is not None:
                    away.add_(spread[:, None]).mul_(-grad_entropy[:, None])
                    into.mul_(away.sub_(grad[:, None]))
                else:
                    into.mul_(less[:, None])
                into.scatter_add_(1, place[:, None], (grad * is_here)[:, None])
                slope = call.finish.slope(finished)
                if isinstance(slope, Tensor) or slope != 1.0:
                    into.mul_(slope)
                if _is_hot(call.heat):
                    into.div_(call.heat)
                narrow = into.to(call.compute)
                words = slice(first, first + len(own))
                if to_states is not None:
                    to_states += narrow @ own
                if to_weight is not None:
                    to_weight[words] = narrow.t() @ states
                if to_bias is not None:
                    to_bias[words] = into.sum(0)
        return (
            None if to_states is None else to_states.to(ctx.state_type),
            to_weight,
            to_bias,
            None,
        )


def _forward(
    states: Tensor, weight: Tensor, bias: Tensor | None, call: _Call
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Of each state the target's logit, the log-sum of all, and the entropy. (N,) each"""
    said = torch.zeros(len(states), dtype=_wide_type(call.compute), device=states.device)
    sums: list[Tensor] = []
    spreads: list[Tensor] = []
    for _, _, place, is_here, finished in _parts(states, weight, bias, call):
        logits = finished / call.heat if _is_hot(call.heat) else finished
        picked = logits.gather(1, place[:, None]).squeeze(1)
        said = torch.where(is_here, picked, said)
        sums.append(logits.logsumexp(-1))
        if call.entropy != "none":
            by_word = logits.log_softmax(-1)
            spreads.append(-torch.linalg.vecdot(by_word.exp(), by_word))
    own = torch.stack(sums) if sums else torch.full_like(said[None], -torch.inf)  # (parts, N)
    total = _log_sum(own.logsumexp(0), call.mesh)
    if call.mesh is not None:
        said = _sum(said, call.mesh)
    if call.entropy == "none":
        return said, total, None
    spread = torch.zeros_like(said)
    for log_sum, inner in zip(sums, spreads, strict=True):
        away = log_sum - total  # the part's own share of all, as a logarithm
        spread += away.exp() * (inner - away)
    return said, total, spread if call.mesh is None else _sum(spread, call.mesh)


def _parts(
    states: Tensor, weight: Tensor, bias: Tensor | None, call: _Call
) -> Iterator[tuple[Tensor, int, Tensor, Tensor, Tensor]]:
    """Of each part of the words: its weights, its first word, where in it each target stands and
    whether it does, and the logits (N, P) before they are divided."""
    whole = weight.to(call.compute)
    for first in range(0, len(whole), call.part):
        own = whole[first : first + call.part]
        own_bias = None if bias is None else bias[first : first + call.part].to(call.compute)
        wanted = call.targets - first
        place = wanted.clamp(0, len(own) - 1)
        finished = call.finish(wide(torch.nn.functional.linear(states, own, own_bias)))
        yield own, first, place, place == wanted, finished


def _is_hot(heat: float | Tensor) -> bool:
    return isinstance(heat, Tensor) or heat != 1.0


def _compute_type(weight: Tensor) -> torch.dtype:
    """The type in which autocast computes this product; without it, that of the weights."""
    device = weight.device.type
    if weight.dtype == torch.float64 or not torch.is_autocast_enabled(device):
        return weight.dtype
    return torch.get_autocast_dtype(device)


def _wide_type(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _sum(part: Tensor, mesh: DeviceMesh) -> Tensor:
    dist.all_reduce(part, group=mesh.get_group())
    return part


def _log_sum(own: Tensor, mesh: DeviceMesh | None) -> Tensor:
    """The log-sum over all ranks' words."""
    if mesh is None:
        return own
    greatest = own.clone()
    dist.all_reduce(greatest, op=dist.ReduceOp.MAX, group=mesh.get_group())
    return greatest + _sum((own - greatest).exp(), mesh).log()


# Log-probs of chosen words, and the entropy of all, in as few passes over the logits as can be.
#
#     log p = log softmax(z)      entropy = −Σ p log p
#
# One table of shares is kept for the backward pass. N states, V words.


class ChosenWords(torch.autograd.Function):
    """Call with `log_probs_of`."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, has_entropy: bool
    ) -> tuple[Tensor, Tensor | None]:
        by_word = torch.log_softmax(logits, -1)
        # A view would have to be told from its base where a hook hangs on it.
        said = torch.ops.aten._unsafe_view(by_word.gather(1, targets[:, None]), targets.shape)
        shares, entropy = by_word, None
        if has_entropy:
            shares = by_word.exp()
            entropy = -torch.linalg.vecdot(shares, by_word)
            ctx.mark_non_differentiable(entropy)
        elif ctx.needs_input_grad[0]:
            shares = by_word.exp_()
        ctx.save_for_backward(shares, targets)
        return said, entropy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None]:
        shares, targets = ctx.saved_tensors
        into = shares * -grad[:, None]
        return into.scatter_add_(1, targets[:, None], grad[:, None]), None, None


def log_probs_of(
    logits: Tensor, targets: Tensor, *, has_entropy: bool
) -> tuple[Tensor, Tensor | None]:
    """Log-probs (N,) of the targets (N,) among logits (N, V), float32 at least; where it is asked
    for, entropies (N,), which carry no gradient."""
    said: tuple[Tensor, Tensor | None] = ChosenWords.apply(logits, targets, has_entropy)  # type: ignore[no-untyped-call]
    return said
