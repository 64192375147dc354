"""Estimators of KL(π‖reference) from log-probs of sampled tokens, and the adaptive coefficient.

Legend: ``B`` sequences, ``T`` token positions; x = log π − log π_ref at the sampled token.
x is clamped to ±20.
"""

from typing import Literal

import torch
from torch import Tensor

from coloop.algorithms.masks import check_same_shape, wide

KlEstimator = Literal["k1", "k2", "k3", "k3+"]

LOG_RATIO_LIMIT = 20.0  # log ratios are kept in ±this before an exponential


def kl_divergence(
    log_probs: Tensor, log_probs_reference: Tensor, *, estimator: KlEstimator | str = "k2"
) -> Tensor:
    """Per-token estimate: k1 = x, k2 = x²/2, k3 = e^{−x} + x − 1, k3+ = k3 with k2's gradient.

    As a loss on the policy's own samples, the gradient of k1 has mean zero, that of k2 is the
    gradient of KL(π‖ref), and that of k3 the gradient of KL(ref‖π). http://joschu.net/blog/kl-approx.html
    """
    check_same_shape(log_probs=log_probs, log_probs_reference=log_probs_reference)
    difference = wide(log_probs) - wide(log_probs_reference)
    difference = difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    match estimator:
        case "k1":
            return difference
        case "k2":
            return difference.square() / 2
        case "k3":
            return torch.exp(-difference) + difference - 1
        case "k3+":
            value = torch.exp(-difference) + difference - 1
            surrogate = difference.square() / 2
            # The value of k3 with the gradient of k2.
            return surrogate + (value - surrogate).detach()
    raise ValueError(f"unknown KL estimator {estimator!r}, expected k1, k2, k3 or k3+")


def adapted_coefficient(
    coefficient: float, measured: float, *, target: float, horizon: float, samples: int
) -> float:
    """β ← β (1 + clip(KL/target − 1, ±0.2) · samples / horizon). arXiv 1909.08593."""
    if target <= 0 or horizon <= 0:
        raise ValueError(f"target and horizon must be above 0, got {target} and {horizon}")
    error = min(max(measured / target - 1.0, -0.2), 0.2)
    return coefficient * (1.0 + error * samples / horizon)
