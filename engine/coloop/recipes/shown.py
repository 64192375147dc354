"""What every learner of words shows of the tokens that it trains, under the same names.

Legend: ``B`` sequences, ``T`` token positions.
"""

from torch import Tensor

from coloop.algos.kl import kl_divergence
from coloop.algos.masks import masked_sum
from coloop.recipes.protocol import ModelOutputs

OF_WORDS = ("entropy", "kl")
"""Their names."""

Shown = dict[str, tuple[Tensor | float, Tensor | float]]
"""(sum, count) by name."""


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
