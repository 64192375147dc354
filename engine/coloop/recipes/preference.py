"""Learning from pairs: chosen more likely, rejected less, measured against a reference.

Legend: ``P`` pairs, ``T`` token positions. The policy's outputs are over both sides, 2P rows with
the chosen ones first.
With `sft: a` the loss of a pair is a · imitation + (1 − a) · preference, where imitation is the
mean negative log-prob of the chosen side's tokens (arXiv 2404.19733), so the share does not depend
on lengths. Invariant: a pair's loss looks at that pair only; what looks across the batch (how far
the policy is from its reference, for `kto`) is prepared, once an order.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from coloop.algos import preference
from coloop.algos.masks import masked_mean
from coloop.batch import Batch, PairBatch
from coloop.recipes.protocol import LossOutput, ModelOutputs, Needs
from coloop.spec.algorithm import SMOOTHED_LOSSES, SOFT_LOSSES, ResolvedPreference

PLAIN = frozenset({"hinge", "ipo", "nca", "sppo", "apo", "discopop", "kto"})
"""Losses that take no label smoothing."""

DIVERGENCE = "divergence"
"""How far the policy is from its reference, over the batch: what `kto` measures a text against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRecipe:
    """An algorithm of port `pairs` for a policy with a reference."""

    name: str
    port: str = "pairs"

    def refusal(self, settings: ResolvedPreference) -> str | None:
        if settings.loss not in SMOOTHED_LOSSES | PLAIN:
            return f"loss {settings.loss!r} looks across pairs and cannot run yet"
        if settings.label_smoothing > 0 and settings.loss not in SMOOTHED_LOSSES:
            return f"loss {settings.loss!r} takes no label_smoothing"
        return None

    def needs(self, settings: ResolvedPreference) -> Needs:
        measures = settings.loss == "kto"
        return Needs(
            reads=frozenset({"log_probs_reference"}),
            prepares=frozenset({DIVERGENCE} if measures else ()),
            extra=measures,
        )

    def prepare(
        self,
        batch: Batch | PairBatch,
        outputs: ModelOutputs,
        settings: ResolvedPreference,
        generator: Generator,
    ) -> Mapping[str, Tensor]:
        """z0 = max(0, mean of the log ratios of answers to other prompts), the same for all pairs;
        0 where no prompt has another beside it."""
        del generator
        assert isinstance(batch, PairBatch)
        found = torch.zeros(())
        if batch.extra is not None:
            assert outputs.extra is not None
            assert outputs.extra.log_probs is not None
            ratios = _log_ratios(outputs.extra.log_probs, batch.extra, settings)  # (N,)
            counts = batch.extra.row_counts
            found = ((counts * ratios).sum() / counts.sum()).clamp(min=0.0)
        return {DIVERGENCE: found.float().repeat(batch.size)}

    def count(self, batch: Batch | PairBatch, settings: ResolvedPreference) -> float:
        del settings
        assert isinstance(batch, PairBatch)
        return float(batch.row_counts.double().sum())

    def loss(
        self, batch: Batch | PairBatch, outputs: ModelOutputs, settings: ResolvedPreference
    ) -> LossOutput:
        assert isinstance(batch, PairBatch)
        assert outputs.log_probs is not None
        sides = batch.sides
        ratios = _log_ratios(outputs.log_probs, sides, settings)
        chosen, rejected = ratios[: batch.size], ratios[batch.size :]  # (P,) each
        labels, divergence = _soft_labels(batch, settings), batch.given(DIVERGENCE)
        pairs = preference_loss(chosen, rejected, labels, settings, divergence)
        share = settings.sft
        if share > 0:
            tokens = masked_mean(outputs.log_probs, sides.loss_mask, dim=1)
            pairs = share * -tokens[: batch.size] + (1 - share) * pairs
        weights = batch.row_weights * batch.row_counts
        metrics = _metrics(chosen.detach(), rejected.detach(), settings)
        if divergence is not None:
            metrics[DIVERGENCE] = (divergence.sum(), float(batch.size))
        return LossOutput(total=(weights * pairs).sum(), metrics=metrics)


def preference_loss(
    chosen: Tensor,
    rejected: Tensor,
    probability: Tensor | None,
    settings: ResolvedPreference,
    divergence: Tensor | None = None,
) -> Tensor:
    """The loss of each pair that the settings name. (P,) -> (P,).

    Args:
        divergence: (P,), of the whole batch, for the loss that reads it.
    """
    if settings.loss == "kto":
        if divergence is None:
            raise ValueError("loss 'kto' needs the divergence that `prepare` measures")
        return preference.kto(chosen, rejected, divergence, beta=settings.beta)
    if probability is not None:
        soft = {"sigmoid": preference.sigmoid, "hinge": preference.hinge, "ipo": preference.ipo}
        smoothing = (
            {"label_smoothing": settings.label_smoothing} if settings.loss == "sigmoid" else {}
        )
        return soft[settings.loss](
            chosen, rejected, beta=settings.beta, probability=probability, **smoothing
        )
    if settings.loss in SMOOTHED_LOSSES:
        smoothed = {
            "sigmoid": preference.sigmoid,
            "robust": preference.robust,
            "exo": preference.exo,
        }
        return smoothed[settings.loss](
            chosen, rejected, beta=settings.beta, label_smoothing=settings.label_smoothing
        )
    plain = {
        "hinge": preference.hinge,
        "ipo": preference.ipo,
        "nca": preference.nca,
        "sppo": preference.sppo,
        "apo": preference.apo,
        "discopop": preference.discopop,
    }
    return plain[settings.loss](chosen, rejected, beta=settings.beta)


def _log_ratios(log_probs: Tensor, texts: Batch, settings: ResolvedPreference) -> Tensor:
    """log π − log π_ref of each text, as the settings reduce it. (B, T) -> (B,)."""
    if texts.log_probs_reference is None:
        raise ValueError(f"{settings.name} needs log-probs of a reference for both sides")
    return preference.side_log_ratios(
        log_probs, texts.log_probs_reference, texts.loss_mask, mean=settings.reduce == "mean"
    )


def _soft_labels(batch: PairBatch, settings: ResolvedPreference) -> Tensor | None:
    """Probabilities, where a pair has one that is not 1."""
    if bool((batch.probability == 1.0).all()):
        return None
    if settings.loss not in SOFT_LOSSES:
        raise ValueError(f"loss {settings.loss!r} is not defined for soft pairs")
    return batch.probability


def _metrics(
    chosen: Tensor, rejected: Tensor, settings: ResolvedPreference
) -> dict[str, tuple[Tensor | float, Tensor | float]]:
    """Means over pairs. Both sides' log ratios may fall while their margin rises."""
    size = float(chosen.numel())
    margin = settings.beta * (chosen - rejected)
    # A tie (as at the start, where policy and reference are equal) is half right.
    right = (margin > 0).float() + 0.5 * (margin == 0).float()
    return {
        "accuracy": (right.sum(), size),
        "margin": (margin.sum(), size),
        "log_ratio/chosen": (chosen.sum(), size),
        "log_ratio/rejected": (rejected.sum(), size),
    }
