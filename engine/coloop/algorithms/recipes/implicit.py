"""Learning outcomes with a language model that is then read token by token (implicit PRM).

Legend: ``B`` sequences, ``T`` token positions.
s = β Σ_t (log π_t − log prior_t) is the logit of the outcome; each of its terms is a token's reward
(arXiv 2412.01981, 2502.01456). The prior is the reference that stands with the rows.
"""

from dataclasses import dataclass

from coloop.algorithms.batch import Batch, PairBatch
from coloop.algorithms.labels import agreement, outcome_losses
from coloop.algorithms.masks import masked_sum
from coloop.algorithms.recipes.labels import LABEL
from coloop.algorithms.recipes.protocol import LossOutput, ModelOutputs, Needs
from coloop.algorithms.recipes.shown import shown_of_words
from coloop.spec.algorithm import ImplicitPrm

PRIOR = "log_probs_reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitPrmRecipe:
    """The algorithm of port `labels` of a language model; mean over rows."""

    name: str = "implicit_prm"
    port: str = "labels"

    def refusal(self, settings: ImplicitPrm) -> str | None:
        del settings
        return None

    def needs(self, settings: ImplicitPrm) -> Needs:
        del settings
        return Needs(reads=frozenset({LABEL, PRIOR}), entropy=True)

    def count(self, batch: Batch | PairBatch, settings: ImplicitPrm) -> float:
        del settings
        return float(batch.row_counts.double().sum())

    def loss(
        self, batch: Batch | PairBatch, outputs: ModelOutputs, settings: ImplicitPrm
    ) -> LossOutput:
        assert isinstance(batch, Batch)
        labels, prior = batch.given(LABEL), batch.given(PRIOR)
        if labels is None or prior is None or outputs.log_probs is None:
            raise ValueError("rows of port 'labels' need labels and log-probs of a prior")
        ratios = masked_sum(outputs.log_probs - prior, batch.loss_mask, dim=1)  # (B,)
        logits = settings.beta * ratios
        losses = outcome_losses(logits, labels, soft=settings.soft)
        shown, size = logits.detach(), float(batch.size)
        return LossOutput(
            total=(batch.row_weights * batch.row_counts * losses).sum(),
            metrics={
                "accuracy": (agreement(shown, labels).sum(), size),
                "score/mean": (shown.sum(), size),
                "log_ratio": (
                    masked_sum(ratios.detach(), labels >= 0.5),
                    float((labels >= 0.5).sum()),
                ),
                **shown_of_words(outputs, batch.loss_mask, prior),
            },
        )
