"""Learning to score texts: from pairs that chosen is the better one, from labels the number itself.

Legend: ``P`` pairs, ``B`` sequences. A score is the model's one number for a whole text; of pairs
the first P scores are of the chosen sides.
"""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import logsigmoid

from coloop.batch import Batch, PairBatch
from coloop.recipes.protocol import LossOutput, ModelOutputs, Needs
from coloop.spec.algorithm import BradleyTerry, Regression

LABEL = "label"
"""The number that a row of port `labels` is to get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BradleyTerryRecipe:
    """Bradley-Terry: p = σ(s_chosen − s_rejected − margin) is the probability of the order.

    `center` adds the mean of (s_chosen + s_rejected)², which keeps scores near 0
    (arXiv 2312.09244).
    """

    name: str = "bradley_terry"
    port: str = "pairs"

    def refusal(self, settings: BradleyTerry) -> str | None:
        del settings
        return None

    def needs(self, settings: BradleyTerry) -> Needs:
        del settings
        return Needs(log_probs=False, scores=True)

    def count(self, batch: Batch | PairBatch, settings: BradleyTerry) -> float:
        del settings
        return float(batch.row_counts.double().sum())

    def loss(
        self, batch: Batch | PairBatch, outputs: ModelOutputs, settings: BradleyTerry
    ) -> LossOutput:
        assert isinstance(batch, PairBatch)
        scores = one_score(outputs)
        chosen, rejected = scores[: batch.size], scores[batch.size :]  # (P,) each
        lead = chosen - rejected - batch.margin if settings.margin else chosen - rejected
        # The share of the pair's label that speaks for the other order.
        against = 1 - batch.probability if settings.soft else settings.label_smoothing
        pairs = -(1 - against) * logsigmoid(lead) - against * logsigmoid(-lead)
        if settings.center is not None:
            pairs = pairs + settings.center * (chosen + rejected).square()
        size = float(batch.size)
        shown = (chosen - rejected).detach()
        right = (shown > 0).float() + 0.5 * (shown == 0).float()  # a tie is half right
        return LossOutput(
            total=(batch.row_weights * batch.row_counts * pairs).sum(),
            metrics={
                "accuracy": (right.sum(), size),
                "margin": (shown.sum(), size),
                "score/chosen": (chosen.detach().sum(), size),
                "score/rejected": (rejected.detach().sum(), size),
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionRecipe:
    """The squared error of the score to the row's label."""

    name: str = "regression"
    port: str = "labels"

    def refusal(self, settings: Regression) -> str | None:
        del settings
        return None

    def needs(self, settings: Regression) -> Needs:
        del settings
        return Needs(log_probs=False, scores=True, reads=frozenset({LABEL}))

    def count(self, batch: Batch | PairBatch, settings: Regression) -> float:
        del settings
        return float(batch.row_counts.double().sum())

    def loss(
        self, batch: Batch | PairBatch, outputs: ModelOutputs, settings: Regression
    ) -> LossOutput:
        del settings
        assert isinstance(batch, Batch)
        scores, labels = one_score(outputs), batch.given(LABEL)
        if labels is None:
            raise ValueError("rows of port 'labels' need labels")
        errors = (scores - labels).square()
        return LossOutput(
            total=(batch.row_weights * batch.row_counts * errors).sum(),
            metrics={"score/mean": (scores.detach().sum(), float(batch.size))},
            explained={"explained_variance": (labels, scores.detach())},
        )


def one_score(outputs: ModelOutputs) -> Tensor:
    """The score of each text, (B,); raises where the model has logits of several classes."""
    scores = outputs.scores
    assert scores is not None
    if scores.shape[1] != 1:
        raise ValueError(f"one score a text is wanted, the model has {scores.shape[1]} classes")
    return scores.squeeze(1)
