"""Recipes for pairs: preference losses, with or without a reference, and Bradley-Terry.

Legend: ``P`` pairs, ``T`` token positions. The policy's outputs are for both sides, 2P rows with
the chosen ones first.
With `sft: a`, the loss of a pair is a · sft + (1 − a) · preference, where sft is the mean negative
log-prob of the chosen side's tokens (arXiv 2404.19733).
`loss` looks at each pair alone; what depends on the whole batch (`kto`, `bco`, `aot`) is computed
by `prepare`, once per learn request.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import logsigmoid

from coloop.algorithms import preference
from coloop.algorithms.batch import Batch, PairBatch
from coloop.algorithms.masks import masked_mean
from coloop.algorithms.recipes.labels import one_score
from coloop.algorithms.recipes.protocol import (
    LossOutput,
    ModelOutputs,
    Needs,
    Recipe,
    Shown,
    shown_of_words,
)
from coloop.spec.algorithm import SMOOTHED_LOSSES, SOFT_LOSSES, BradleyTerry, ResolvedPreference

DIVERGENCE = "divergence"
"""Name of z0 of `kto`: an estimate of the policy's KL to its reference, over the batch."""
SHIFT = "shift"
"""Name of δ of `bco`: the mean reward of all sides of the batch."""
AGAINST_CHOSEN, AGAINST_REJECTED = "against_chosen", "against_rejected"
"""Names of what `aot` compares the two sides of a pair with: the opposite sides of equal rank."""

PREPARED: Mapping[str, frozenset[str]] = {
    "kto": frozenset({DIVERGENCE}),
    "bco": frozenset({SHIFT}),
    "aot": frozenset({AGAINST_CHOSEN, AGAINST_REJECTED}),
}
"""The numbers that a loss needs from `prepare`. The ranks of `aot` are those before the update."""

LOSSES: Mapping[str, Callable[..., Tensor]] = {
    "sigmoid": preference.sigmoid,
    "robust": preference.robust,
    "exo": preference.exo,
    "hinge": preference.hinge,
    "ipo": preference.ipo,
    "nca": preference.nca,
    "sppo": preference.sppo,
    "apo": preference.apo,
    "discopop": preference.discopop,
}
"""Losses of the two log ratios and `beta`; some take label smoothing or soft labels."""
SMOOTHED = frozenset({"sigmoid", "robust", "exo"})
"""Those of LOSSES that take `label_smoothing`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRecipe(Recipe[PairBatch]):
    name: str
    port: str = "pairs"

    def refusal(self, settings: ResolvedPreference) -> str | None:
        if settings.label_smoothing > 0 and settings.loss not in SMOOTHED_LOSSES:
            return f"loss {settings.loss!r} takes no label_smoothing"
        if settings.gamma > 0 and settings.loss != "simpo":
            return f"loss {settings.loss!r} takes no gamma"
        return None

    def needs(self, settings: ResolvedPreference) -> Needs:
        return Needs(
            reads=frozenset({"log_probs_reference"} if settings.needs_reference else ()),
            entropy=True,
            prepares=PREPARED.get(settings.loss, frozenset()),
            extra=settings.loss == "kto",
        )

    def prepare(
        self,
        batch: PairBatch,
        outputs: ModelOutputs,
        settings: ResolvedPreference,
        generator: Generator,
    ) -> Mapping[str, Tensor]:
        del generator
        if settings.loss == "kto":
            return {DIVERGENCE: _divergence(batch, outputs, settings)}
        assert outputs.log_probs is not None
        ratios = _log_ratios(outputs.log_probs, batch.sides, settings)
        chosen, rejected = ratios[: batch.size], ratios[batch.size :]  # (P,) each
        if settings.loss == "bco":
            shift = preference.mean_reward(chosen, rejected, batch.row_counts, beta=settings.beta)
            return {SHIFT: shift.float().repeat(batch.size)}
        of_chosen, of_rejected = preference.sorted_opposites(chosen, rejected, batch.row_counts)
        return {AGAINST_CHOSEN: of_chosen.float(), AGAINST_REJECTED: of_rejected.float()}

    def loss(
        self, batch: PairBatch, outputs: ModelOutputs, settings: ResolvedPreference
    ) -> LossOutput:
        assert outputs.log_probs is not None
        sides, size = batch.sides, batch.size
        ratios = _log_ratios(outputs.log_probs, sides, settings)
        chosen, rejected = ratios[:size], ratios[size:]  # (P,) each
        imitation = -masked_mean(outputs.log_probs, sides.loss_mask, dim=1)[:size]
        labels, prepared = _soft_labels(batch, settings), _prepared(batch, settings)
        if settings.loss == "orpo":
            pairs = preference.orpo(chosen, rejected, imitation, beta=settings.beta)
        else:
            pairs = preference_loss(chosen, rejected, labels, settings, prepared)
        if settings.sft > 0:
            pairs = settings.sft * imitation + (1 - settings.sft) * pairs
        name = "log_ratio" if settings.needs_reference else "log_prob"
        metrics = _metrics(chosen, rejected, name, settings.beta)
        reference = sides.log_probs_reference if settings.needs_reference else None
        metrics |= shown_of_words(outputs, sides.loss_mask, reference)
        for name in prepared.keys() & {DIVERGENCE, SHIFT}:
            metrics[name] = (prepared[name].sum(), float(size))
        return LossOutput(
            total=(batch.row_weights * batch.row_counts * pairs).sum(), metrics=metrics
        )


def preference_loss(
    chosen: Tensor,
    rejected: Tensor,
    probability: Tensor | None,
    settings: ResolvedPreference,
    prepared: Mapping[str, Tensor],
) -> Tensor:
    """The loss of each pair. (P,) -> (P,).

    `prepared`: the results of `prepare` for the loss, (P,) each.
    """
    beta, smoothing = settings.beta, settings.label_smoothing
    match settings.loss:
        case "kto":
            return preference.kto(chosen, rejected, prepared[DIVERGENCE], beta=beta)
        case "bco":
            return preference.bco(chosen, rejected, beta=beta, shift=prepared[SHIFT])
        case "aot":
            others = prepared[AGAINST_CHOSEN], prepared[AGAINST_REJECTED]
            return preference.aot(chosen, rejected, *others, beta=beta, label_smoothing=smoothing)
        case "simpo":
            return preference.simpo(
                chosen, rejected, beta=beta, gamma=settings.gamma, label_smoothing=smoothing
            )
    own: dict[str, Any] = {"label_smoothing": smoothing} if settings.loss in SMOOTHED else {}
    if probability is not None:
        own["probability"] = probability
    return LOSSES[settings.loss](chosen, rejected, beta=beta, **own)


def _divergence(batch: PairBatch, outputs: ModelOutputs, settings: ResolvedPreference) -> Tensor:
    """z0 = max(0, mean log ratio of answers to other prompts), 0 without any; repeated to (P,)."""
    divergence = torch.zeros(())
    if batch.extra is not None:
        assert outputs.extra is not None
        assert outputs.extra.log_probs is not None
        ratios = _log_ratios(outputs.extra.log_probs, batch.extra, settings)  # (N,)
        counts = batch.extra.row_counts
        divergence = ((counts * ratios).sum() / counts.sum()).clamp(min=0.0)
    return divergence.float().repeat(batch.size)


def _log_ratios(log_probs: Tensor, texts: Batch, settings: ResolvedPreference) -> Tensor:
    """log π − log π_ref of each text, reduced; log π without a reference. (B, T) -> (B,)."""
    reference = texts.log_probs_reference
    if not settings.needs_reference:
        reference = torch.zeros_like(log_probs)
    elif reference is None:
        raise ValueError(f"{settings.name} needs log-probs of a reference for both sides")
    return preference.side_log_ratios(
        log_probs, reference, texts.loss_mask, mean=settings.reduce == "mean"
    )


def _soft_labels(batch: PairBatch, settings: ResolvedPreference) -> Tensor | None:
    """Probabilities of the pairs, (P,); None if all are 1."""
    if bool((batch.probability == 1.0).all()):
        return None
    if settings.loss not in SOFT_LOSSES:
        raise ValueError(f"loss {settings.loss!r} is not defined for soft pairs")
    return batch.probability


def _prepared(batch: PairBatch, settings: ResolvedPreference) -> dict[str, Tensor]:
    by_name = {name: batch.given(name) for name in PREPARED.get(settings.loss, ())}
    missing = sorted(name for name, numbers in by_name.items() if numbers is None)
    if missing:
        raise ValueError(
            f"loss {settings.loss!r} needs what `prepare` measures: {', '.join(missing)}"
        )
    return {name: numbers for name, numbers in by_name.items() if numbers is not None}


def _metrics(chosen: Tensor, rejected: Tensor, name: str, beta: float = 1.0) -> Shown:
    """Accuracy, margin and both sides of a comparison, (P,) each. Both sides may fall while the
    margin rises."""
    chosen, rejected, size = chosen.detach(), rejected.detach(), float(chosen.numel())
    margin = beta * (chosen - rejected)
    # a tie (as at the start, where policy and reference are equal) is half right.
    right = (margin > 0).float() + 0.5 * (margin == 0).float()
    return {
        "accuracy": (right.sum(), size),
        "margin": (margin.sum(), size),
        f"{name}/chosen": (chosen.sum(), size),
        f"{name}/rejected": (rejected.sum(), size),
    }


# Legend: ``P`` pairs, ``B`` sequences. Of pairs the first P scores are of the chosen sides.


@dataclass(frozen=True, slots=True, kw_only=True)
class BradleyTerryRecipe(Recipe[PairBatch]):
    """Bradley-Terry: σ(s_chosen − s_rejected − margin) is the probability that chosen is better.

    `center` adds the mean of (s_chosen + s_rejected)², which keeps scores near 0 (arXiv
    2312.09244).
    """

    name: str = "bradley_terry"
    port: str = "pairs"

    def needs(self, settings: BradleyTerry) -> Needs:
        del settings
        return Needs(log_probs=False, scores=True)

    def loss(self, batch: PairBatch, outputs: ModelOutputs, settings: BradleyTerry) -> LossOutput:
        scores = one_score(outputs)
        chosen, rejected = scores[: batch.size], scores[batch.size :]  # (P,) each
        lead = chosen - rejected - batch.margin if settings.margin else chosen - rejected
        # The share of the label for the opposite order.
        against = 1 - batch.probability if settings.soft else settings.label_smoothing
        pairs = -(1 - against) * logsigmoid(lead) - against * logsigmoid(-lead)
        if settings.center is not None:
            pairs = pairs + settings.center * (chosen + rejected).square()
        return LossOutput(
            total=(batch.row_weights * batch.row_counts * pairs).sum(),
            metrics=_metrics(chosen, rejected, "score"),
        )
