"""The recipe of port `reference`, where it teaches: a divergence from teachers at each token.

Legend: ``B`` sequences, ``T`` token positions; p is the policy, q a teacher.

`support: sampled` needs only log-probs of the sampled tokens: with A = Σ_j w_j log q_j − log p,
held constant, the loss of a token is −A ρ. For texts of the policy itself its gradient is that of
KL(p, q), as in prime-rl (`trainer/rl/loss.py::ref_kl_loss_fn`) and TRL
(`experimental/sdpo/loss_utils.py`). Otherwise the divergence comes from the model, summed over
words, with its gradient (`algorithms/distillation.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from coloop.algorithms.batch import Batch
from coloop.algorithms.batch.collating import TEACHERS
from coloop.algorithms.distillation import Comparison
from coloop.algorithms.losses import correction_weights, log_ratios
from coloop.algorithms.masks import divisor, masked_sum, token_weights
from coloop.algorithms.recipes.protocol import (
    LossOutput,
    ModelOutputs,
    Needs,
    Recipe,
    Shown,
    shown_of_words,
    tokens_of_words,
)
from coloop.spec.algorithm import ResolvedDistillation


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillationRecipe(Recipe[Batch]):
    name: str
    port: str = "reference"

    def needs(self, settings: ResolvedDistillation) -> Needs:
        comparison = comparison_of(settings)
        if comparison is not None:
            reads = frozenset({TEACHERS})
            return Needs(reads=reads, entropy=True, comparison=comparison)
        return Needs(
            reads=frozenset({TEACHERS, "log_probs_old", "log_probs_rollout"}),
            entropy=True,
            prepares=frozenset({"log_probs_old"}),
            prepares_old=True,
        )

    def prepare(
        self,
        batch: Batch,
        outputs: ModelOutputs,
        settings: ResolvedDistillation,
        generator: Generator,
    ) -> Mapping[str, Tensor]:
        del batch, settings, generator
        assert outputs.log_probs is not None
        return {"log_probs_old": outputs.log_probs}

    def count(self, batch: Batch, settings: ResolvedDistillation) -> float:
        del settings
        return divisor(batch.loss_mask, "token_mean", row_counts=batch.row_counts)

    def loss(
        self, batch: Batch, outputs: ModelOutputs, settings: ResolvedDistillation
    ) -> LossOutput:
        assert outputs.log_probs is not None
        mask, log_probs = batch.loss_mask, outputs.log_probs
        teachers = [_put(own.log_probs, mask) for own in batch.teachers]
        weights = [own.weights[:, None] for own in batch.teachers]
        taught = sum(
            (weight * own for weight, own in zip(weights, teachers, strict=True)),
            start=torch.zeros_like(log_probs),
        )
        behind = torch.where(mask, log_probs.detach() - taught, 0.0)  # k1 of KL(p, q)
        if settings.support == "sampled":
            tokens = _policy_gradient(batch, log_probs, behind, settings)
        else:
            assert outputs.divergence is not None
            tokens = _clamped(outputs.divergence, settings)
        counted = token_weights(
            mask, "token_mean", row_weights=batch.row_weights, row_counts=batch.row_counts
        )
        metrics: Shown = {"distillation/kl": (behind.sum(), mask.sum())}
        if len(teachers) > 1:
            for rows, own in zip(batch.teachers, teachers, strict=True):
                known = mask & (rows.weights > 0)[:, None]
                apart = masked_sum(log_probs.detach() - own, known)
                metrics[f"teacher/{rows.node}"] = (apart, known.sum())
        if outputs.divergence is not None:
            apart = masked_sum(outputs.divergence.detach(), mask)
            metrics["distillation/divergence"] = (apart, mask.sum())
        if settings.support == "top_k" and outputs.mass is not None:
            assert outputs.own_mass is not None
            metrics["distillation/mass"] = (outputs.mass.sum(), mask.sum())
            metrics["distillation/own_mass"] = (outputs.own_mass.sum(), mask.sum())
        shown = {"distillation_kl": behind}
        if outputs.divergence is not None:
            shown["divergence"] = outputs.divergence.detach()
        return LossOutput(
            total=masked_sum(counted * tokens, mask),
            metrics=metrics | shown_of_words(outputs, mask, None),
            tokens={**shown, **tokens_of_words(outputs, mask, None)},
        )


def comparison_of(settings: ResolvedDistillation) -> Comparison | None:
    """None where only the sampled tokens are compared."""
    if settings.support == "sampled":
        return None
    return Comparison(
        divergence=settings.divergence,
        beta=settings.beta,
        k=settings.k if settings.support == "top_k" else None,
        tail=settings.tail,
    )


def _policy_gradient(
    batch: Batch, log_probs: Tensor, behind: Tensor, settings: ResolvedDistillation
) -> Tensor:
    """-A ρ of each token, times the importance weight of the engine's mismatch. (B, T)."""
    mask = batch.loss_mask
    old = log_probs.detach() if batch.log_probs_old is None else batch.log_probs_old
    tokens = _clamped(behind, settings) * log_ratios(log_probs, old, mask).exp()
    if batch.log_probs_rollout is None:
        return tokens
    correction = settings.correction
    return tokens * correction_weights(
        old,
        batch.log_probs_rollout,
        mask,
        method=correction.method,
        lowest=correction.min,
        highest=correction.max,
    )


def _clamped(tokens: Tensor, settings: ResolvedDistillation) -> Tensor:
    return tokens if settings.clip is None else tokens.clamp(-settings.clip, settings.clip)


def _put(rows: tuple[Tensor | None, ...], mask: Tensor) -> Tensor:
    """(B, T): numbers of trained tokens at their places, 0 elsewhere and in rows without any."""
    put = torch.zeros(mask.shape, device=mask.device)
    for index, numbers in enumerate(rows):
        if numbers is not None:
            put[index, mask[index]] = numbers.to(put.dtype)
    return put
