"""Losses of a critic.

Legend: ``B`` sequences, ``T`` token positions. Does not know how returns were made.
"""

import torch
from torch import Tensor

from coloop.algorithms.shapes import check_mask, check_rank, check_same_shape, wide


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
