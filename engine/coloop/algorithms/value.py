"""Losses of a critic.

Legend: ``B`` sequences, ``T`` token positions. Does not know how returns were made.
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from coloop.algorithms.masks import check_mask, check_rank, check_same_shape, wide


def value_loss(
    values: Tensor,
    values_old: Tensor,
    returns: Tensor,
    mask: Tensor,
    *,
    clip: float | None = 0.5,
) -> Tensor:
    """½ max((V − R)², (clip(V, V_old ± ε) − R)²) of each token, 0 outside the mask. (B, T).

    PPO's clipped value loss (arXiv 2005.12729, section 2); `clip` None leaves it unclipped.
    """
    check_rank(2, values=values)
    check_same_shape(values=values, values_old=values_old, returns=returns, mask=mask)
    check_mask(mask)
    values, values_old, returns = wide(values), wide(values_old), wide(returns)
    squared = (values - returns).square()
    if clip is not None:
        kept = torch.clamp(values, values_old - clip, values_old + clip)
        squared = torch.maximum(squared, (kept - returns).square())
    return torch.where(mask, squared / 2, 0.0)


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> float:
    """1 − Var(R − V) / Var(R) over mask-1 tokens; 0 where the returns do not vary."""
    check_rank(2, values=values)
    check_same_shape(values=values, returns=returns, mask=mask)
    check_mask(mask)
    if int(mask.sum()) < 2:
        return 0.0
    truth = returns[mask].double()
    variance = truth.var()
    if float(variance) == 0.0:
        return 0.0
    return float(1 - (truth - values[mask].double()).var() / variance)


# Losses of numbers that are to say labels.
#
# Legend: ``N`` what is labelled: texts, steps or tokens.


def squared_errors(said: Tensor, labels: Tensor) -> Tensor:
    """(s − y)². (N,) -> (N,)."""
    check_same_shape(said=said, labels=labels)
    return (wide(said) - wide(labels)).square()


def outcome_losses(logits: Tensor, labels: Tensor, *, soft: bool = False) -> Tensor:
    """−y log σ(s) − (1 − y) log σ(−s), the cross-entropy of right and wrong. (N,) -> (N,).

    A hard label is 1 from a half on, else 0; a soft one is the probability that it is right.
    """
    check_same_shape(logits=logits, labels=labels)
    wanted = wide(labels) if soft else (wide(labels) >= 0.5).to(wide(labels).dtype)
    return binary_cross_entropy_with_logits(wide(logits), wanted, reduction="none")


def agreement(logits: Tensor, labels: Tensor) -> Tensor:
    """1 where a logit and its label stand on the same side, 1/2 for a logit of 0. (N,) -> (N,)."""
    check_same_shape(logits=logits, labels=labels)
    side = torch.sign(logits) * torch.where(labels >= 0.5, 1.0, -1.0)
    return (side + 1) / 2
