"""What a recipe is: the credit and the loss of one algorithm, as pure functions over batches.

Legend: ``B`` sequences, ``T`` token positions, ``P`` pairs, ``C`` classes.
A recipe unpacks resolved settings into the functions of `algos`. It knows no model, optimizer, role
or table. Invariant: `loss` is an undivided sum and `count` the same batch's share of the divisor,
so a trainer may cut an optimizer step into any micro-batches and divide once.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from coloop.algorithms.batch import Batch, PairBatch
from coloop.algorithms.kl import KlEstimator, kl_divergence
from coloop.algorithms.masks import masked_sum
from coloop.data.arrays import Mask, Numbers

Score = float | None | Mapping[int, float]
"""A number for the row, "does not apply", or numbers at token positions of the completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeScores:
    """What one edge into `rewards` delivered, row by row."""

    name: str
    weight: float
    scores: Sequence[Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditInput:
    """The rows that are credited: one role, one step, all groups."""

    edges: Sequence[EdgeScores]
    groups: Sequence[Hashable]
    """Group key of each row; rows of one key share a baseline."""
    loss_masks: Sequence[Mask]
    """Trained tokens of each completion."""
    taught: Sequence[bool] | None = None
    """False for rows that only count in their group's baseline; None: all are taught."""
    counts: Sequence[float] | None = None
    """How often each row was drawn; None: once."""
    log_prob_differences: Sequence[Numbers] | None = None
    """log policy - log reference at each token of each completion; for KL in the reward."""
    kl_coefficient: float | None = None
    """In place of the settings' coefficient, where it adapts."""
    values: Sequence[Numbers] | None = None
    """A critic's value at each token of each completion."""
    critic_lambdas: Sequence[float] = ()
    """How far returns that critics learn look ahead, beside those that look as far as the
    advantages."""
    greedy_scores: Sequence[float] | None = None
    """Score of the greedy completion of each row's prompt."""
    of_others: Sequence[bool] | None = None
    """True for rows that others wrote, of which one edge alone speaks; None: there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditOutput:
    """Advantages of each row, in the order of the input; None for rows that leave the update."""

    advantages: tuple[float | Numbers | None, ...]
    """One number for all trained tokens, or one for each token of the completion."""
    returns: tuple[Numbers | None, ...] | None
    """What a critic learns that looks as far ahead as the advantages; None without values."""
    rewards: tuple[float | None, ...]
    """The combined reward, before any baseline and KL."""
    metrics: Mapping[str, float]
    kl: float | None = None
    """Mean KL of a trained token, before its coefficient; None where it is not in the reward."""
    returns_at: Mapping[float, tuple[Numbers | None, ...]] = field(default_factory=dict)
    """By lambda, what critics learn that look further ahead, or less far."""
    alerts: tuple[tuple[str, str], ...] = ()
    """(code, message) of what a person should look at."""


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
    """The undivided loss of one micro-batch and what it shows."""

    total: Tensor
    """Scalar with gradient."""
    metrics: Mapping[str, tuple[Tensor | float, Tensor | float]] = field(default_factory=dict)
    """(sum, count) of each; the mean is taken over all micro-batches."""
    maxima: Mapping[str, Tensor] = field(default_factory=dict)
    """Reduced by maximum over all micro-batches."""
    explained: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """(truth (N,), what was said of it (N,)); shown is the share of the truth's variance that is
    explained, over all micro-batches."""
    tokens: Mapping[str, Tensor] = field(default_factory=dict)
    """(B, T) of each token by name, without gradient, as this loss read or computed it; for people
    to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a loss asks the model for, and what it reads of the rows. Hidden states are never asked
    for."""

    log_probs: bool = True
    """Of the trained tokens, by the head of words."""
    entropy: bool = False
    """Entropy is worth measuring."""
    entropy_gradient: bool = False
    """The loss contains the entropy."""
    values: bool = False
    """A number for each trained token, by the score head."""
    scores: bool = False
    """A number, or the logits of classes, for each text, by the score head at its last token."""
    choices: bool = False
    """How likely each of a text's choices comes next, by the head of words; and nothing else."""
    steps: bool = False
    """A number for each trained token, by the score head at that token itself."""
    reads: frozenset[str] = frozenset()
    """Numbers of the rows by their names; others are left behind, so rows that bring them and rows
    that do not may stand in one load."""
    prepares: frozenset[str] = frozenset()
    """What `prepare` gives, once an order over the whole batch: numbers of tokens or rows by their
    names, which the loss reads as those of rows."""
    prepares_old: bool = False
    """What `prepare` gives is what the model itself said before the order. Where one optimizer step
    is the whole order, nobody measures that: it is what the step computes anyway."""
    extra: bool = False
    """`prepare` is told what the model says of further texts that rows bring."""


class Recipe(Protocol):
    """Loss of one algorithm; `settings` is what `coloop.spec.algorithm` resolves its section to."""

    @property
    def name(self) -> str: ...

    @property
    def port(self) -> str:
        """The teaching port it serves."""
        ...

    def refusal(self, settings: Any) -> str | None:
        """Why these settings cannot run, or None."""
        ...

    def needs(self, settings: Any) -> Needs: ...

    def count(self, batch: Batch | PairBatch, settings: Any) -> float:
        """This batch's share of the divisor: tokens, sequences, pairs, or a constant."""
        ...

    def loss(
        self, batch: Batch | PairBatch, outputs: ModelOutputs, settings: Any
    ) -> LossOutput: ...


class CreditRecipe(Recipe, Protocol):
    """A recipe of port `rewards`, which also turns scores into advantages."""

    def credit(self, rows: CreditInput, settings: Any, credit: Any) -> CreditOutput: ...


class PreparingRecipe(Recipe, Protocol):
    """A recipe that asks for numbers of the whole batch before the order learns."""

    def prepare(
        self,
        batch: Batch | PairBatch,
        outputs: ModelOutputs,
        settings: Any,
        generator: Generator,
    ) -> Mapping[str, Tensor]:
        """The numbers that `needs` says, from the whole batch of an order and what the model says
        of it before it learns: (B, T) of tokens, else (B,) or (P,) of rows or pairs.

        Args:
            outputs: without gradient, on the CPU as the batch.
            generator: for what is drawn; its seed is that of the order.
        """
        ...


# What every learner of words shows of the tokens that it trains, under the same names.
#
# Legend: ``B`` sequences, ``T`` token positions.

OF_WORDS = ("entropy", "kl")
"""Their names."""

Shown = dict[str, tuple[Tensor | float, Tensor | float]]
"""(sum, count) by name."""


def tokens_of_words(
    outputs: ModelOutputs,
    mask: Tensor,
    reference: Tensor | None,
    estimator: KlEstimator | str = "k3",
) -> dict[str, Tensor]:
    """The same by the token, with its log-prob: (B, T) by name, 0 outside the mask.

    Args:
        estimator: of the KL, as the loss has it.
    """
    found: dict[str, Tensor] = {}
    if outputs.log_probs is not None:
        found["log_prob"] = outputs.log_probs.detach()
    if outputs.entropy is not None:
        found["entropy"] = outputs.entropy.detach()
    if reference is not None and outputs.log_probs is not None:
        found["kl"] = kl_divergence(outputs.log_probs.detach(), reference, estimator=estimator)
    return {name: torch.where(mask, one, 0.0) for name, one in found.items()}


def shown_of_words(outputs: ModelOutputs, mask: Tensor, reference: Tensor | None) -> Shown:
    """Entropy, and KL to the reference where there is one: means over trained tokens, each token
    once. KL is k3, whatever estimator a loss has.

    Args:
        mask: (B, T) bool, the trained tokens that are looked at.
        reference: (B, T) log-probs.
    """
    count, shown = mask.sum(), Shown()
    if outputs.entropy is not None:
        shown["entropy"] = (masked_sum(outputs.entropy.detach(), mask), count)
    if reference is not None:
        assert outputs.log_probs is not None
        kl = kl_divergence(outputs.log_probs.detach(), reference, estimator="k3")
        shown["kl"] = (masked_sum(kl, mask), count)
    return shown
