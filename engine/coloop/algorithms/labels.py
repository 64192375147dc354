"""Losses of numbers that are to say labels.

Legend: ``N`` what is labelled: texts, steps or tokens.
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from coloop.algorithms.shapes import check_same_shape, wide


def squared_errors(said: Tensor, labels: Tensor) -> Tensor:
    """(s − y)². (N,) -> (N,)."""
    check_same_shape(said=said, labels=labels)
    return (wide(said) - wide(labels)).square()


def outcome_losses(logits: Tensor, labels: Tensor, *, soft: bool = False) -> Tensor:
    """−y log σ(s) − (1 − y) log σ(−s), the cross-entropy of right and wrong. (N,) -> (N,).

    A hard label is 1 from a half on, else 0; a soft one is the probability that it is right.
    """
    check_same_shape(logits=logits, labels=labels)
    wanted = wide(labels) if soft else (wide(labels) >= 0.5).to(wide(labels).dtype)
    return binary_cross_entropy_with_logits(wide(logits), wanted, reduction="none")


def agreement(logits: Tensor, labels: Tensor) -> Tensor:
    """1 where a logit and its label stand on the same side, 1/2 for a logit of 0. (N,) -> (N,)."""
    check_same_shape(logits=logits, labels=labels)
    side = torch.sign(logits) * torch.where(labels >= 0.5, 1.0, -1.0)
    return (side + 1) / 2
