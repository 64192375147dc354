"""Credit assignment: scores of reward edges become an advantage for each trained token.

Legend: ``B`` rows that stay, ``T`` completion tokens.

    scores -> events -> combine, baseline, deviation -> one number per row, or
                                                        token rewards -> returns or GAE -> whiten

`credit.combine`, or where it is null the algorithm, says when edges are summed:
`sum_then_normalize` before the baseline, `normalize_then_sum` after it and before a normalisation
over the batch, `separate_advantages` after it only. KL in the reward is subtracted from the row's
sum if there is a baseline of rows (one number per row, as in verl and in TRL's RLOO); without one,
or if the preset penalizes after the baseline (as OpenRLHF), from the reward of each token. Scores
already include those of later rounds (`returns_over_rounds` in `rows.py`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TypeVar

import torch
from torch import Tensor

from coloop.algorithms import advantages as estimate
from coloop.algorithms.kl import kl_divergence
from coloop.algorithms.masks import masked_mean, masked_sum
from coloop.algorithms.recipes.estimators import (
    GroupedRewards,
    clip_events,
    combine_of,
    last_of_rows,
    normalise_rows,
    rows_that_stay,
    sum_of_edges,
    sum_of_normalised_edges,
)
from coloop.algorithms.recipes.protocol import EdgeScores, total_of
from coloop.algorithms.recipes.rows import CreditBatch, pad
from coloop.data.arrays import Mask
from coloop.spec.algorithm import ResolvedRewards
from coloop.spec.training import Credit

T = TypeVar("T")

GROUP_OF_ONE = "credit.group_of_one"
"""Code of the alert for rows that are alone in their group, so their advantage is 0."""


def credit_rows(rows: CreditBatch, settings: ResolvedRewards, credit: Credit) -> CreditBatch:
    """The rows with advantages, returns and metrics; None for rows that leave the update, and for
    those that are not taught."""
    index, staying = _staying(rows, credit)
    staying = replace(staying, baselines=dict(rows.baselines))
    totals = sum_of_edges(staying, credit.missing)
    kl = _kl_of_tokens(staying, settings)
    coefficient = 0.0 if settings.kl is None else settings.kl.coefficient
    kl_left = penalty = None if kl is None else coefficient * kl
    if combine_of(settings, credit) == "sum_then_normalize":
        events = clip_events(totals, settings, is_before=True)
        by_row = settings.needs_group or settings.needs_baseline
        if penalty is not None and by_row and not settings.penalizes_after_baseline:
            events, kl_left = _less_kl_of_rows(events, staying, penalty), None
        events = normalise_rows(events, staying, settings)
        events = clip_events(events, settings, is_before=False)
    else:
        events = sum_of_normalised_edges(staying, settings, credit)
    credited = _with_advantages_of_rows(events, kl_left, staying, settings)
    credited = credited or _with_advantages_of_tokens(events, kl_left, staying, settings)
    rewards = totals.row_totals(len(staying)).float()
    mean_kl = None if kl is None else float(masked_mean(kl, staying.mask))
    metrics = _metrics(rows, staying, rewards, credited.metrics)
    if settings.needs_baseline and staying.baselines:
        metrics["baseline/mean"] = fmean(staying.baselines.values())
    if mean_kl is not None:
        metrics["kl/penalty"] = coefficient * mean_kl

    def of_taught(values: Sequence[T]) -> tuple[T | None, ...]:
        spread = _spread(values, index, len(rows))
        taught = rows.taught or [True] * len(rows)
        return tuple(value if own else None for value, own in zip(spread, taught, strict=True))

    return replace(
        rows,
        settings=settings,
        advantages=of_taught(credited.advantages),
        returns=None if credited.returns is None else of_taught(credited.returns),
        returns_at={ahead: of_taught(returns) for ahead, returns in credited.returns_at.items()},
        rewards=_spread(rewards.tolist(), index, len(rows)),
        baselines=staying.baselines,
        metrics=metrics,
        kl=mean_kl,
        alerts=_alerts(staying, settings),
    )


def reward_of_rows(
    edges: Sequence[EdgeScores],
    loss_masks: Sequence[Mask],
    settings: ResolvedRewards,
    credit: Credit,
) -> list[float | None]:
    """The clipped combined reward of each row; None for rows that leave the update."""
    rows = CreditBatch(edges=edges, groups=range(len(loss_masks)), loss_masks=loss_masks)
    index, staying = _staying(rows, credit)
    events = clip_events(sum_of_edges(staying, credit.missing), settings, is_before=True)
    return list(_spread(events.row_totals(len(staying)).tolist(), index, len(rows)))


def _staying(rows: CreditBatch, credit: Credit) -> tuple[list[int], CreditBatch]:
    """Indices of the rows that stay in the update, and these rows, without edges of weight 0."""
    _check_input(rows)
    live = replace(rows, edges=[edge for edge in rows.edges if edge.weight != 0.0])
    index = rows_that_stay(live, credit.missing)
    _check_tokens(live, index)
    return index, live.only(index)


def _spread(values: Sequence[T], index: Sequence[int], size: int) -> tuple[T | None, ...]:
    """Values at these indices of `size` rows, None elsewhere."""
    by_row = dict(zip(index, values, strict=True))
    return tuple(by_row.get(row) for row in range(size))


def _with_advantages_of_rows(
    events: GroupedRewards, kl: Tensor | None, staying: CreditBatch, settings: ResolvedRewards
) -> CreditBatch | None:
    """Advantages as one number per row, without any (B, T) tensor: if each row has its reward at
    the last trained token, and nothing is discounted or per token. None if tokens may differ."""
    by_token = settings.needs_values or settings.needs_greedy or settings.gamma != 1.0
    if by_token or settings.whiten or kl is not None or not _are_whole(events, staying):
        return None
    own = torch.zeros(len(staying)).index_put((events.rows,), events.values.float())
    own = torch.where(staying.lengths > 0, own, 0.0)
    metrics = _advantage_metrics(staying.at_taught_tokens(own))
    return replace(staying, advantages=tuple(own.tolist()), metrics=metrics)


def _are_whole(events: GroupedRewards, staying: CreditBatch) -> bool:
    """Whether each row has at most one event, at its last trained token."""
    is_last = last_of_rows(events.rows)
    return bool(is_last.all()) and torch.equal(events.positions, staying.last[events.rows])


def _with_advantages_of_tokens(
    events: GroupedRewards, kl: Tensor | None, staying: CreditBatch, settings: ResolvedRewards
) -> CreditBatch:
    """Advantages and returns per token."""
    token_rewards = events.at_tokens(staying.mask.shape)
    if kl is not None:
        token_rewards = token_rewards - kl
    advantages, returns, others = _look_ahead(token_rewards, staying, settings)
    if settings.whiten:
        is_unbiased = settings.whiten_deviation == "unbiased"
        advantages = estimate.whiten(
            advantages, staying.taught_mask, unbiased=is_unbiased, row_counts=staying.draws
        )
    return replace(
        staying,
        advantages=tuple(staying.numbers_or_arrays(advantages)),
        returns=None if returns is None else tuple(staying.arrays(returns)),
        returns_at={ahead: tuple(staying.arrays(own)) for ahead, own in others.items()},
        metrics=_advantage_metrics(advantages[staying.taught_mask]),
    )


def _advantage_metrics(at_taught: Tensor) -> dict[str, float]:
    """
    Args:
        at_taught: (N,) float32, the advantage of each trained token of the rows that are taught.
    """
    return {
        "advantage/mean": float(at_taught.mean()) if at_taught.numel() else 0.0,
        "advantage/std": float(at_taught.std()) if at_taught.numel() > 1 else 0.0,
    }


def _check_input(rows: CreditBatch) -> None:
    given: dict[str, Sequence[object] | None] = {
        "loss_masks": rows.loss_masks,
        "counts": rows.counts,
        "log_prob_differences": rows.log_prob_differences,
        "values": rows.values,
        "taught": rows.taught,
        "greedy_scores": rows.greedy_scores,
        "of_others": rows.of_others,
        **{f"scores of {edge.name}": edge.scores for edge in rows.edges},
    }
    for name, value in given.items():
        if value is not None and len(value) != len(rows.groups):
            raise ValueError(f"{name} has {len(value)} rows, expected {len(rows.groups)}")
    for edge in rows.edges:
        for row, score in enumerate(edge.scores):
            total = total_of(score)
            if total is not None and not math.isfinite(total):
                raise ValueError(f"score {score} of {edge.name} for row {row} is not finite")


def _check_tokens(rows: CreditBatch, index: Sequence[int]) -> None:
    """Raise ValueError if scores or numbers of these rows do not fit their tokens."""
    for row in index:
        size = len(rows.loss_masks[row])
        for edge in rows.edges:
            score = edge.scores[row]
            for token in score if isinstance(score, Mapping) else ():
                if not 0 <= token < size:
                    raise ValueError(
                        f"{edge.name} scores token {token} of row {row}, which has {size} tokens"
                    )
        for numbers in (rows.log_prob_differences, rows.values):
            if numbers is not None and len(numbers[row]) != size:
                raise ValueError(f"row {row} has {size} tokens but {len(numbers[row])} numbers")


def _kl_of_tokens(staying: CreditBatch, settings: ResolvedRewards) -> Tensor | None:
    """KL at each trained token, (B, T); None if it is not part of the reward."""
    if settings.kl is None or settings.kl.into != "reward":
        return None
    if staying.log_prob_differences is None:
        raise ValueError("KL in the reward needs log-probs of a reference")
    differences = pad(staying.log_prob_differences, torch.float32)
    zeros = torch.zeros_like(differences)
    kl = kl_divergence(differences, zeros, estimator=settings.kl.estimator)
    return torch.where(staying.mask, kl, 0.0)


def _less_kl_of_rows(events: GroupedRewards, staying: CreditBatch, kl: Tensor) -> GroupedRewards:
    """Events with the total KL of each row subtracted from its last one."""
    per_row = masked_sum(kl, staying.mask, dim=1).double()  # (B,)
    is_last = last_of_rows(events.rows)
    less = torch.where(is_last, per_row[events.rows], 0.0)
    return events.with_values(events.values - less)


def _look_ahead(
    token_rewards: Tensor, staying: CreditBatch, settings: ResolvedRewards
) -> tuple[Tensor, Tensor | None, dict[float, Tensor]]:
    """Advantages, returns (None without values), and returns by lambda of critics. (B, T) each."""
    if settings.needs_values:
        return _gae(token_rewards, staying, settings)
    ahead = estimate.discounted_returns(token_rewards, staying.mask, gamma=settings.gamma)
    if not settings.needs_greedy:
        return ahead, None, {}
    if staying.greedy_scores is None:
        raise ValueError("advantage 'greedy' needs the score of each prompt's greedy row")
    greedy = torch.tensor(staying.greedy_scores)
    return torch.where(staying.mask, ahead - greedy[:, None], 0.0), None, {}


def _gae(
    token_rewards: Tensor, staying: CreditBatch, settings: ResolvedRewards
) -> tuple[Tensor, Tensor, dict[float, Tensor]]:
    if staying.values is None:
        raise ValueError("advantage 'gae' needs the values of a critic")
    values = pad(staying.values, torch.float32)

    def look_ahead(gae_lambda: float | Tensor) -> tuple[Tensor, Tensor]:
        return estimate.generalized_advantages(
            token_rewards, values, staying.mask, gamma=settings.gamma, gae_lambda=gae_lambda
        )

    own: float | Tensor = settings.gae_lambda
    if settings.length_alpha is not None:
        own = estimate.length_adaptive_lambda(staying.lengths, alpha=settings.length_alpha)
    advantages, returns = look_ahead(own)
    others = {ahead: look_ahead(ahead)[1] for ahead in staying.critic_lambdas}
    return advantages, returns, others


def _alerts(staying: CreditBatch, settings: ResolvedRewards) -> tuple[tuple[str, str], ...]:
    if not settings.needs_group or settings.allow_group_of_one:
        return ()
    alone = int((estimate.group_sizes(staying.group_numbers) <= 1).sum())
    if alone == 0:
        return ()
    message = (
        f"{alone} of {len(staying)} rows are alone in their group; "
        f"{settings.advantage} gives them advantage 0, so they teach nothing"
    )
    return ((GROUP_OF_ONE, message),)


def _metrics(
    rows: CreditBatch, staying: CreditBatch, rewards: Tensor, of_advantages: Mapping[str, float]
) -> dict[str, float]:
    metrics = {
        "rows/without_reward": float(len(rows) - len(staying)),
        "rows/truncated": float(0 if rows.taught is None else rows.taught.count(False)),
    }
    if not len(staying):
        return metrics
    groups = staying.group_numbers
    distance = (rewards - estimate.group_means(rewards, groups)).abs()
    is_flat = estimate.group_sums(distance, groups) < 1e-6
    shares = 1 / estimate.group_sizes(groups)  # of its group, one a group in all
    metrics |= {
        "reward/mean": float(rewards.mean()),
        "reward/std": float(rewards.std()) if len(staying) > 1 else 0.0,
        "group/zero_variance": float((shares * is_flat).sum() / shares.sum()),
        **of_advantages,
    }
    for edge in staying.edges if len(staying.edges) > 1 else ():
        there = [total for score in edge.scores if (total := total_of(score)) is not None]
        metrics[f"reward/{edge.name}"] = sum(there) / len(there) if there else 0.0
    return metrics
