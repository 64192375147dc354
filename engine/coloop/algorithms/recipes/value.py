"""The recipe of port `returns`: the clipped value loss of a critic, mean over tokens.

Legend: ``B`` sequences, ``T`` token positions, ``N`` trained tokens.
Old values are those of the critic before the learn request.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Generator, Tensor

from coloop.algorithms.batch import Batch
from coloop.algorithms.losses import value_loss
from coloop.algorithms.masks import divisor, masked_sum, token_weights
from coloop.algorithms.recipes.protocol import LossOutput, ModelOutputs, Needs, Recipe
from coloop.spec.algorithm import ValueLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRecipe(Recipe[Batch]):
    name: str = "value"
    port: str = "returns"

    def needs(self, settings: ValueLoss) -> Needs:
        del settings
        return Needs(
            log_probs=False,
            values=True,
            reads=frozenset({"returns", "values"}),
            prepares=frozenset({"values"}),
            prepares_old=True,
        )

    def prepare(
        self,
        batch: Batch,
        outputs: ModelOutputs,
        settings: ValueLoss,
        generator: Generator,
    ) -> Mapping[str, Tensor]:
        del batch, settings, generator
        return {"values": _values(outputs)}

    def count(self, batch: Batch, settings: ValueLoss) -> float:
        del settings
        return divisor(batch.loss_mask, "token_mean", row_counts=batch.row_counts)

    def loss(self, batch: Batch, outputs: ModelOutputs, settings: ValueLoss) -> LossOutput:
        values, mask = _values(outputs), batch.loss_mask
        if batch.returns is None:
            raise ValueError("rows of port 'returns' need returns")
        # With one optimizer step an order the critic is its own old self, up to the gradient.
        old = values.detach() if batch.values is None else batch.values
        tokens = value_loss(values, old, batch.returns, mask, clip=settings.clip)
        weights = token_weights(
            mask, "token_mean", row_weights=batch.row_weights, row_counts=batch.row_counts
        )
        shown, count = values.detach(), mask.sum()
        moved = (shown - old).abs() > (float("inf") if settings.clip is None else settings.clip)
        return LossOutput(
            total=masked_sum(weights * tokens, mask),
            metrics={
                "value/mean": (masked_sum(shown, mask), count),
                "return/mean": (masked_sum(batch.returns, mask), count),
                "clip_fraction": ((moved & mask).sum(), count),
            },
            explained={"explained_variance": (batch.returns[mask], shown[mask])},
        )


def _values(outputs: ModelOutputs) -> Tensor:
    assert outputs.values is not None
    return outputs.values
