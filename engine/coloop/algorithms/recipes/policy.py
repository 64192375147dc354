"""The recipe of port `rewards`: a policy loss with advantages, plus KL, minus entropy.

Legend: ``B`` sequences, ``T`` token positions.
All algorithms of the port are settings of this recipe. Tokens outside the loss mask have no effect.
`loss` looks across the tokens of one sequence only; what depends on the whole batch is computed by
`prepare`, once per learn request.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from coloop.algorithms import losses
from coloop.algorithms.batch import Batch
from coloop.algorithms.kl import kl_divergence
from coloop.algorithms.losses import correction_weights, off_policy_weights
from coloop.algorithms.masks import divisor, masked_sum, token_weights
from coloop.algorithms.recipes.credit import credit_rows
from coloop.algorithms.recipes.protocol import (
    LossOutput,
    ModelOutputs,
    Needs,
    Recipe,
    Shown,
    shown_of_words,
    tokens_of_words,
)
from coloop.algorithms.recipes.rows import OF_OTHERS, CreditBatch, own_tokens
from coloop.spec.algorithm import ResolvedRewards
from coloop.spec.training import Credit

ROW_LOSSES = frozenset(
    {
        *("clipped", "policy_gradient", "sequence_clipped", "cispo", "sapo", "gmpo"),
        *("dppo", "vespo"),
    }
)
"""Losses that need nothing from other sequences."""

CHOSEN_TOKENS = {"clip_cov": "clip_cov_kept", "kl_cov": "kl_cov_selected"}
"""Losses that treat some tokens of the batch differently, with the name of their mask. `prepare`
selects them by covariances under the old policy."""

_CLIPS = ("clip_low", "clip_high")
_REGION = ("divergence", "divergence_low", "divergence_high")
_GAMMA = ("k_positive", "lambda_positive", "k_negative", "lambda_negative")
_RATIO_LOSSES: Mapping[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "clipped": (losses.clipped, (*_CLIPS, "dual_clip")),
    "sequence_clipped": (losses.sequence_clipped, (*_CLIPS, "reduce")),
    "cispo": (losses.cispo, ("ratio_min", "ratio_max")),
    "sapo": (losses.sapo, ("tau_positive", "tau_negative")),
    "gmpo": (losses.gmpo, _CLIPS),
    "dppo": (losses.dppo, (*_REGION, "ratio_max")),
    "vespo": (losses.vespo, _GAMMA),
    "clip_cov": (losses.clipped, _CLIPS),
}
"""Losses of the probability ratio, with the settings that each takes."""

_CLIP_TESTS: Mapping[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "clipped": (losses.is_clipped, _CLIPS),
    "sequence_clipped": (losses.is_sequence_clipped, (*_CLIPS, "reduce")),
    "dppo": (losses.is_outside, _REGION),
}
"""For losses without a gradient where they clip: which tokens are clipped, with its settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecipe(Recipe[Batch]):
    name: str
    port: str = "rewards"

    def refusal(self, settings: ResolvedRewards) -> str | None:
        if settings.loss not in ROW_LOSSES and settings.loss not in CHOSEN_TOKENS:
            return f"loss {settings.loss!r} cannot run"
        if settings.aggregation == "constant" and settings.divisor is None:
            return "aggregation 'constant' needs a divisor"
        return None

    def needs(self, settings: ResolvedRewards) -> Needs:
        reads = {"advantages", "log_probs_old", "log_probs_rollout"}
        if settings.kl is not None:
            reads.add("log_probs_reference")
        if settings.off_policy is not None:
            reads.add(OF_OTHERS)
        chosen = {CHOSEN_TOKENS[settings.loss]} if settings.loss in CHOSEN_TOKENS else set()
        old = set() if settings.old_policy == "engine" else {"log_probs_old"}
        return Needs(
            reads=frozenset(reads | chosen),
            entropy=True,
            entropy_gradient=bool(settings.entropy),
            prepares=frozenset(old | chosen),
            prepares_old=not chosen,
        )

    def prepare(
        self,
        batch: Batch,
        outputs: ModelOutputs,
        settings: ResolvedRewards,
        generator: Generator,
    ) -> Mapping[str, Tensor]:
        assert outputs.log_probs is not None
        old, mask = outputs.log_probs, own_tokens(batch)
        prepared = {} if settings.old_policy == "engine" else {"log_probs_old": old}
        name = CHOSEN_TOKENS.get(settings.loss)
        if name is None:
            return prepared
        covariances = losses.token_covariances(old, _advantages(batch), mask)
        share = settings.covariance_share
        if settings.loss == "clip_cov":
            chosen = losses.clip_cov_keep(covariances, mask, share=share, generator=generator)
        else:
            chosen = losses.kl_cov_select(covariances, mask, share=share)
        return {**prepared, name: chosen.float()}

    def credit(self, rows: CreditBatch, settings: ResolvedRewards, credit: Credit) -> CreditBatch:
        return credit_rows(rows, settings, credit)

    def count(self, batch: Batch, settings: ResolvedRewards) -> float:
        return divisor(
            batch.loss_mask,
            settings.aggregation,
            constant=settings.divisor,
            row_counts=batch.row_counts,
        )

    def loss(self, batch: Batch, outputs: ModelOutputs, settings: ResolvedRewards) -> LossOutput:
        assert outputs.log_probs is not None
        mask, log_probs = own_tokens(batch), outputs.log_probs
        old = _old_log_probs(batch, log_probs, settings)
        correction = _correction(batch, log_probs, old, settings)
        tokens = policy_loss(
            log_probs,
            old,
            _advantages(batch),
            mask,
            settings,
            chosen=_chosen(batch, settings),
            correction=correction,
        )
        if settings.ratio_penalty:
            tokens = tokens + settings.ratio_penalty * losses.squared_log_ratios(
                log_probs, old, mask
            )
        tokens = tokens + _loss_of_others(batch, log_probs, mask, settings)
        weights = token_weights(
            batch.loss_mask,
            settings.aggregation,
            row_weights=batch.row_weights,
            row_counts=batch.row_counts,
        )
        teaching = (weights * tokens).sum()
        total = teaching
        if settings.kl is not None and settings.kl.into == "loss":
            kl = kl_divergence(log_probs, _reference(batch), estimator=settings.kl.estimator)
            if settings.kl.by_ratio:
                kl = kl * _ratio(log_probs, old, mask, settings)
            total = total + settings.kl.coefficient * masked_sum(weights * kl, mask)
        if settings.entropy:
            assert outputs.entropy is not None
            total = total - settings.entropy * (weights * outputs.entropy).sum()
        return LossOutput(
            total=total,
            metrics={
                "loss/policy": (teaching.detach(), self.count(batch, settings)),
                **self._token_metrics(batch, outputs, old, settings),
            },
            maxima={"ratio/max": losses.log_ratios(log_probs.detach(), old, mask).exp().max()},
            tokens=self._tokens(batch, outputs, old, settings),
        )

    def _tokens(
        self, batch: Batch, outputs: ModelOutputs, old: Tensor, settings: ResolvedRewards
    ) -> dict[str, Tensor]:
        """Numbers per token for display: advantage, log ratio, KL, and whether it was clipped."""
        assert outputs.log_probs is not None
        mask, log_probs = own_tokens(batch), outputs.log_probs.detach()
        estimator = "k3" if settings.kl is None else settings.kl.estimator
        tokens = {
            "advantage": torch.where(mask, _advantages(batch), 0.0),
            "log_ratio": losses.log_ratios(log_probs, old, mask),
            **tokens_of_words(outputs, mask, batch.log_probs_reference, estimator),
        }
        clipped = _clipped(batch, log_probs, old, mask, settings)
        return tokens if clipped is None else {**tokens, "clipped": clipped.float()}

    def _token_metrics(
        self, batch: Batch, outputs: ModelOutputs, old: Tensor, settings: ResolvedRewards
    ) -> Shown:
        assert outputs.log_probs is not None
        mask, log_probs = own_tokens(batch), outputs.log_probs.detach()
        metrics: Shown = {}
        clipped = _clipped(batch, log_probs, old, mask, settings)
        if clipped is not None:
            metrics["clip_fraction"] = (clipped.sum(), mask.sum())
        if settings.loss == "vespo":
            weights = losses.gamma_weights(
                log_probs,
                old,
                _advantages(batch),
                mask,
                **{name: getattr(settings, name) for name in _GAMMA},
                correction=_correction(batch, log_probs, old, settings),
            )
            metrics["weight/mean"] = (weights.sum(), mask.sum())
        return metrics | shown_of_words(outputs, mask, batch.log_probs_reference)


def policy_loss(
    log_probs: Tensor,
    old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    settings: ResolvedRewards,
    *,
    correction: Tensor,
    chosen: Tensor | None = None,
) -> Tensor:
    """The loss of each token. (B, T) -> (B, T).

    Args:
        correction: (B, T), importance weights of tokens against the engine.
        chosen: (B, T) bool, the mask of CHOSEN_TOKENS.
    """
    if settings.loss == "policy_gradient":
        return correction * losses.policy_gradient(log_probs, advantages, mask)
    if settings.loss == "kl_cov":
        assert chosen is not None
        return correction * losses.kl_cov(log_probs, old, advantages, mask, selected=chosen)
    if settings.loss not in _RATIO_LOSSES:
        raise ValueError(f"loss {settings.loss!r} cannot run")
    loss, names = _RATIO_LOSSES[settings.loss]
    options = {name: getattr(settings, name) for name in names}
    if settings.loss == "vespo":  # it weighs whole texts, by all of their tokens' weights
        return loss(log_probs, old, advantages, mask, **options, correction=correction)
    tokens = loss(log_probs, old, advantages, mask, **options)
    if settings.loss == "clip_cov":
        assert chosen is not None
        tokens = torch.where(chosen, tokens, 0.0)
    return correction * tokens


def _loss_of_others(
    batch: Batch, log_probs: Tensor, own: Tensor, settings: ResolvedRewards
) -> Tensor:
    """(B, T): −A π / (π + c) for rows of other writers, without a ratio (arXiv 2504.14945)."""
    if settings.off_policy is None:
        return torch.zeros_like(log_probs)
    weights = off_policy_weights(log_probs, shaping=settings.off_policy.shaping)
    return torch.where(batch.loss_mask & ~own, -_advantages(batch) * weights, 0.0)


def _chosen(batch: Batch, settings: ResolvedRewards) -> Tensor | None:
    name = CHOSEN_TOKENS.get(settings.loss)
    if name is None:
        return None
    chosen = batch.given(name)
    if chosen is None:
        raise ValueError(f"loss {settings.loss!r} needs the tokens that `prepare` chooses")
    return chosen.bool()


def _old_log_probs(batch: Batch, log_probs: Tensor, settings: ResolvedRewards) -> Tensor:
    if settings.old_policy == "engine":
        if batch.log_probs_rollout is None:
            raise ValueError("`old_policy: engine` needs the engine's log-probs of each token")
        return batch.log_probs_rollout
    # With one optimizer step an update the policy is its own old self, up to the gradient.
    return log_probs.detach() if batch.log_probs_old is None else batch.log_probs_old


def _clipped(
    batch: Batch, log_probs: Tensor, old: Tensor, mask: Tensor, settings: ResolvedRewards
) -> Tensor | None:
    """(B, T) bool: tokens without a gradient because they are clipped; None if the loss has
    none."""
    if settings.loss not in _CLIP_TESTS:
        return None
    is_clipped, names = _CLIP_TESTS[settings.loss]
    options = {name: getattr(settings, name) for name in names}
    return is_clipped(log_probs, old, _advantages(batch), mask, **options)


def _ratio(log_probs: Tensor, old: Tensor, mask: Tensor, settings: ResolvedRewards) -> Tensor:
    """(B, T): ρ of each token, for `sequence_clipped` that of its sequence; with gradient."""
    if settings.loss == "sequence_clipped":
        ratio = losses.sequence_ratio(log_probs, old, mask, reduce=settings.reduce)
        return ratio[:, None].expand_as(log_probs)
    return losses.log_ratios(log_probs, old, mask).exp()


def _correction(batch: Batch, log_probs: Tensor, old: Tensor, settings: ResolvedRewards) -> Tensor:
    """Importance weights for the difference between trainer and rollout engine, (B, T).

    They compare the old policy with the engine, for `policy_gradient`, which has no ratio, the
    current policy.
    """
    if batch.log_probs_rollout is None:
        return torch.ones_like(old)
    return correction_weights(
        log_probs.detach() if settings.loss == "policy_gradient" else old,
        batch.log_probs_rollout,
        own_tokens(batch),
        method=settings.correction.method,
        lowest=settings.correction.min,
        highest=settings.correction.max,
    )


def _advantages(batch: Batch) -> Tensor:
    if batch.advantages is None:
        raise ValueError("rows of port 'rewards' need advantages")
    return batch.advantages


def _reference(batch: Batch) -> Tensor:
    if batch.log_probs_reference is None:
        raise ValueError("KL in the loss needs log-probs of a reference")
    return batch.log_probs_reference
