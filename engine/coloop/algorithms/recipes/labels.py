"""Learning to say labels: numbers of texts, of steps, or of the text before each token.

Legend: ``B`` sequences, ``T`` token positions, ``N`` what is labelled.
The mean is over what is labelled, so a text of many steps weighs as its steps do.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from coloop.algorithms.batch import Batch, PairBatch
from coloop.algorithms.labels import agreement, outcome_losses, squared_errors
from coloop.algorithms.recipes.protocol import LossOutput, ModelOutputs, Needs
from coloop.spec.algorithm import Outcome, Regression
from coloop.spec.heads import Reading

LABEL = "label"
"""The number that a row of port `labels` is to get, or one for each of its labelled tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRecipe:
    """`regression`: the squared error. `outcome`: the cross-entropy of right and wrong, hard or
    soft."""

    name: str
    port: str = "labels"
    reading: Reading = "scores"
    """Which numbers of the model are to say them: `scores` of texts, `steps` or `values` of
    tokens."""

    def refusal(self, settings: Regression | Outcome) -> str | None:
        del settings
        return None

    def needs(self, settings: Regression | Outcome) -> Needs:
        del settings
        return Needs(
            log_probs=False,
            values=self.reading == "values",
            scores=self.reading == "scores",
            steps=self.reading == "steps",
            reads=frozenset({LABEL}),
        )

    def count(self, batch: Batch | PairBatch, settings: Regression | Outcome) -> float:
        del settings
        assert isinstance(batch, Batch)
        return float(self._of_labelled(batch, batch.row_counts).double().sum())

    def loss(
        self, batch: Batch | PairBatch, outputs: ModelOutputs, settings: Regression | Outcome
    ) -> LossOutput:
        assert isinstance(batch, Batch)
        given = batch.given(LABEL)
        if given is None:
            raise ValueError("rows of port 'labels' need labels")
        said, labels = self._said(batch, outputs), self._of_labelled(batch, given)
        if isinstance(settings, Regression):
            losses = squared_errors(said, labels)
        else:
            losses = outcome_losses(said, labels, soft=settings.soft)
        shown, size = said.detach(), float(said.numel())
        metrics: dict[str, tuple[Tensor | float, Tensor | float]] = {
            "score/mean": (shown.sum(), size)
        }
        if isinstance(settings, Regression):
            explained = {"explained_variance": (labels, shown)}
            return LossOutput(
                total=self._summed(batch, losses), metrics=metrics, explained=explained
            )
        metrics["accuracy"] = (agreement(shown, labels).sum(), size)
        return LossOutput(total=self._summed(batch, losses), metrics=metrics)

    def _said(self, batch: Batch, outputs: ModelOutputs) -> Tensor:
        """What the model says of what is labelled. -> (N,)."""
        if self.reading == "scores":
            return one_score(outputs)
        by_token: Tensor | None = getattr(outputs, self.reading)
        assert by_token is not None
        return by_token[batch.loss_mask]

    def _of_labelled(self, batch: Batch, numbers: Tensor) -> Tensor:
        """Numbers of rows (B,) or tokens (B, T) at what is labelled. -> (N,)."""
        if self.reading == "scores":
            return numbers
        wide = numbers[:, None].expand(batch.loss_mask.shape) if numbers.dim() == 1 else numbers
        return wide[batch.loss_mask]

    def _summed(self, batch: Batch, losses: Tensor) -> Tensor:
        weights = self._of_labelled(batch, batch.row_weights * batch.row_counts)
        return torch.dot(weights.to(losses.dtype), losses)


def one_score(outputs: ModelOutputs) -> Tensor:
    """The score of each text, (B,); raises where the model has logits of several classes."""
    scores = outputs.scores
    assert scores is not None
    if scores.shape[1] != 1:
        raise ValueError(f"one score a text is wanted, the model has {scores.shape[1]} classes")
    return scores.squeeze(1)
