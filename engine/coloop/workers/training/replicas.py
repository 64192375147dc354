"""Model states that every rank holds whole: each adds up the gradient of its own rows, and once an
optimizer step the gradients of all are summed.

    passes of a rank's own rows, as many as it has ──> sum over ranks ──> the same step on each

A sum over ranks is the same number on all of them, bit for bit, and so is the step that each takes
by it: weights need never be compared, gathered or sent. Nothing else is said between ranks while
they learn; what they must agree on before the step travels with the sum.
"""

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from coloop.spec.training import Optimizer
from coloop.workers.training.ranks import Ranks
from coloop.workers.training.states import WholeStates

NUMBERS_AT_ONCE = 1 << 24
"""Of a sum over ranks, which are there a second time meanwhile; a larger weight goes alone."""


class ReplicaStates(WholeStates):
    """See `ModelStates`."""

    is_in_step = False

    def __init__(self, model: nn.Module, section: Optimizer, ranks: Ranks) -> None:
        super().__init__(model, section)
        self._ranks = ranks
        trained = (weight for weight in model.parameters() if weight.requires_grad)
        self._parts = list(_in_parts(trained))

    @torch.no_grad()
    def sum_up(self, flags: Sequence[bool]) -> list[bool]:
        if self._ranks.size == 1:
            return list(flags)
        trained = [weight for part in self._parts for weight in part]
        has_learned = [weight.grad is not None for weight in trained]
        told = torch.tensor([*flags, *has_learned], dtype=torch.float32, device=trained[0].device)
        for number, part in enumerate(self._parts):
            sizes = [weight.numel() for weight in part]
            gradients = [_gradient(weight) for weight in part]
            whole = torch.cat([*gradients, *([] if number else [told])])
            del gradients
            dist.all_reduce(whole)
            *sums, rest = whole.split_with_sizes([*sizes, len(whole) - sum(sizes)])
            for weight, total in zip(part, sums, strict=True):
                weight.grad = total.view_as(weight).to(weight.dtype)
            told = told if number else rest
        is_any = [said > 0 for said in told.tolist()]
        for weight, is_learned in zip(trained, is_any[len(flags) :], strict=True):
            if not is_learned:
                weight.grad = None
        return is_any[: len(flags)]


def _gradient(weight: Tensor) -> Tensor:
    """(numel,) what this rank has learned of a weight."""
    if weight.grad is None:
        return torch.zeros(weight.numel(), dtype=torch.float32, device=weight.device)
    return weight.grad.flatten().float()


def _in_parts(weights: Iterator[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """The weights in their order, a sum's worth at a time."""
    part: list[nn.Parameter] = []
    size = 0
    for weight in weights:
        if part and size + weight.numel() > NUMBERS_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(weight)
        size += weight.numel()
    yield part
