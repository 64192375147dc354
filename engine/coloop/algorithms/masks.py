"""Sums and means over masked tokens, and the weights and divisors of losses.

Legend: ``B`` sequences, ``T`` token positions.
A mean over nothing is 0, not NaN. Values at masked positions, NaN and infinity included, affect
neither results nor gradients.
"""

from typing import Literal, get_args

import torch
from torch import Tensor


def masked_sum(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Sum of `values` where `mask` is true, over `dim` or over everything."""
    check_same_shape(values=values, mask=mask)
    check_mask(mask)
    kept = torch.where(mask, values, torch.zeros((), dtype=values.dtype, device=values.device))
    return kept.sum() if dim is None else kept.sum(dim)


def masked_mean(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Mean of `values` where `mask` is true, over `dim` or over everything; 0 without any."""
    total = masked_sum(values, mask, dim)
    count = mask.sum() if dim is None else mask.sum(dim)
    return total / count.clamp(min=1)


# Invariant: a wrong rank or shape raises ``ValueError`` before it can broadcast into a plausible
# number.


def check_rank(rank: int, **tensors: Tensor | None) -> None:
    """Raise ValueError unless all given tensors have `rank` dimensions; None is skipped."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.dim() != rank:
            raise ValueError(f"{name} must have rank {rank}, got shape {tuple(tensor.shape)}")


def check_same_shape(**tensors: Tensor | None) -> None:
    """Raise ValueError unless all given tensors have the same shape; None is skipped."""
    present = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    first_name, first = next(iter(present.items()))
    for name, tensor in present.items():
        if tensor.shape != first.shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}, "
                f"but {first_name} has shape {tuple(first.shape)}"
            )


def check_mask(mask: Tensor) -> None:
    """Raise ValueError unless `mask` is a bool tensor."""
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask must be bool, got {mask.dtype}")


def check_rows(like: Tensor, /, **tensors: Tensor | None) -> None:
    """Raise ValueError unless all given tensors have shape (B,), where B are the rows of `like`;
    None is skipped."""
    check_rank(1, **tensors)
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape[0] != like.shape[0]:
            raise ValueError(f"{name} has {tensor.shape[0]} rows, expected {like.shape[0]}")


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32; one in float64 stays so."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


# Legend: ``B`` sequences, ``T`` token positions. loss of a step = Σ over its micro-batches of Σ
# weights · token loss / Σ over them of the divisor, so the split changes neither loss nor gradient.

Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum", "constant"]


def token_weights(
    mask: Tensor,
    aggregation: Aggregation | str,
    *,
    row_weights: Tensor | None = None,
    row_counts: Tensor | None = None,
) -> Tensor:
    """The weight of each token's loss in the undivided sum, 0 outside the mask. (B, T) -> (B, T).

    `row_weights` scales the loss of a row; `row_counts` is how often the row counts.
    """
    check_rank(2, mask=mask)
    check_mask(mask)
    check_rows(mask, row_weights=row_weights, row_counts=row_counts)
    if aggregation not in get_args(Aggregation):
        raise ValueError(f"unknown aggregation {aggregation!r}")
    weights = mask.float()
    if aggregation == "sequence_mean":
        weights = weights / mask.sum(1, keepdim=True).clamp(min=1)
    if row_weights is not None:
        weights = weights * row_weights[:, None]
    if row_counts is not None:
        weights = weights * row_counts[:, None]
    return weights


def divisor(
    mask: Tensor,
    aggregation: Aggregation | str,
    *,
    constant: float | None = None,
    row_counts: Tensor | None = None,
) -> float:
    """The batch's share of the divisor: its tokens, its sequences, or sequences × constant.

    token_mean: Σ tokens · sequence_mean, sequence_sum: number of sequences with a trained token ·
    constant: that number × `constant` (Dr. GRPO, arXiv 2503.20783: the longest completion).
    """
    check_rank(2, mask=mask)
    check_mask(mask)
    check_rows(mask, row_counts=row_counts)
    per_row = mask.sum(1) if aggregation == "token_mean" else mask.any(1)
    per_row = per_row.double()
    total = float((per_row if row_counts is None else per_row * row_counts.double()).sum())
    if aggregation != "constant":
        return total
    if constant is None or constant <= 0:
        raise ValueError(f"aggregation 'constant' needs a constant above 0, got {constant}")
    return total * constant
