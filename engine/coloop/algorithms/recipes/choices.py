"""Learning which of a few labels to say: cross-entropy restricted to them, in words or by a head.

Legend: ``B`` sequences, ``C`` labels.
"""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import log_softmax, one_hot

from coloop.algorithms.batch import Batch, PairBatch
from coloop.algorithms.recipes.labels import LABEL
from coloop.algorithms.recipes.protocol import LossOutput, ModelOutputs, Needs
from coloop.algorithms.shapes import wide
from coloop.spec.algorithm import LabelCrossEntropy
from coloop.spec.heads import Reading

TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRecipe:
    """−Σ_c q_c log p_c over the labels alone, mean over texts (arXiv 2506.14175).

    q is the label with a share s = `label_smoothing` moved to the others: (1 − s) q + s (1 − q) /
    (C − 1). Of pairs each text is a row of its own.
    """

    name: str = "label_ce"
    port: str = "labels"
    reading: Reading = "scores"
    """What says them: `choices` behind a prompt, or `scores`, one for each class."""

    def refusal(self, settings: LabelCrossEntropy) -> str | None:
        del settings
        return None

    def needs(self, settings: LabelCrossEntropy) -> Needs:
        del settings
        is_in_words = self.reading == "choices"
        return Needs(
            log_probs=False,
            choices=is_in_words,
            scores=not is_in_words,
            reads=frozenset({LABEL}),
        )

    def count(self, batch: Batch | PairBatch, settings: LabelCrossEntropy) -> float:
        del settings
        return float(batch.row_counts.double().sum())

    def loss(
        self, batch: Batch | PairBatch, outputs: ModelOutputs, settings: LabelCrossEntropy
    ) -> LossOutput:
        assert isinstance(batch, Batch)
        said = outputs.choices if self.reading == "choices" else outputs.scores
        labels = batch.given(LABEL)
        if said is None or labels is None:
            raise ValueError("rows that choose among labels need what a model says, and a label")
        log_probs = log_softmax(wide(said), dim=1)  # (B, C)
        wanted = shares_of(labels, said.shape[1]).to(log_probs.dtype)
        smoothed = _smoothed(wanted, settings.label_smoothing)
        losses = -(smoothed * log_probs).sum(1)
        right = (log_probs.argmax(1) == wanted.argmax(1)).float()
        size = float(batch.size)
        chance = log_probs.detach()[:, 0].exp()
        return LossOutput(
            total=(batch.row_weights * batch.row_counts * losses).sum(),
            metrics={"accuracy": (right.sum(), size), "score/mean": (chance.sum(), size)},
        )


def shares_of(labels: Tensor, classes: int) -> Tensor:
    """What each class is to get: of two the chance of the first, of more the place of the right
    one. (B,) -> (B, C)."""
    if classes == TWO:
        return wide(labels)[:, None] * labels.new_tensor([1.0, -1.0]) + labels.new_tensor([0, 1.0])
    return one_hot(labels.long(), classes)


def _smoothed(wanted: Tensor, share: float) -> Tensor:
    others = (1 - wanted) / (wanted.shape[1] - 1)
    return (1 - share) * wanted + share * others
