"""SFT: cross-entropy on the tokens of demonstrations.

Legend: ``B`` sequences, ``T`` token positions.
"""

from dataclasses import dataclass

from coloop.algorithms.batch import Batch
from coloop.algorithms.masks import divisor, masked_sum, token_weights
from coloop.algorithms.recipes.protocol import (
    LossOutput,
    ModelOutputs,
    Needs,
    Recipe,
    shown_of_words,
    tokens_of_words,
)
from coloop.spec.algorithm import Sft


@dataclass(frozen=True, slots=True, kw_only=True)
class ImitationRecipe(Recipe[Batch]):
    """An algorithm of port `demonstrations`: −log π, mean over all tokens of the optimizer step."""

    name: str
    port: str = "demonstrations"

    def needs(self, settings: Sft) -> Needs:
        del settings
        return Needs(entropy=True)

    def count(self, batch: Batch, settings: Sft) -> float:
        del settings
        return divisor(batch.loss_mask, "token_mean", row_counts=batch.row_counts)

    def loss(self, batch: Batch, outputs: ModelOutputs, settings: Sft) -> LossOutput:
        del settings
        weights = token_weights(
            batch.loss_mask,
            "token_mean",
            row_weights=batch.row_weights,
            row_counts=batch.row_counts,
        )
        assert outputs.log_probs is not None
        return LossOutput(
            total=-masked_sum(weights * outputs.log_probs, batch.loss_mask),
            metrics=shown_of_words(outputs, batch.loss_mask, None),
            tokens=tokens_of_words(outputs, batch.loss_mask, None),
        )
