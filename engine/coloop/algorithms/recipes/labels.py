"""Recipes for labels of texts, of steps, or of each token's prefix.

Legend: ``B`` sequences, ``T`` token positions, ``N`` labels.
Losses are averaged over labels, so a text counts as often as it has labels.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, one_hot

from coloop.algorithms.batch import Batch
from coloop.algorithms.losses import agreement, outcome_losses, squared_errors
from coloop.algorithms.masks import masked_sum, wide
from coloop.algorithms.recipes.protocol import (
    LossOutput,
    ModelOutputs,
    Needs,
    Recipe,
    shown_of_words,
)
from coloop.spec.algorithm import ImplicitPrm, LabelCrossEntropy, Outcome, Regression
from coloop.spec.heads import Reading

LABEL = "label"
"""Name of the label of a row of port `labels`, or of its labels per token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRecipe(Recipe[Batch]):
    """`regression`: squared error; `outcome`: binary cross-entropy, with hard or soft labels."""

    name: str
    port: str = "labels"
    reading: Reading = "scores"
    """The outputs of the model to train: `scores` of texts, `steps` or `values` of tokens."""

    def needs(self, settings: Regression | Outcome) -> Needs:
        del settings
        return Needs(
            log_probs=False,
            values=self.reading == "values",
            scores=self.reading == "scores",
            steps=self.reading == "steps",
            reads=frozenset({LABEL}),
        )

    def count(self, batch: Batch, settings: Regression | Outcome) -> float:
        del settings
        return float(self._of_labelled(batch, batch.row_counts).double().sum())

    def loss(
        self, batch: Batch, outputs: ModelOutputs, settings: Regression | Outcome
    ) -> LossOutput:
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
        if self.reading == "scores":
            return one_score(outputs)
        by_token: Tensor | None = getattr(outputs, self.reading)
        assert by_token is not None
        return by_token[batch.loss_mask]

    def _of_labelled(self, batch: Batch, numbers: Tensor) -> Tensor:
        """Numbers of rows (B,) or tokens (B, T) for each label. -> (N,)."""
        if self.reading == "scores":
            return numbers
        wide = numbers[:, None].expand(batch.loss_mask.shape) if numbers.dim() == 1 else numbers
        return wide[batch.loss_mask]

    def _summed(self, batch: Batch, losses: Tensor) -> Tensor:
        weights = self._of_labelled(batch, batch.row_weights * batch.row_counts)
        return torch.dot(weights.to(losses.dtype), losses)


def one_score(outputs: ModelOutputs) -> Tensor:
    """The score of each text, (B,); raises ValueError for several classes."""
    scores = outputs.scores
    assert scores is not None
    if scores.shape[1] != 1:
        raise ValueError(f"one score a text is wanted, the model has {scores.shape[1]} classes")
    return scores.squeeze(1)


# Implicit PRM: s = β Σ_t (log π_t − log prior_t) is the logit of the outcome, and each term a
# token's reward (arXiv 2412.01981, 2502.01456). ``B`` sequences, ``T`` token positions.

PRIOR = "log_probs_reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitPrmRecipe(Recipe[Batch]):
    """Implicit PRM: labels as outcomes of a language model; mean over rows."""

    name: str = "implicit_prm"
    port: str = "labels"

    def needs(self, settings: ImplicitPrm) -> Needs:
        del settings
        return Needs(reads=frozenset({LABEL, PRIOR}), entropy=True)

    def loss(self, batch: Batch, outputs: ModelOutputs, settings: ImplicitPrm) -> LossOutput:
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


# Legend: ``B`` sequences, ``C`` labels.

TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRecipe(Recipe[Batch]):
    """Cross-entropy −Σ_c q_c log p_c over the label words or classes, mean over texts (arXiv
    2506.14175).

    The target is (1 − s) q + s (1 − q) / (C − 1), with q the label and s = `label_smoothing`. Each
    text of a pair is a row of its own.
    """

    name: str = "label_ce"
    port: str = "labels"
    reading: Reading = "scores"
    """The outputs of the model to train: `choices` after a prompt, or `scores` of classes."""

    def needs(self, settings: LabelCrossEntropy) -> Needs:
        del settings
        is_in_words = self.reading == "choices"
        return Needs(
            log_probs=False, choices=is_in_words, scores=not is_in_words, reads=frozenset({LABEL})
        )

    def loss(self, batch: Batch, outputs: ModelOutputs, settings: LabelCrossEntropy) -> LossOutput:
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
    """Targets (B, C): of two classes, a label is the probability of the first; else it is an
    index."""
    if classes == TWO:
        return wide(labels)[:, None] * labels.new_tensor([1.0, -1.0]) + labels.new_tensor([0, 1.0])
    return one_hot(labels.long(), classes)


def _smoothed(wanted: Tensor, share: float) -> Tensor:
    others = (1 - wanted) / (wanted.shape[1] - 1)
    return (1 - share) * wanted + share * others
