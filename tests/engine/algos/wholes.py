"""Losses and advantages of a whole batch at once, to which parts are compared."""

import torch
from torch import Tensor

from coloop.algorithms.advantages import group_mean, scale_by_deviation
from coloop.algorithms.masks import divisor, token_weights
from coloop.algorithms.preference import sigmoid


def aggregate(
    token_losses: Tensor, mask: Tensor, aggregation: str, *, constant: float | None = None
) -> Tensor:
    """Weighted sum over divisor. (B, T) -> ()."""
    kept = torch.where(mask, token_losses, torch.zeros_like(token_losses))
    count = divisor(mask, aggregation, constant=constant)
    return (token_weights(mask, aggregation) * kept).sum() / max(count, 1e-12)


def group_mean_std(scores: Tensor, groups: Tensor, *, epsilon: float = 1e-6) -> Tensor:
    """A = (r - mean_g) / (std_g + epsilon), unbiased std. GRPO (arXiv 2402.03300). (E,) -> (E,)."""
    return scale_by_deviation(
        group_mean(scores, groups), scores, groups, deviation="unbiased", epsilon=epsilon
    )


def sorted_aot(
    chosen: Tensor, rejected: Tensor, *, beta: float = 0.1, label_smoothing: float = 0.0
) -> Tensor:
    """The logistic loss of sorted a against sorted b. AOT, unpaired (arXiv 2406.05882)."""
    return sigmoid(
        chosen.sort().values, rejected.sort().values, beta=beta, label_smoothing=label_smoothing
    )
