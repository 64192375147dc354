"""Policy losses per token; `masks` reduces them to a number.

Legend: ``B`` sequences, ``T`` token positions; ρ = π/π_old, L = trained tokens of a sequence.
Losses take log-probs of the sampled tokens (B, T), advantages (B, T) and a bool mask, and return
(B, T) with 0 outside the mask. Log ratios are clamped to ±20.
"""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from coloop.algorithms.kl import LOG_RATIO_LIMIT
from coloop.algorithms.masks import (
    check_mask,
    check_rank,
    check_same_shape,
    masked_mean,
    masked_sum,
    wide,
)

Reduce = Literal["mean", "sum"]  # how the log ratios of a sequence's tokens become one
Divergence = Literal["tv", "kl"]


def _check(log_probs: Tensor, log_probs_old: Tensor, advantages: Tensor, mask: Tensor) -> None:
    check_rank(2, log_probs=log_probs)
    check_same_shape(
        log_probs=log_probs, log_probs_old=log_probs_old, advantages=advantages, mask=mask
    )
    check_mask(mask)


def log_ratios(log_probs: Tensor, log_probs_old: Tensor, mask: Tensor) -> Tensor:
    """log ρ in ±20, 0 outside the mask. (B, T) -> (B, T)."""
    difference = torch.where(mask, wide(log_probs) - wide(log_probs_old), 0.0)
    return difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def clip_ratio(ratio: Tensor, clip_low: float | None, clip_high: float | None) -> Tensor:
    """ρ kept in [1 − clip_low, 1 + clip_high]; None leaves that side open."""
    lowest = None if clip_low is None else 1.0 - clip_low
    highest = None if clip_high is None else 1.0 + clip_high
    return ratio if lowest is None and highest is None else ratio.clamp(lowest, highest)


def clipped(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float | None = 0.2,
    clip_high: float | None = 0.2,
    dual_clip: float | None = None,
) -> Tensor:
    """max(−Aρ, −A clip(ρ, 1−ε_low, 1+ε_high)); with dual clip at most −cA where A < 0.

    PPO (arXiv 1707.06347), clip-higher (arXiv 2503.14476), dual clip (arXiv 1912.09729).
    """
    _check(log_probs, log_probs_old, advantages, mask)
    ratio = log_ratios(log_probs, log_probs_old, mask).exp()
    loss = torch.maximum(-advantages * ratio, -advantages * clip_ratio(ratio, clip_low, clip_high))
    if dual_clip is not None:
        loss = torch.where(advantages < 0, torch.minimum(loss, -dual_clip * advantages), loss)
    return torch.where(mask, loss, 0.0)


def is_clipped(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float | None = 0.2,
    clip_high: float | None = 0.2,
) -> Tensor:
    """True where the clipped branch of `clipped` is active, so no gradient flows. (B, T)."""
    ratio = log_ratios(log_probs, log_probs_old, mask).exp()
    return mask & (-advantages * clip_ratio(ratio, clip_low, clip_high) > -advantages * ratio)


def policy_gradient(log_probs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    """−A log π. REINFORCE (Williams 1992); no ratio, no clip."""
    _check(log_probs, log_probs, advantages, mask)
    return torch.where(mask, -advantages * wide(log_probs), 0.0)


def sequence_ratio(
    log_probs: Tensor, log_probs_old: Tensor, mask: Tensor, *, reduce: Reduce | str = "mean"
) -> Tensor:
    """exp(mean_t log ρ_t) as in GSPO, or exp(Σ_t log ρ_t), the ratio of the whole text. (B,)."""
    log_ratio = log_ratios(log_probs, log_probs_old, mask)
    if reduce == "mean":
        return masked_mean(log_ratio, mask, dim=1).exp()
    if reduce == "sum":
        total = masked_sum(log_ratio, mask, dim=1)
        return total.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    raise ValueError(f"unknown reduction {reduce!r}, expected mean or sum")


def sequence_clipped(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float | None = 3e-4,
    clip_high: float | None = 4e-4,
    reduce: Reduce | str = "mean",
) -> Tensor:
    """max(−As, −A clip(s)), s the ratio of the sequence, the same at each of its tokens.

    GSPO (arXiv 2507.18071) with the mean, RLOO as TRL has it with the sum over tokens. A is the
    mean advantage of the sequence's tokens.
    """
    _check(log_probs, log_probs_old, advantages, mask)
    ratio = sequence_ratio(log_probs, log_probs_old, mask, reduce=reduce)  # (B,)
    advantage = masked_mean(advantages, mask, dim=1)  # (B,)
    loss = torch.maximum(-advantage * ratio, -advantage * clip_ratio(ratio, clip_low, clip_high))
    return torch.where(mask, loss[:, None].expand_as(log_probs), 0.0)


def is_sequence_clipped(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float | None = 3e-4,
    clip_high: float | None = 4e-4,
    reduce: Reduce | str = "mean",
) -> Tensor:
    """True on the tokens of sequences that teach nothing because s is clipped. (B, T)."""
    _check(log_probs, log_probs_old, advantages, mask)
    ratio = sequence_ratio(log_probs, log_probs_old, mask, reduce=reduce)  # (B,)
    advantage = masked_mean(advantages, mask, dim=1)  # (B,)
    clipped = -advantage * clip_ratio(ratio, clip_low, clip_high) > -advantage * ratio
    return mask & clipped[:, None]


def cispo(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    ratio_min: float | None = 0.0,
    ratio_max: float | None = 5.0,
) -> Tensor:
    """−sg(clip(ρ, ratio_min, ratio_max)) A log π; absolute bounds. CISPO (arXiv 2506.13585)."""
    _check(log_probs, log_probs_old, advantages, mask)
    ratio = log_ratios(log_probs, log_probs_old, mask).exp()
    if ratio_min is not None or ratio_max is not None:
        ratio = ratio.clamp(ratio_min, ratio_max)
    # The ratio is a weight here: the gradient goes through log π alone, on clipped tokens as well.
    return torch.where(mask, -ratio.detach() * advantages * wide(log_probs), 0.0)


def sapo(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    tau_positive: float = 1.0,
    tau_negative: float = 1.05,
) -> Tensor:
    """−A σ(τ(ρ − 1)) 4/τ with τ by the sign of A. SAPO (arXiv 2511.20347)."""
    _check(log_probs, log_probs_old, advantages, mask)
    ratio = log_ratios(log_probs, log_probs_old, mask).exp()
    tau = torch.where(advantages > 0, tau_positive, tau_negative)
    gate = torch.sigmoid(tau * (ratio - 1.0)) * 4.0 / tau
    return torch.where(mask, -advantages * gate, 0.0)


def gmpo(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float | None = 0.4,
    clip_high: float | None = 0.4,
) -> Tensor:
    """−Ā exp(mean_t log ρ_t) with log ρ clipped against the sign of A, the same at each token.

    GMPO (arXiv 2507.20673); the bounds are those of log ρ.
    """
    _check(log_probs, log_probs_old, advantages, mask)
    log_ratio = log_ratios(log_probs, log_probs_old, mask)
    lowest = None if clip_low is None else -clip_low
    if lowest is None and clip_high is None:
        kept = log_ratio
    else:
        sign = torch.sign(advantages)
        kept = sign * torch.minimum(sign * log_ratio, sign * log_ratio.clamp(lowest, clip_high))
    ratio = masked_mean(kept, mask, dim=1).exp()  # (B,)
    loss = -masked_mean(advantages, mask, dim=1) * ratio  # (B,)
    return torch.where(mask, loss[:, None].expand_as(log_probs), 0.0)


def token_divergence(log_probs: Tensor, log_probs_old: Tensor, *, kind: Divergence | str) -> Tensor:
    """How far π is from π_old, where only the sampled token and its complement count. (B, T).

    tv: |π − π_old| · kl: π_old log(π_old/π) + (1 − π_old) log((1 − π_old)/(1 − π)). DPPO (arXiv
    2602.04879), as in verl's `core_algos.py`, with its 1e-8 in the second logarithm.
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old)
    new, old = wide(log_probs), wide(log_probs_old)
    if kind == "tv":
        return (new.exp() - old.exp()).abs()
    if kind != "kl":
        raise ValueError(f"unknown divergence {kind!r}, expected tv or kl")
    others, others_old = (1 - new.exp()).clamp(min=0), (1 - old.exp()).clamp(min=0)
    rest = torch.log((others_old + 1e-8) / (others + 1e-8))
    return old.exp() * (old - new) + others_old * rest


def is_outside(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    divergence: Divergence | str = "tv",
    divergence_low: float = 0.15,
    divergence_high: float = 0.15,
) -> Tensor:
    """True where `dppo` drops a token: A pushes it on, away from π_old, and it is further than its
    bound already, `divergence_high` where it rises and `divergence_low` where it falls. (B, T)."""
    new, old = log_probs.detach(), log_probs_old.detach()
    distance = token_divergence(new, old, kind=divergence)
    rises = (advantages > 0) & (wide(new) > wide(old)) & (distance > divergence_high)
    falls = (advantages <= 0) & (wide(new) < wide(old)) & (distance > divergence_low)
    return mask & (rises | falls)


def dppo(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    divergence: Divergence | str = "tv",
    divergence_low: float = 0.15,
    divergence_high: float = 0.15,
    ratio_max: float | None = 20.0,
) -> Tensor:
    """−sg(min(ρ, ratio_max)) A log π, and 0 for tokens outside the trust region (`is_outside`).

    DPPO with the binary divergences (arXiv 2602.04879), as in verl's `core_algos.py`. The gradient
    of an uncapped token is that of −Aρ, the form of prime-rl's `loss.py`.
    """
    _check(log_probs, log_probs_old, advantages, mask)
    outside = is_outside(
        log_probs,
        log_probs_old,
        advantages,
        mask,
        divergence=divergence,
        divergence_low=divergence_low,
        divergence_high=divergence_high,
    )
    loss = cispo(log_probs, log_probs_old, advantages, mask, ratio_min=None, ratio_max=ratio_max)
    return torch.where(outside, 0.0, loss)


LOWEST_LOG_WEIGHT = math.log(1e-8)


def gamma_weights(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    k_positive: float = 2.0,
    lambda_positive: float = 3.0,
    k_negative: float = 3.0,
    lambda_negative: float = 2.0,
    correction: Tensor | None = None,
) -> Tensor:
    """φ(w) = w^k e^(λ(1 − w)), detached, with w = Π_t ρ of the sequence and k, λ by the sign of A.

    VESPO (arXiv 2602.10693), as `get_gamma_weights` in TRL's `grpo_trainer.py`: w is kept within
    [1e-8, e^20]. `correction` (B, T): weights of tokens against the engine, which multiply w.
    (B, T), 0 outside the mask.
    """
    _check(log_probs, log_probs_old, advantages, mask)
    logs = log_ratios(log_probs.detach(), log_probs_old, mask)
    if correction is not None:
        check_same_shape(log_probs=log_probs, correction=correction)
        logs = logs + correction.log().clamp(LOWEST_LOG_WEIGHT, LOG_RATIO_LIMIT)
    log_weight = masked_sum(logs, mask, dim=1).clamp(LOWEST_LOG_WEIGHT, LOG_RATIO_LIMIT)[:, None]
    is_positive = advantages >= 0
    power = torch.where(is_positive, k_positive, k_negative)
    decay = torch.where(is_positive, lambda_positive, lambda_negative)
    weights = (decay + power * log_weight - decay * log_weight.exp()).exp()
    return torch.where(mask, weights, 0.0)


def vespo(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    k_positive: float = 2.0,
    lambda_positive: float = 3.0,
    k_negative: float = 3.0,
    lambda_negative: float = 2.0,
    correction: Tensor | None = None,
) -> Tensor:
    """−φ(w) A log π, with the weights of `gamma_weights`. VESPO (arXiv 2602.10693)."""
    weights = gamma_weights(
        log_probs,
        log_probs_old,
        advantages,
        mask,
        k_positive=k_positive,
        lambda_positive=lambda_positive,
        k_negative=k_negative,
        lambda_negative=lambda_negative,
        correction=correction,
    )
    return torch.where(mask, -weights * advantages * wide(log_probs), 0.0)


def squared_log_ratios(log_probs: Tensor, log_probs_old: Tensor, mask: Tensor) -> Tensor:
    """(log ρ)², which holds π near π_old. Kimi K2.5 (arXiv 2602.02276). (B, T) -> (B, T)."""
    return log_ratios(log_probs, log_probs_old, mask).square()


def token_covariances(log_probs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    """(A − mean A)(log π − mean log π) over the batch's tokens, detached. (B, T) -> (B, T)."""
    _check(log_probs, log_probs, advantages, mask)
    known = wide(log_probs.detach())  # a selection of tokens, never a path of the gradient
    centred = (advantages - masked_mean(advantages, mask)) * (known - masked_mean(known, mask))
    return torch.where(mask, centred, 0.0)


def clip_cov_keep(
    covariances: Tensor,
    mask: Tensor,
    *,
    share: float,
    lowest: float = 1.0,
    highest: float = 5.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Mask without a random `share` of the tokens, drawn from those with covariance in the band.

    Clip-Cov (arXiv 2505.22617). `covariances` are those of the whole optimizer step.
    """
    check_same_shape(covariances=covariances, mask=mask)
    candidates = (mask & (covariances > lowest) & (covariances < highest)).flatten()
    drop = min(max(int(share * int(mask.sum())), 1), int(candidates.sum()))
    keep = mask.flatten().clone()
    indices = candidates.nonzero().flatten()
    order = torch.randperm(indices.numel(), generator=generator, device=indices.device)
    keep[indices[order[:drop]]] = False
    return keep.view_as(mask)


def kl_cov_select(covariances: Tensor, mask: Tensor, *, share: float) -> Tensor:
    """Mask of the `share` of tokens with the greatest covariance. KL-Cov (arXiv 2505.22617)."""
    check_same_shape(covariances=covariances, mask=mask)
    count = max(int(share * int(mask.sum())), 1)
    ranked = covariances.masked_fill(~mask, -torch.inf).flatten().topk(min(count, mask.numel()))
    selected = torch.zeros(mask.numel(), dtype=torch.bool, device=mask.device)
    selected[ranked.indices] = True
    return selected.view_as(mask) & mask


def kl_cov(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    selected: Tensor,
    coefficient: float = 1.0,
) -> Tensor:
    """−Aρ, plus coefficient · |log ρ| on the selected tokens. KL-Cov (arXiv 2505.22617)."""
    _check(log_probs, log_probs_old, advantages, mask)
    check_same_shape(log_probs=log_probs, selected=selected)
    log_ratio = log_ratios(log_probs, log_probs_old, mask)
    loss = -advantages * log_ratio.exp() + torch.where(selected, coefficient * log_ratio.abs(), 0.0)
    return torch.where(mask, loss, 0.0)


# Weights for the difference between trainer and rollout engine: w = π_old(trainer) /
# π_rollout(engine), detached, 1 outside the mask (``B`` sequences, ``T`` token positions). A loss
# without a ratio passes the current policy as π_old.

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

    token_tis: clamp(w, lowest, highest) · icepop: w where lowest <= w <= highest, else 0 (arXiv
    2510.18855) · sequence_mask: W = Π_t w of the sequence where that is within the bounds, else 0.
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
    """True where the weight is within the bounds, both included; None: no bound."""
    inside = torch.ones_like(weight, dtype=torch.bool)
    if lowest is not None:
        inside &= weight >= lowest
    if highest is not None:
        inside &= weight <= highest
    return inside


def off_policy_weights(log_probs: Tensor, *, shaping: float) -> Tensor:
    """π / (π + c), instead of the ratio, for rows of other writers (arXiv 2504.14945). (B, T)."""
    check_rank(2, log_probs=log_probs)
    probability = wide(log_probs).exp()
    return probability / (probability + shaping)


# Losses of a critic. Legend: ``B`` sequences, ``T`` token positions.


def value_loss(
    values: Tensor, values_old: Tensor, returns: Tensor, mask: Tensor, *, clip: float | None = 0.5
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


# Losses of predicted labels. Legend: ``N`` labels, of texts, steps or tokens.


def squared_errors(said: Tensor, labels: Tensor) -> Tensor:
    """(s − y)². (N,) -> (N,)."""
    check_same_shape(said=said, labels=labels)
    return (wide(said) - wide(labels)).square()


def outcome_losses(logits: Tensor, labels: Tensor, *, soft: bool = False) -> Tensor:
    """−y log σ(s) − (1 − y) log σ(−s), binary cross-entropy. (N,) -> (N,).

    Without `soft`, a label is 1 from 0.5 on, else 0; with it, it is a probability.
    """
    check_same_shape(logits=logits, labels=labels)
    wanted = wide(labels) if soft else (wide(labels) >= 0.5).to(wide(labels).dtype)
    return binary_cross_entropy_with_logits(wide(logits), wanted, reduction="none")


def agreement(logits: Tensor, labels: Tensor) -> Tensor:
    """1 where a logit predicts its label (1 from 0.5 on), 1/2 for a logit of 0, else 0. (N,)."""
    check_same_shape(logits=logits, labels=labels)
    side = torch.sign(logits) * torch.where(labels >= 0.5, 1.0, -1.0)
    return (side + 1) / 2
