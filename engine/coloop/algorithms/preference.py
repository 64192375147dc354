"""Losses of preference pairs, one number per pair.

Legend: ``P`` pairs. a = log π(chosen) − log π_ref(chosen) and b the same of the rejected side, sums
or means over the side's trained tokens; z = a − b. Losses without a reference use log π only.
Losses of z alone take soft labels: p f(z) + (1 − p) f(−z), p the probability that chosen is better.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from coloop.algorithms.masks import (
    check_rank,
    check_rows,
    check_same_shape,
    masked_mean,
    masked_sum,
    wide,
)


def side_log_ratios(
    log_probs: Tensor, log_probs_reference: Tensor, mask: Tensor, *, mean: bool = False
) -> Tensor:
    """Σ_t or mean_t of log π − log π_ref over a side's trained tokens. (P, T) -> (P,)."""
    check_rank(2, log_probs=log_probs)
    check_same_shape(log_probs=log_probs, log_probs_reference=log_probs_reference, mask=mask)
    difference = wide(log_probs) - wide(log_probs_reference)
    return masked_mean(difference, mask, dim=1) if mean else masked_sum(difference, mask, dim=1)


def _check(chosen: Tensor, rejected: Tensor, probability: Tensor | None = None) -> None:
    check_rank(1, chosen=chosen, rejected=rejected)
    check_rows(chosen, rejected=rejected, probability=probability)


def _soft(loss: Callable[[Tensor], Tensor], z: Tensor, probability: Tensor | None) -> Tensor:
    if probability is None:
        return loss(z)
    return probability * loss(z) + (1 - probability) * loss(-z)


def sigmoid(
    chosen: Tensor,
    rejected: Tensor,
    *,
    beta: float = 0.1,
    label_smoothing: float = 0.0,
    probability: Tensor | None = None,
) -> Tensor:
    """−(1−s) log σ(βz) − s log σ(−βz). DPO (arXiv 2305.18290), conservative with s > 0.

    SPIN (arXiv 2401.01335) is the same with real data as chosen, own text as rejected and the
    previous self as reference.
    """
    _check(chosen, rejected, probability)
    return _soft(lambda z: _logistic(beta * z, label_smoothing), chosen - rejected, probability)


def _logistic(lead: Tensor, smooth: float) -> Tensor:
    if smooth == 0.0:
        return -logsigmoid(lead)
    return -(1 - smooth) * logsigmoid(lead) - smooth * logsigmoid(-lead)


def hinge(
    chosen: Tensor, rejected: Tensor, *, beta: float = 0.1, probability: Tensor | None = None
) -> Tensor:
    """max(0, 1 − βz). SLiC (arXiv 2305.10425)."""
    _check(chosen, rejected, probability)
    return _soft(lambda z: torch.relu(1 - beta * z), chosen - rejected, probability)


def ipo(
    chosen: Tensor, rejected: Tensor, *, beta: float = 0.1, probability: Tensor | None = None
) -> Tensor:
    """(z − 1/(2β))². IPO (arXiv 2310.12036); its z is of means over tokens."""
    _check(chosen, rejected, probability)
    return _soft(lambda z: (z - 1 / (2 * beta)).square(), chosen - rejected, probability)


def robust(
    chosen: Tensor, rejected: Tensor, *, beta: float = 0.1, label_smoothing: float = 0.0
) -> Tensor:
    """(−(1−s) log σ(βz) + s log σ(−βz)) / (1 − 2s). Robust DPO (arXiv 2403.00409)."""
    _check(chosen, rejected)
    z, smooth = chosen - rejected, label_smoothing
    loss = -(1 - smooth) * logsigmoid(beta * z) + smooth * logsigmoid(-beta * z)
    return loss / (1 - 2 * smooth)


def exo(
    chosen: Tensor, rejected: Tensor, *, beta: float = 0.1, label_smoothing: float = 1e-3
) -> Tensor:
    """σ(βz)(log σ(βz) − log(1−s)) + σ(−βz)(log σ(−βz) − log s). EXO (arXiv 2402.00856)."""
    _check(chosen, rejected)
    z = beta * (chosen - rejected)
    smooth = torch.tensor(label_smoothing or 1e-3, device=z.device)
    forward = torch.sigmoid(z) * (logsigmoid(z) - torch.log1p(-smooth))
    return forward + torch.sigmoid(-z) * (logsigmoid(-z) - torch.log(smooth))


def nca(chosen: Tensor, rejected: Tensor, *, beta: float = 0.1) -> Tensor:
    """−log σ(βa) − ½ log σ(−βa) − ½ log σ(−βb). NCA (arXiv 2402.05369)."""
    _check(chosen, rejected)
    attract = -logsigmoid(beta * chosen)
    return attract - logsigmoid(-beta * chosen) / 2 - logsigmoid(-beta * rejected) / 2


def bco(
    chosen: Tensor, rejected: Tensor, *, beta: float = 0.1, shift: Tensor | float = 0.0
) -> Tensor:
    """−log σ(βa − δ) − log σ(−(βb − δ)), δ the mean of all βa and βb. BCO (arXiv 2404.04656).

    Args:
        shift: δ, (P,) or one number.
    """
    _check(chosen, rejected)
    return -logsigmoid(beta * chosen - shift) - logsigmoid(shift - beta * rejected)


def mean_reward(chosen: Tensor, rejected: Tensor, counts: Tensor, *, beta: float = 0.1) -> Tensor:
    """δ of `bco`: the mean of βa and βb over pairs, each as often as it was drawn. (P,) -> ()."""
    _check(chosen, rejected)
    check_rows(chosen, counts=counts)
    return beta * (counts * (chosen + rejected)).sum() / (2 * counts.sum().clamp(min=1))


def sppo(chosen: Tensor, rejected: Tensor, *, beta: float = 0.1) -> Tensor:
    """(a − 1/(2β))² + (b + 1/(2β))². SPPO with hard labels (arXiv 2405.00675)."""
    _check(chosen, rejected)
    half = 1 / (2 * beta)
    return (chosen - half).square() + (rejected + half).square()


def sorted_opposites(chosen: Tensor, rejected: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """What `aot` compares each side with: both sides are sorted over the batch; a chosen side gets
    the b of equal rank, a rejected one the a of equal rank. The sort is stable. (P,) each.

    Args:
        counts: how often each pair was drawn, whole numbers from 1. A pair that was drawn several
            times has several ranks, and gets the mean over these.
    """
    _check(chosen, rejected)
    check_rows(chosen, counts=counts)
    draws = counts.round().long().clamp(min=1)
    of = torch.arange(chosen.numel(), device=chosen.device).repeat_interleave(draws)  # (copies,)
    up, low = (side[of].sort(stable=True) for side in (chosen, rejected))
    against_chosen = torch.zeros_like(chosen).index_add(0, of[up.indices], low.values)
    against_rejected = torch.zeros_like(rejected).index_add(0, of[low.indices], up.values)
    return against_chosen / draws, against_rejected / draws


def aot(
    chosen: Tensor,
    rejected: Tensor,
    against_chosen: Tensor,
    against_rejected: Tensor,
    *,
    beta: float = 0.1,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The logistic loss of sorted a against sorted b, unpaired: f(a − b of equal rank) and f(a of
    equal rank − b). AOT (arXiv 2406.05882).

    Each comparison occurs for two pairs, once with the gradient of each side, and half of its value
    each time. So the sum over pairs is the loss of the sorted batch, in value and gradient, if the
    opposites are those of the current weights.
    """
    _check(chosen, rejected)
    check_rows(chosen, against_chosen=against_chosen, against_rejected=against_rejected)
    smooth = label_smoothing
    both = sigmoid(chosen, against_chosen.detach(), beta=beta, label_smoothing=smooth) + sigmoid(
        against_rejected.detach(), rejected, beta=beta, label_smoothing=smooth
    )
    return both - both.detach() / 2


def apo(chosen: Tensor, rejected: Tensor, *, beta: float = 0.1) -> Tensor:
    """1 − σ(βa) + σ(βb), the "zero" form. APO (arXiv 2408.06266)."""
    _check(chosen, rejected)
    return 1 - torch.sigmoid(beta * chosen) + torch.sigmoid(beta * rejected)


def kto(chosen: Tensor, rejected: Tensor, divergence: Tensor, *, beta: float = 0.1) -> Tensor:
    """½ (1 − σ(β(a − z0))) + ½ (1 − σ(β(z0 − b))): chosen is desirable, rejected is not.

    KTO with equal weights (arXiv 2402.01306); z0, the divergence, is that of the whole batch.
    """
    _check(chosen, rejected)
    check_rows(chosen, divergence=divergence)
    desired = 1 - torch.sigmoid(beta * (chosen - divergence))
    undesired = 1 - torch.sigmoid(beta * (divergence - rejected))
    return (desired + undesired) / 2


def discopop(
    chosen: Tensor, rejected: Tensor, *, beta: float = 0.05, temperature: float = 0.05
) -> Tensor:
    """(1−m)(−log σ(βz)) + m e^{−βz}, m = σ(βz/τ). DiscoPOP (arXiv 2406.08414)."""
    _check(chosen, rejected)
    z = beta * (chosen - rejected)
    modulation = torch.sigmoid(z / temperature)
    return -logsigmoid(z) * (1 - modulation) + torch.exp(-z) * modulation


def simpo(
    chosen: Tensor,
    rejected: Tensor,
    *,
    beta: float = 2.0,
    gamma: float = 0.5,
    label_smoothing: float = 0.0,
) -> Tensor:
    """−(1−s) log σ(βz − γ) − s log σ(γ − βz), z of mean log-probs without a reference. SimPO (arXiv
    2405.14734)."""
    _check(chosen, rejected)
    return _logistic(beta * (chosen - rejected) - gamma, label_smoothing)


LARGEST_LOG_PROB = -1e-6
"""Log-probs are kept at or below this before odds are taken, which are infinite at 0."""


def log_odds(log_probs: Tensor) -> Tensor:
    """log(p / (1 − p)) of p = e^x. (P,) -> (P,)."""
    known = wide(log_probs).clamp(max=LARGEST_LOG_PROB)
    return known - torch.log(-torch.expm1(known))


def orpo(chosen: Tensor, rejected: Tensor, imitation: Tensor, *, beta: float = 0.1) -> Tensor:
    """−log π of the chosen side − β log σ(log odds(chosen) − log odds(rejected)). ORPO (arXiv
    2403.07691); log-probs are means over tokens, without a reference.

    Args:
        imitation: mean negative log-prob of the chosen side's tokens, (P,).
    """
    _check(chosen, rejected)
    check_rows(chosen, imitation=imitation)
    return imitation - beta * logsigmoid(log_odds(chosen) - log_odds(rejected))
