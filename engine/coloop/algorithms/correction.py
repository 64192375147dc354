"""Weights for tokens whose engine and trainer disagree: w = π_old(trainer) / π_rollout(engine).

Legend: ``B`` sequences, ``T`` token positions.
Weights are detached and 1 outside the mask. They are never used where the ratio of the loss is
already anchored at the engine's log-probs, which would correct twice. A loss without a ratio of its
own takes the policy of the moment for π_old, so several steps on one row set are corrected as well.
"""

from typing import Literal

import torch
from torch import Tensor

from coloop.algorithms.kl import LOG_RATIO_LIMIT
from coloop.algorithms.losses import log_ratios
from coloop.algorithms.masks import (
    check_mask,
    check_rank,
    check_same_shape,
    masked_sum,
    wide,
)

CorrectionMethod = Literal["token_tis", "icepop", "sequence_mask", "none"]


def correction_weights(
    log_probs_old: Tensor,
    log_probs_rollout: Tensor,
    mask: Tensor,
    *,
    method: CorrectionMethod | str = "token_tis",
    lowest: float | None = None,
    highest: float | None = None,
) -> Tensor:
    """Weight of each token's loss, by method. (B, T) -> (B, T).

    token_tis: clamp(w, lowest, highest) · icepop: w where lowest <= w <= highest,
    else 0 (arXiv 2510.18855) · sequence_mask: W = Π_t w of the sequence where it lies within the
    bounds, else 0.
    """
    check_rank(2, log_probs_old=log_probs_old)
    check_same_shape(log_probs_old=log_probs_old, log_probs_rollout=log_probs_rollout, mask=mask)
    check_mask(mask)
    ones = torch.ones_like(log_probs_old, dtype=torch.float32)
    if method == "none":
        return ones
    if method not in ("token_tis", "icepop", "sequence_mask"):
        raise ValueError(f"unknown correction {method!r}")
    difference = log_ratios(log_probs_old, log_probs_rollout, mask).detach()
    if method == "sequence_mask":
        total = masked_sum(difference, mask, dim=1).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        weight = total.exp()[:, None].expand_as(ones)
    else:
        weight = difference.exp()
    if method == "token_tis":
        if lowest is not None or highest is not None:
            weight = weight.clamp(lowest, highest)
    else:
        weight = torch.where(within(weight, lowest, highest), weight, 0.0)
    return torch.where(mask, weight, ones)


def within(weight: Tensor, lowest: float | None, highest: float | None) -> Tensor:
    """True where the weight lies within the bounds; None leaves that side open."""
    inside = torch.ones_like(weight, dtype=torch.bool)
    if lowest is not None:
        inside &= weight >= lowest
    if highest is not None:
        inside &= weight <= highest
    return inside


def off_policy_weights(log_probs: Tensor, *, shaping: float) -> Tensor:
    """π / (π + c), in place of the ratio for rows that others wrote (arXiv 2504.14945). (B, T)."""
    check_rank(2, log_probs=log_probs)
    probability = wide(log_probs).exp()
    return probability / (probability + shaping)
