"""Log-probs of chosen words, and the entropy of all, in as few passes over the logits as can be.

    log p = log softmax(z)      entropy = −Σ p log p

One table of shares is kept for the backward pass. N states, V words.
"""

from typing import Any

import torch
from torch import Tensor


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
