"""How per-token losses become one number: weights per token and one divisor per optimizer step.

Legend: ``B`` sequences, ``T`` token positions.
loss of a step = Σ over its micro-batches of Σ weights · token loss / Σ over them of the divisor.
Invariant: a micro-batch never divides by its own count, so the split into micro-batches, ranks,
padded or packed rows changes neither loss nor gradient.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from coloop.algorithms.masks import check_mask, check_rank, check_rows

Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum", "constant"]


def token_weights(
    mask: Tensor,
    aggregation: Aggregation | str,
    *,
    row_weights: Tensor | None = None,
    row_counts: Tensor | None = None,
) -> Tensor:
    """What each token's loss counts in the undivided sum, 0 outside the mask. (B, T) -> (B, T).

    `row_weights` scales a row's loss; `row_counts` says how often the row stands in the batch.
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
    """This batch's share of the divisor: its tokens, its sequences, or sequences × constant.

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


def aggregate(
    token_losses: Tensor,
    mask: Tensor,
    aggregation: Aggregation | str,
    *,
    constant: float | None = None,
) -> Tensor:
    """The whole of one batch at once: weighted sum over divisor; for tests and single batches."""
    weights = token_weights(mask, aggregation)
    count = divisor(mask, aggregation, constant=constant)
    kept = torch.where(mask, token_losses, torch.zeros_like(token_losses))
    return (weights * kept).sum() / max(count, 1e-12)
