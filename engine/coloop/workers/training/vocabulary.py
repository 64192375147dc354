"""Log-probs of words whose head is cut by the vocabulary over ranks: each computes with its own
words, and only one number a state goes between them, never logits.

N states, H width, V words, S of them on this rank.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from coloop.algorithms.masks import wide

EntropyMode = Literal["none", "measured", "learned"]


@dataclass(frozen=True, slots=True)
class OwnLogits:
    """What a rank says of its own words."""

    logits: Tensor
    """(N, S)."""
    first: int
    """Number of its first word."""
    mesh: DeviceMesh
    """Of the ranks that have the others."""


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
    place, size = targets - own.first, logits.shape[1]
    said = logits.new_zeros(len(place))
    if size:
        picked = logits.gather(1, place.clamp(0, size - 1)[:, None]).squeeze(1)
        said = torch.where((place >= 0) & (place < size), picked, 0.0)
    mass = (logits - greatest[:, None]).exp().sum(-1)
    mass, said = summed(torch.stack([mass, said]), mesh)
    total = greatest + mass.log()
    log_probs = said - total
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
    """Each state's greatest logit (N,) among all words; nothing learns through it."""
    with torch.no_grad():
        found = (
            logits.amax(-1) if logits.shape[1] else logits.new_full(logits.shape[:1], -torch.inf)
        )
        dist.all_reduce(found, op=dist.ReduceOp.MAX, group=mesh.get_group())
    return found


# Sums over the ranks of a group, in a graph whose other numbers are alike on all of them.
#
# summed         forward: the sum of what the ranks have; backward: nothing, all have it
# summed_behind  forward: nothing, all have it; backward: the sum of what the ranks learn from it


def summed(part: Tensor, mesh: DeviceMesh) -> Tensor:
    """The sum of the ranks' parts, on each of them."""
    found: Tensor = _Summed.apply(part, mesh)  # type: ignore[no-untyped-call]
    return found


def summed_behind(whole: Tensor, mesh: DeviceMesh) -> Tensor:
    """What all ranks have alike, where each goes on with a part of the work."""
    found: Tensor = _SummedBehind.apply(whole, mesh)  # type: ignore[no-untyped-call]
    return found


def _sum(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    found = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(found, group=mesh.get_group())
    return found


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, mesh: DeviceMesh) -> Tensor:
        del ctx
        return _sum(part, mesh)

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
        return _sum(gradient, ctx.mesh), None
