"""What every learner of words shows of the tokens that it trains, under the same names.

Legend: ``B`` sequences, ``T`` token positions.
"""

import torch
from torch import Tensor

from coloop.algorithms.kl import KlEstimator, kl_divergence
from coloop.algorithms.masks import masked_sum
from coloop.algorithms.recipes.protocol import ModelOutputs

OF_WORDS = ("entropy", "kl")
"""Their names."""

Shown = dict[str, tuple[Tensor | float, Tensor | float]]
"""(sum, count) by name."""


def tokens_of_words(
    outputs: ModelOutputs,
    mask: Tensor,
    reference: Tensor | None,
    estimator: KlEstimator | str = "k3",
) -> dict[str, Tensor]:
    """The same by the token, with its log-prob: (B, T) by name, 0 outside the mask.

    Args:
        estimator: of the KL, as the loss has it.
    """
    found: dict[str, Tensor] = {}
    if outputs.log_probs is not None:
        found["log_prob"] = outputs.log_probs.detach()
    if outputs.entropy is not None:
        found["entropy"] = outputs.entropy.detach()
    if reference is not None and outputs.log_probs is not None:
        found["kl"] = kl_divergence(outputs.log_probs.detach(), reference, estimator=estimator)
    return {name: torch.where(mask, one, 0.0) for name, one in found.items()}


def shown_of_words(outputs: ModelOutputs, mask: Tensor, reference: Tensor | None) -> Shown:
    """Entropy, and KL to the reference where there is one: means over trained tokens, each token
    once. KL is k3, whatever estimator a loss has.

    Args:
        mask: (B, T) bool, the trained tokens that are looked at.
        reference: (B, T) log-probs.
    """
    count, shown = mask.sum(), Shown()
    if outputs.entropy is not None:
        shown["entropy"] = (masked_sum(outputs.entropy.detach(), mask), count)
    if reference is not None:
        assert outputs.log_probs is not None
        kl = kl_divergence(outputs.log_probs.detach(), reference, estimator="k3")
        shown["kl"] = (masked_sum(kl, mask), count)
    return shown
