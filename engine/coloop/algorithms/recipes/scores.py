"""Learning to score texts from pairs: that chosen is the better one.

Legend: ``P`` pairs, ``B`` sequences. A score is the model's one number for a whole text; of pairs
the first P scores are of the chosen sides.
"""

from dataclasses import dataclass

from torch.nn.functional import logsigmoid

from coloop.algorithms.batch import Batch, PairBatch
from coloop.algorithms.recipes.labels import one_score
from coloop.algorithms.recipes.protocol import LossOutput, ModelOutputs, Needs
from coloop.spec.algorithm import BradleyTerry


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
