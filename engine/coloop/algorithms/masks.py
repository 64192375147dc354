"""Sums and means over masked tokens; the only place that divides by a count of tokens.

Legend: ``B`` sequences, ``T`` token positions.
Invariant: a mean over nothing is 0, never NaN, and what stands at masked positions (NaN and
infinity included) reaches neither the value nor the gradient.
"""

import torch
from torch import Tensor

from coloop.algorithms.shapes import check_mask, check_same_shape


def masked_sum(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Sum of `values` where `mask` is true, over `dim` or over everything."""
    check_same_shape(values=values, mask=mask)
    check_mask(mask)
    kept = torch.where(mask, values, torch.zeros((), dtype=values.dtype, device=values.device))
    return kept.sum() if dim is None else kept.sum(dim)


def masked_mean(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Mean of `values` over the true positions of `mask`; 0 where there are none."""
    total = masked_sum(values, mask, dim)
    count = mask.sum() if dim is None else mask.sum(dim)
    return total / count.clamp(min=1)


def last_true_position(mask: Tensor) -> Tensor:
    """Position of the last true entry of each row, -1 for a row without any. (B, T) -> (B,)."""
    check_mask(mask)
    positions = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, positions, -1).amax(dim=1) if mask.shape[1] else mask.sum(1) - 1
