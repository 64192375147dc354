"""The interface of recipes: the loss of an algorithm, as pure functions of batches.

Legend: ``B`` sequences, ``T`` token positions, ``P`` pairs, ``C`` classes.
`loss` returns an undivided sum, and `count` the batch's share of the divisor, so that a trainer may
split an optimizer step into any micro-batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch import Generator, Tensor

from coloop.algorithms.batch import Batch, PairBatch
from coloop.algorithms.distillation import Comparison
from coloop.algorithms.kl import KlEstimator, kl_divergence
from coloop.algorithms.masks import masked_sum

Score = float | None | Mapping[int, float]
"""A number for the row, None if it does not apply, or numbers by token of the completion."""


def total_of(score: Score) -> float | None:
    if score is None or isinstance(score, float | int):
        return score
    return float(sum(score.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeScores:
    """The scores that an edge into `rewards` delivered, by row."""

    name: str
    weight: float
    scores: Sequence[Score]
    key: str = ""  # of the edge in the spec
    delivered: int = 0  # rows with an entry, None included
    none: int = 0  # of these, rows with None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutputs:
    """A model's outputs for a batch; None for those that were not requested."""

    log_probs: Tensor | None = None
    """(B, T) float32, at the temperature of the sequence; 0 outside the loss mask."""
    entropy: Tensor | None = None
    """(B, T) float32; with a gradient only for `Needs.entropy_gradient`."""
    values: Tensor | None = None
    """(B, T) float32: value of the text before each trained token; 0 outside the loss mask."""
    scores: Tensor | None = None
    """(B, C) float32: score of each text (C = 1), or logits of its classes."""
    choices: Tensor | None = None
    """(B, C) float32: log-prob of each of `Batch.choices` as the next token."""
    steps: Tensor | None = None
    """(B, T) float32: score of the text up to and including each trained token; 0 elsewhere."""
    divergence: Tensor | None = None
    """(B, T) float32: divergence from the row's teachers at each trained token, with gradient; then
    log-probs and entropy have none."""
    mass: Tensor | None = None
    """(B, T) float32: what the teachers give to the words at which they are compared."""
    own_mass: Tensor | None = None
    """(B, T) float32: what the model gives to these words."""
    extra: "ModelOutputs | None" = None
    """Outputs for `PairBatch.extra`, in `prepare` of recipes with `Needs.extra`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOutput:
    total: Tensor  # scalar with gradient
    metrics: Mapping[str, tuple[Tensor | float, Tensor | float]] = field(default_factory=dict)
    """(sum, count) by name; means are over all micro-batches."""
    maxima: Mapping[str, Tensor] = field(default_factory=dict)
    """By name, numbers of which the maximum over all micro-batches is reported."""
    explained: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """(target (N,), prediction (N,)) by name, for the explained variance over all micro-batches."""
    tokens: Mapping[str, Tensor] = field(default_factory=dict)
    """(B, T) by name, without gradient, for display."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The outputs of the model and the numbers of rows that a recipe needs."""

    log_probs: bool = True  # of the trained tokens, by the head of words
    entropy: bool = False
    entropy_gradient: bool = False  # the loss contains the entropy
    values: bool = False  # a number for each trained token, by the score head
    scores: bool = False
    """A score, or logits of classes, for each text, by the score head at its last token."""
    choices: bool = False
    """Log-probs of each text's choices, by the language-model head; excludes all other outputs."""
    steps: bool = False
    """A score for each trained token, by the score head at that token."""
    comparison: Comparison | None = None
    """How the model is compared with the teachers of rows, by their words."""
    reads: frozenset[str] = frozenset()
    """Names of the numbers of rows that it reads; others are dropped, so only some rows may have
    them."""
    prepares: frozenset[str] = frozenset()
    """Names of the numbers that `prepare` returns."""
    prepares_old: bool = False
    """Whether `prepare` only returns the model's outputs before the update; with a single optimizer
    step, `loss` computes these itself."""
    extra: bool = False
    """Whether `prepare` needs outputs for `PairBatch.extra`."""


AnyBatch = TypeVar("AnyBatch", bound=Batch | PairBatch)


class Recipe(ABC, Generic[AnyBatch]):
    """The loss of an algorithm over rows or pairs. `settings` are those that `resolve_algorithm` of
    `coloop.spec.algorithm` returns."""

    name: str
    port: str  # the teaching port it serves

    def refusal(self, settings: Any) -> str | None:
        del settings
        return None

    @abstractmethod
    def needs(self, settings: Any) -> Needs: ...

    def prepare(
        self, batch: AnyBatch, outputs: ModelOutputs, settings: Any, generator: Generator
    ) -> Mapping[str, Tensor]:
        """The numbers `Needs.prepares`, from the whole batch before its first update: (B, T) per
        token, or (B,) or (P,). Called once per learn request.

        `outputs` are on the CPU, without gradient; `generator` has the seed of the learn request.
        """
        del batch, outputs, settings, generator
        return {}

    def count(self, batch: AnyBatch, settings: Any) -> float:
        """The batch's share of the divisor: by default its rows or pairs."""
        del settings
        return float(batch.row_counts.double().sum())

    @abstractmethod
    def loss(self, batch: AnyBatch, outputs: ModelOutputs, settings: Any) -> LossOutput: ...


# What every learner of words shows of the tokens that it trains, under the same names.

OF_WORDS = ("entropy", "kl")

Shown = dict[str, tuple[Tensor | float, Tensor | float]]  # (sum, count) by name


def tokens_of_words(
    outputs: ModelOutputs,
    mask: Tensor,
    reference: Tensor | None,
    estimator: KlEstimator | str = "k3",
) -> dict[str, Tensor]:
    """Log-prob, entropy and KL of each token, for display: (B, T) by name, 0 outside the mask."""
    numbers: dict[str, Tensor] = {}
    if outputs.log_probs is not None:
        numbers["log_prob"] = outputs.log_probs.detach()
    if outputs.entropy is not None:
        numbers["entropy"] = outputs.entropy.detach()
    if reference is not None and outputs.log_probs is not None:
        numbers["kl"] = kl_divergence(outputs.log_probs.detach(), reference, estimator=estimator)
    return {name: torch.where(mask, values, 0.0) for name, values in numbers.items()}


def shown_of_words(outputs: ModelOutputs, mask: Tensor, reference: Tensor | None) -> Shown:
    """Metrics of language models: entropy, and KL (k3) to the reference if any, over `mask`."""
    count, shown = mask.sum(), Shown()
    if outputs.entropy is not None:
        shown["entropy"] = (masked_sum(outputs.entropy.detach(), mask), count)
    if reference is not None:
        assert outputs.log_probs is not None
        kl = kl_divergence(outputs.log_probs.detach(), reference, estimator="k3")
        shown["kl"] = (masked_sum(kl, mask), count)
    return shown
