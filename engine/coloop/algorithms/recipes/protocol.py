"""What a recipe is: the credit and the loss of one algorithm, as pure functions over batches.

Legend: ``B`` sequences, ``T`` token positions, ``P`` pairs, ``C`` classes.
Invariant: `loss` is an undivided sum and `count` the same batch's share of the divisor, so a
trainer may cut an optimizer step into any micro-batches and divide once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch import Generator, Tensor

from coloop.algorithms.batch import Batch, PairBatch
from coloop.algorithms.kl import KlEstimator, kl_divergence
from coloop.algorithms.masks import masked_sum

Score = float | None | Mapping[int, float]
"""A number for the row, "does not apply", or numbers at token positions of the completion."""


def total_of(score: Score) -> float | None:
    if score is None or isinstance(score, float | int):
        return score
    return float(sum(score.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeScores:
    """What one edge into `rewards` delivered, row by row."""

    name: str
    weight: float
    scores: Sequence[Score]
    key: str = ""  # of the edge in the spec
    delivered: int = 0  # rows that it says something of, None included
    none: int = 0  # of these, rows of which it says None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutputs:
    """What a model says about a batch, of what it was asked for."""

    log_probs: Tensor | None = None
    """(B, T) float32, at the rollout's temperature; 0 outside the loss mask."""
    entropy: Tensor | None = None
    """(B, T) float32; carries a gradient only where the recipe asks for it."""
    values: Tensor | None = None
    """(B, T) float32: of the text before each trained token; 0 outside the loss mask."""
    scores: Tensor | None = None
    """(B, C) float32: of each whole text, a score where C is 1, else the logits of its classes."""
    choices: Tensor | None = None
    """(B, C) float32: log-prob of each of a text's choices as the next word."""
    steps: Tensor | None = None
    """(B, T) float32: of the text up to each trained token, that token included; 0 elsewhere."""
    extra: "ModelOutputs | None" = None
    """About the further texts of pairs, where a recipe prepares with them and there are some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOutput:
    total: Tensor  # scalar with gradient
    metrics: Mapping[str, tuple[Tensor | float, Tensor | float]] = field(default_factory=dict)
    """(sum, count) of each; the mean is taken over all micro-batches."""
    maxima: Mapping[str, Tensor] = field(default_factory=dict)
    """Reduced by maximum over all micro-batches."""
    explained: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """(truth (N,), its prediction (N,)), for the explained variance over all micro-batches."""
    tokens: Mapping[str, Tensor] = field(default_factory=dict)
    """(B, T) by name, without gradient, for people to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a loss asks the model for, and what it reads of the rows."""

    log_probs: bool = True  # of the trained tokens, by the head of words
    entropy: bool = False
    entropy_gradient: bool = False  # the loss contains the entropy
    values: bool = False  # a number for each trained token, by the score head
    scores: bool = False
    """A number, or the logits of classes, for each text, by the score head at its last token."""
    choices: bool = False
    """How likely each of a text's choices comes next, by the head of words; and nothing else."""
    steps: bool = False
    """A number for each trained token, by the score head at that token itself."""
    reads: frozenset[str] = frozenset()
    """Names of numbers of rows; others are left behind, so rows may differ in them."""
    prepares: frozenset[str] = frozenset()
    """Names of the numbers of tokens or rows that `prepare` gives once an order."""
    prepares_old: bool = False
    """`prepare` gives what the model said before the order; a single step computes that itself."""
    extra: bool = False
    """`prepare` is told what the model says of further texts that rows bring."""


AnyBatch = TypeVar("AnyBatch", bound=Batch | PairBatch)


class Recipe(ABC, Generic[AnyBatch]):
    """Loss of one algorithm over rows or pairs; `settings`: as `coloop.spec.algorithm` resolves
    its section."""

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
        """The numbers that `needs` says, from the whole batch and outputs before it is learned.

        (B, T) of tokens, else (B,) or (P,); `outputs` on the CPU, without gradient; `generator` has
        the order's seed.
        """
        del batch, outputs, settings, generator
        return {}

    def count(self, batch: AnyBatch, settings: Any) -> float:
        """This batch's share of the divisor: rows or pairs, unless a recipe counts otherwise."""
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
    """The same by the token, with its log-prob: (B, T) by name, 0 outside the mask."""
    numbers: dict[str, Tensor] = {}
    if outputs.log_probs is not None:
        numbers["log_prob"] = outputs.log_probs.detach()
    if outputs.entropy is not None:
        numbers["entropy"] = outputs.entropy.detach()
    if reference is not None and outputs.log_probs is not None:
        numbers["kl"] = kl_divergence(outputs.log_probs.detach(), reference, estimator=estimator)
    return {name: torch.where(mask, values, 0.0) for name, values in numbers.items()}


def shown_of_words(outputs: ModelOutputs, mask: Tensor, reference: Tensor | None) -> Shown:
    """Entropy, and k3 KL to the reference if any: means over the trained tokens of `mask`."""
    count, shown = mask.sum(), Shown()
    if outputs.entropy is not None:
        shown["entropy"] = (masked_sum(outputs.entropy.detach(), mask), count)
    if reference is not None:
        assert outputs.log_probs is not None
        kl = kl_divergence(outputs.log_probs.detach(), reference, estimator="k3")
        shown["kl"] = (masked_sum(kl, mask), count)
    return shown
