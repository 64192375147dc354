"""Log-probs of chosen words, and the entropy of all, straight from states and the head's weights.

    z = f(states weightᵀ + bias) / heat      log p = z[target] − log Σ e^z      entropy = −Σ p log p

The vocabulary is walked in parts whose logits are let go and computed again in the backward pass;
each part of the head's gradient is written once. Ranks with parts of the vocabulary exchange one
number a state.

N states, H width, V words, P words of a part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from coloop.algorithms.masks import wide

# Words whose head is cut over ranks: one number a state goes between them, never logits.
# N states, H width, V words, S of them on this rank.

EntropyMode = Literal["none", "measured", "learned"]


@dataclass(frozen=True, slots=True)
class OwnLogits:
    """What a rank says of its own words."""

    logits: Tensor  # (N, S)
    first: int  # number of its first word
    mesh: DeviceMesh  # of the ranks that have the others


def first_word(words: int, mesh: DeviceMesh) -> int:
    """Number of a rank's first word: torch cuts into parts of one size, the last ones smaller."""
    return min(-(-words // mesh.size()) * mesh.get_local_rank(), words)


def own_logits(head: nn.Linear, states: Tensor) -> OwnLogits:
    """(N, H), alike on all ranks -> the logits of this rank's words."""
    weight, bias = head.weight, head.bias
    assert isinstance(weight, DTensor)
    mesh = weight.device_mesh
    own_bias = bias.to_local() if isinstance(bias, DTensor) else None
    logits = torch.nn.functional.linear(summed_behind(states, mesh), weight.to_local(), own_bias)
    return OwnLogits(logits, first_word(weight.shape[0], mesh), mesh)


def log_probs_together(
    own: OwnLogits, targets: Tensor, heat: float | Tensor, entropy: EntropyMode
) -> tuple[Tensor, Tensor | None]:
    """Log-probs (N,) of the targets and entropies (N,) over all words, float32, on every rank."""
    mesh, logits = own.mesh, wide(own.logits)  # (N, S)
    if isinstance(heat, Tensor) or heat != 1.0:
        logits = logits / heat
    greatest = _greatest(logits, mesh)  # (N,)
    index, size = targets - own.first, logits.shape[1]
    chosen = logits.new_zeros(len(index))
    if size:
        picked = logits.gather(1, index.clamp(0, size - 1)[:, None]).squeeze(1)
        chosen = torch.where((index >= 0) & (index < size), picked, 0.0)
    mass = (logits - greatest[:, None]).exp().sum(-1)
    mass, chosen = summed(torch.stack([mass, chosen]), mesh)
    total = greatest + mass.log()
    log_probs = chosen - total
    if entropy == "none":
        return log_probs, None
    if entropy == "learned":
        return log_probs, _entropy(logits, total, mesh)
    with torch.no_grad():
        return log_probs, _entropy(logits, total, mesh)


def _entropy(logits: Tensor, total: Tensor, mesh: DeviceMesh) -> Tensor:
    """log Σ e^z − Σ p z over all words. (N, S), (N,) -> (N,)."""
    share = (logits - summed_behind(total, mesh)[:, None]).exp()
    return total - summed((share * logits).sum(-1), mesh)


def _greatest(logits: Tensor, mesh: DeviceMesh) -> Tensor:
    with torch.no_grad():
        greatest = (
            logits.amax(-1) if logits.shape[1] else logits.new_full(logits.shape[:1], -torch.inf)
        )
        dist.all_reduce(greatest, op=dist.ReduceOp.MAX, group=mesh.get_group())
    return greatest


# summed         forward: the sum of what the ranks have; backward: nothing, all have it
# summed_behind  forward: nothing, all have it; backward: the sum of what the ranks learn from it


def summed(part: Tensor, mesh: DeviceMesh) -> Tensor:
    """The sum of the ranks' parts, on each of them."""
    total: Tensor = _Summed.apply(part, mesh)  # type: ignore[no-untyped-call]
    return total


def summed_behind(whole: Tensor, mesh: DeviceMesh) -> Tensor:
    """What all ranks have alike, where each goes on with a part of the work."""
    passed: Tensor = _SummedBehind.apply(whole, mesh)  # type: ignore[no-untyped-call]
    return passed


def _sum_vocabulary(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    total = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=mesh.get_group())
    return total


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, mesh: DeviceMesh) -> Tensor:
        del ctx
        return _sum_vocabulary(part, mesh)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        del ctx
        return gradient, None


class _SummedBehind(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, whole: Tensor, mesh: DeviceMesh) -> Tensor:
        ctx.mesh = mesh
        return whole.view_as(whole)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _sum_vocabulary(gradient, ctx.mesh), None


ALIGNED = 128
"""Words of a part come in multiples of this: products with odd sides are slow on a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    scale: float = 1.0
    cap: float | None = None  # cap · tanh(z / cap) in place of z

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
    targets: Tensor  # (N,) counted from the first word of this rank
    heat: float | Tensor  # one, or (N, 1)
    entropy: EntropyMode
    part: int
    finish: Finish
    mesh: DeviceMesh | None  # of the ranks that have the other words
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
    """Log-probs (N,) of targets and entropies (N,), at least float32, `chunk` states' logits at a
    time; entropies carry a gradient where they are `learned`."""
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
        compute=compute_type(weight),
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
            chosen, total, spread = _forward(narrow, weight, bias, call)
        ctx.call, ctx.state_type = call, states.dtype
        ctx.save_for_backward(narrow, weight, bias, total, spread)
        if call.entropy == "measured":
            ctx.mark_non_differentiable(spread)
        return chosen - total, spread

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
            for own, first, index, is_here, finished in _parts(states, weight, bias, call):
                logits = finished / call.heat if is_hot(call.heat) else finished
                away = logits - total[:, None]  # log p, (N, P)
                into = away.exp()
                if call.entropy == "learned" and grad_entropy is not None:
                    away.add_(spread[:, None]).mul_(-grad_entropy[:, None])
                    into.mul_(away.sub_(grad[:, None]))
                else:
                    into.mul_(less[:, None])
                into.scatter_add_(1, index[:, None], (grad * is_here)[:, None])
                slope = call.finish.slope(finished)
                if isinstance(slope, Tensor) or slope != 1.0:
                    into.mul_(slope)
                if is_hot(call.heat):
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
    wide = torch.promote_types(call.compute, torch.float32)
    chosen = torch.zeros(len(states), dtype=wide, device=states.device)
    sums: list[Tensor] = []
    spreads: list[Tensor] = []
    for _, _, index, is_here, finished in _parts(states, weight, bias, call):
        logits = finished / call.heat if is_hot(call.heat) else finished
        picked = logits.gather(1, index[:, None]).squeeze(1)
        chosen = torch.where(is_here, picked, chosen)
        sums.append(logits.logsumexp(-1))
        if call.entropy != "none":
            by_word = logits.log_softmax(-1)
            spreads.append(-torch.linalg.vecdot(by_word.exp(), by_word))
    own = torch.stack(sums) if sums else torch.full_like(chosen[None], -torch.inf)  # (parts, N)
    total = log_sum(own.logsumexp(0), call.mesh)
    if call.mesh is not None:
        chosen = _sum(chosen, call.mesh)
    if call.entropy == "none":
        return chosen, total, None
    spread = torch.zeros_like(chosen)
    for part_sum, inner in zip(sums, spreads, strict=True):
        away = part_sum - total  # the part's own share of all, as a logarithm
        spread += away.exp() * (inner - away)
    return chosen, total, spread if call.mesh is None else _sum(spread, call.mesh)


def _parts(
    states: Tensor, weight: Tensor, bias: Tensor | None, call: _Call
) -> Iterator[tuple[Tensor, int, Tensor, Tensor, Tensor]]:
    """Of each part of the words: weights, first word, each target's place and whether it is there,
    and undivided logits (N, P)."""
    whole = weight.to(call.compute)
    for first in range(0, len(whole), call.part):
        own = whole[first : first + call.part]
        own_bias = None if bias is None else bias[first : first + call.part].to(call.compute)
        wanted = call.targets - first
        index = wanted.clamp(0, len(own) - 1)
        finished = call.finish(wide(torch.nn.functional.linear(states, own, own_bias)))
        yield own, first, index, index == wanted, finished


def is_hot(heat: float | Tensor) -> bool:
    return isinstance(heat, Tensor) or heat != 1.0


def compute_type(weight: Tensor) -> torch.dtype:
    """The type in which autocast computes this product; without it, that of the weights."""
    device = weight.device.type
    if weight.dtype == torch.float64 or not torch.is_autocast_enabled(device):
        return weight.dtype
    return torch.get_autocast_dtype(device)


def _sum(part: Tensor, mesh: DeviceMesh) -> Tensor:
    dist.all_reduce(part, group=mesh.get_group())
    return part


def log_sum(own: Tensor, mesh: DeviceMesh | None) -> Tensor:
    if mesh is None:
        return own
    greatest = own.clone()
    dist.all_reduce(greatest, op=dist.ReduceOp.MAX, group=mesh.get_group())
    return greatest + _sum((own - greatest).exp(), mesh).log()


# log p = log softmax(z), entropy = −Σ p log p, with one table of shares kept for the backward pass.
# N states, V words.


class ChosenWords(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, has_entropy: bool
    ) -> tuple[Tensor, Tensor | None]:
        by_word = torch.log_softmax(logits, -1)
        # a view would have to be told from its base where a hook hangs on it.
        chosen = torch.ops.aten._unsafe_view(by_word.gather(1, targets[:, None]), targets.shape)
        shares, entropy = by_word, None
        if has_entropy:
            shares = by_word.exp()
            entropy = -torch.linalg.vecdot(shares, by_word)
            ctx.mark_non_differentiable(entropy)
        elif ctx.needs_input_grad[0]:
            shares = by_word.exp_()
        ctx.save_for_backward(shares, targets)
        return chosen, entropy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None]:
        shares, targets = ctx.saved_tensors
        into = shares * -grad[:, None]
        return into.scatter_add_(1, targets[:, None], grad[:, None]), None, None


def log_probs_of(
    logits: Tensor, targets: Tensor, *, has_entropy: bool
) -> tuple[Tensor, Tensor | None]:
    """Log-probs (N,) of targets among logits (N, V), float32 or wider; entropies (N,) detached."""
    outputs: tuple[Tensor, Tensor | None] = ChosenWords.apply(logits, targets, has_entropy)  # type: ignore[no-untyped-call]
    return outputs
