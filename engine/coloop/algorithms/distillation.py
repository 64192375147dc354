"""How far a policy p is from a teacher q, at the words of one position.

Legend: ``N`` positions, ``V`` words of the vocabulary, ``K`` words that are compared.

    reverse   KL(p, q) = Σ p (log p − log q)
    forward   KL(q, p) = Σ q (log q − log p)
    jsd       β KL(q, m) + (1 − β) KL(p, m),   m = β q + (1 − β) p

Formulas and the tail are those of TRL 1.16 (`kernels/chunked_divergence.py`, `beta` 1 and 0 for
reverse and forward; `experimental/sdpo/loss_utils.py::add_tail_bucket`), generalized JSD of GKD
(arXiv 2306.13649, equation 1); without a tail as in verl 0.9.1
(`trainer/distillation/fsdp/losses.py`).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from coloop.algorithms.masks import check_same_shape, wide

MOST_LOG_MASS = -1e-7
"""Greatest logarithm of the probability of K words, so that the rest has one as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How distributions over words are compared, in the words of the loop language."""

    divergence: str
    beta: float
    k: int | None
    """Words of each teacher; None: the whole vocabulary."""
    tail: str


def divergence(log_p: Tensor, log_q: Tensor, *, kind: str, beta: float = 0.5) -> Tensor:
    """The divergence of each position, (N, K) log-probs -> (N,)."""
    check_same_shape(log_p=log_p, log_q=log_q)
    match kind:
        case "reverse":
            return relative_entropy(log_p, log_q)
        case "forward":
            return relative_entropy(log_q, log_p)
        case "jsd":
            log_m = log_mixture(log_p, log_q, beta)
            of_teacher = relative_entropy(log_q, log_m)
            return beta * of_teacher + (1 - beta) * relative_entropy(log_p, log_m)
    raise ValueError(f"there is no divergence {kind!r}")


def relative_entropy(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Σ p (log p − log q). (N, K) -> (N,)."""
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def log_mixture(log_p: Tensor, log_q: Tensor, beta: float) -> Tensor:
    """log(β q + (1 − β) p). (N, K)."""
    return torch.logaddexp(log_p + math.log1p(-beta), log_q + math.log(beta))


def with_tail(log_probs: Tensor, tail: str) -> Tensor:
    """Log-probs of K words of a vocabulary with what becomes of the others: (N, K) -> (N, K + 1)
    with their probability as that of one more word, or (N, K)."""
    if tail == "drop":
        return log_probs
    log_mass = wide(log_probs).logsumexp(-1, keepdim=True)
    if tail == "renormalize":
        return log_probs - log_mass
    rest = (-torch.expm1(log_mass.clamp(max=MOST_LOG_MASS))).log()
    return torch.cat([log_probs, rest], dim=-1)


def divergence_of_top(log_p: Tensor, log_q: Tensor, comparison: Comparison) -> Tensor:
    """The divergence at a teacher's K most likely words. Log-probs (N, K) of the whole vocabulary
    -> (N,)."""
    ours, theirs = with_tail(log_p, comparison.tail), with_tail(log_q, comparison.tail)
    return divergence(ours, theirs, kind=comparison.divergence, beta=comparison.beta)
