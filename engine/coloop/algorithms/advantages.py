"""Advantage estimators.

Legend: ``B`` sequences, ``T`` token positions, ``E`` events (scores or steps), ``G`` groups.
Groups are numbered from 0 without gaps. Their statistics are computed in float64, so a group of
equal rewards gets exactly no advantage; a group of one gets 0.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from coloop.algorithms.masks import check_mask, check_rank, check_rows, check_same_shape, masked_sum

Deviation = Literal["unbiased", "population", "leave_one_out", "batch", "none"]


def group_sums(values: Tensor, groups: Tensor) -> Tensor:
    """For each event, the sum over its group. (E,) -> (E,)."""
    check_rank(1, values=values)
    check_rows(values, groups=groups)
    if groups.numel() == 0:
        return values.clone()
    sums = values.new_zeros(int(groups.max()) + 1).index_add(0, groups, values)
    return sums[groups]


def group_sizes(groups: Tensor) -> Tensor:
    """For each event, the number of events in its group, float64. (E,) -> (E,)."""
    return group_sums(torch.ones_like(groups, dtype=torch.float64), groups)


def group_means(values: Tensor, groups: Tensor) -> Tensor:
    """For each event, the mean over its group, float64. (E,) -> (E,)."""
    return group_sums(values.double(), groups) / group_sizes(groups)


def group_mean(scores: Tensor, groups: Tensor) -> Tensor:
    """A = r - mean_g. Dr. GRPO (arXiv 2503.20783). (E,) -> (E,)."""
    return (scores.double() - group_means(scores, groups)).float()


def leave_one_out(scores: Tensor, groups: Tensor, rows: Tensor | None = None) -> Tensor:
    """A_i = r_i - mean of the group's other rewards = n/(n-1) (r_i - mean_g). (E,) -> (E,).

    RLOO (arXiv 2402.14740). With `rows` (E,), several events may belong to a row; the group is then
    one of rows, each with the mean of its events: n/(n-1) r_e - Σ_j mean_j / (n-1), as in PRIME
    (arXiv 2502.01456).
    """
    check_rank(1, scores=scores)
    check_rows(scores, groups=groups, rows=rows)
    share = torch.ones_like(scores).double() if rows is None else 1 / group_sizes(rows)
    number = group_sums(share, groups)
    mean = group_sums(scores.double() * share, groups) / number
    return ((scores.double() - mean) * number / (number - 1).clamp(min=1)).float()


def scale_by_deviation(
    centred: Tensor,
    scores: Tensor,
    groups: Tensor,
    *,
    deviation: Deviation | str,
    epsilon: float = 1e-6,
) -> Tensor:
    """centred / (deviation of the scores + epsilon). (E,) -> (E,).

    unbiased: of the group, by n-1 · population: of the group, by n · batch: of all scores, unbiased
    · leave_one_out: of the group's others, where it is above 0 (NeMo-RL's default) · none: 1.
    """
    check_rank(1, centred=centred, scores=scores)
    check_rows(scores, centred=centred, groups=groups)
    values = scores.double()
    spread = values - group_means(values, groups)
    sizes = group_sizes(groups)
    match deviation:
        case "none":
            return centred.float()
        case "batch":
            std = values.std() if values.numel() > 1 else torch.zeros_like(values)
        case "unbiased":
            std = (group_sums(spread.square(), groups) / (sizes - 1).clamp(min=1)).sqrt()
        case "population":
            std = (group_sums(spread.square(), groups) / sizes).sqrt()
        case "leave_one_out":
            std = _std_of_others(spread, groups, sizes)
            return torch.where(std > 0, centred.double() / (std + epsilon), centred).float()
        case _:
            raise ValueError(f"unknown deviation {deviation!r}")
    return (centred.double() / (std + epsilon)).float()


def _std_of_others(spread: Tensor, groups: Tensor, sizes: Tensor) -> Tensor:
    """Unbiased std of the group without the event itself, from distances to the group's mean."""
    others = sizes - 1
    mean = -spread / others.clamp(min=1)
    squares = group_sums(spread.square(), groups) - spread.square()
    variance = (squares - others * mean.square()) / (others - 1).clamp(min=1)
    # What rounding leaves of a variance that is 0.
    return torch.where(variance > 1e-15, variance, torch.zeros_like(variance)).sqrt()


def length_weighted(scores: Tensor, groups: Tensor, lengths: Tensor) -> Tensor:
    """A = r - Σ_j L_j r_j / Σ_j L_j, the variance-optimal baseline. OPO (arXiv 2505.23585)."""
    check_rows(scores, lengths=lengths)
    weights = lengths.double()
    baseline = group_sums(weights * scores.double(), groups) / group_sums(weights, groups).clamp(
        min=1
    )
    alone = group_sizes(groups) <= 1
    advantage = scores.double() - baseline
    return torch.where(alone, torch.zeros_like(advantage), advantage).float()


def best_minus_second(scores: Tensor, groups: Tensor) -> Tensor:
    """r_max - r_second for the best of a group; 0 for the others, and for ties. (E,) -> (E,).

    Divided by the deviation: pass@k training (arXiv 2503.19595) with the group as k.
    """
    check_rank(1, scores=scores)
    check_rows(scores, groups=groups)
    advantage = torch.zeros_like(scores, dtype=torch.float64)
    values = scores.double()
    for group in range(int(groups.max()) + 1 if groups.numel() else 0):
        members = (groups == group).nonzero().flatten()
        if members.numel() < 2:
            continue
        top = values[members].topk(2)
        advantage[members[top.indices[0]]] = top.values[0] - top.values[1]
    return advantage.float()


def mean_normalised(scores: Tensor, groups: Tensor, *, epsilon: float = 1e-6) -> Tensor:
    """A = (r - mean_g) / (mean_g + epsilon), 0 in a group whose mean is not above 0. MaxRL (arXiv
    2602.02710), as in prime-rl's `algo/max_rl.py`. (E,) -> (E,)."""
    mean = group_means(scores, groups)
    share = (scores.double() - mean) / (mean.clamp(min=0) + epsilon)
    return torch.where(mean > 0, share, 0.0).float()


def moving_baselines(
    scores: Sequence[float],
    keys: Sequence[Hashable],
    before: Mapping[Hashable, float],
    *,
    decay: float,
    counts: Sequence[float] | None = None,
) -> tuple[list[float], dict[Hashable, float]]:
    """The baseline of each score, and the baselines afterwards, in float64.

    b ← decay · b + (1 − decay) · r after each score, in their order; a key begins at 0. RAE
    (SPIRAL, arXiv 2506.24119), as in prime-rl's `algo/rae.py`: a score is compared with what its
    key's baseline was before it.

    Args:
        keys: of each score, what has a baseline of its own (environment and role).
        before: baselines of earlier scores.
        counts: how often each score was drawn; such a score moves its baseline as often.
    """
    after = dict(before)
    baselines = []
    for index, (score, key) in enumerate(zip(scores, keys, strict=True)):
        baselines.append(after.get(key, 0.0))
        kept = decay ** (1.0 if counts is None else counts[index])
        after[key] = kept * baselines[-1] + (1 - kept) * score
    return baselines, after


def discounted_returns(rewards: Tensor, mask: Tensor, *, gamma: float = 1.0) -> Tensor:
    """G_t = r_t + γ G_{t+1} over mask-1 tokens, 0 elsewhere. (B, T) -> (B, T).

    REINFORCE++ (arXiv 2501.03262). Returns cross gaps of the mask undiscounted; a reward in a gap
    belongs to the mask-1 token before it.
    """
    check_rank(2, rewards=rewards, mask=mask)
    check_same_shape(rewards=rewards, mask=mask)
    check_mask(mask)
    if gamma == 1.0 and not rewards[~mask].any():
        return _sums_to_the_end(rewards, mask)
    returns = torch.zeros_like(rewards, dtype=torch.float32)
    running = torch.zeros_like(rewards[:, :1], dtype=torch.float32).squeeze(1)  # (B,)
    in_gap = torch.zeros_like(running)
    for t in range(rewards.shape[1] - 1, -1, -1):
        own = mask[:, t]
        reward = rewards[:, t].float() + in_gap
        in_gap = torch.where(own, torch.zeros_like(in_gap), reward)
        running = torch.where(own, reward + gamma * running, running)
        returns[:, t] = torch.where(own, running, torch.zeros_like(running))
    return returns


def _sums_to_the_end(rewards: Tensor, mask: Tensor) -> Tensor:
    """Undiscounted returns without rewards in gaps: bit for bit those of the loop, vectorized
    (torch's `cumsum` adds in another precision)."""
    backwards = rewards.float().flip(1).cpu().numpy()
    sums = torch.from_numpy(np.add.accumulate(backwards, axis=1, dtype=np.float32))
    returns = sums.flip(1).to(rewards.device)
    return torch.where(mask, returns, 0.0)


def generalized_advantages(
    rewards: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    gamma: float = 1.0,
    gae_lambda: float | Tensor = 1.0,
) -> tuple[Tensor, Tensor]:
    """GAE: δ_t = r_t + γV_{t+1} − V_t, A_t = δ_t + γλA_{t+1}, returns R = A + V. (B, T) each.

    arXiv 1506.02438. Values and advantages are carried over gaps of the mask, so V at tool tokens
    have no effect and λ does not decay there. `gae_lambda` may be one number per row, (B,).
    """
    check_rank(2, rewards=rewards, values=values, mask=mask)
    check_same_shape(rewards=rewards, values=values, mask=mask)
    check_mask(mask)
    if isinstance(gae_lambda, Tensor):
        check_rows(rewards, gae_lambda=gae_lambda)
    advantages = torch.zeros_like(values, dtype=torch.float32)
    zeros = torch.zeros(values.shape[0], dtype=torch.float32, device=values.device)  # (B,)
    next_value, running, in_gap = zeros, zeros, zeros
    for t in range(values.shape[1] - 1, -1, -1):
        own = mask[:, t]
        reward = rewards[:, t].float() + in_gap
        in_gap = torch.where(own, zeros, reward)
        value = values[:, t].float()
        delta = reward + gamma * next_value - value
        running = torch.where(own, delta + gamma * gae_lambda * running, running)
        next_value = torch.where(own, value, next_value)
        advantages[:, t] = torch.where(own, running, zeros)
    returns = torch.where(mask, advantages + values.float(), torch.zeros_like(advantages))
    return advantages, returns


def length_adaptive_lambda(lengths: Tensor, *, alpha: float) -> Tensor:
    """λ = 1 − 1/(α L) per row, clipped to [0, 1]. VAPO (arXiv 2504.05118). (B,) -> (B,)."""
    check_rank(1, lengths=lengths)
    return (1 - 1 / (alpha * lengths.float().clamp(min=1))).clamp(0, 1)


def whiten(
    advantages: Tensor,
    mask: Tensor,
    *,
    unbiased: bool = True,
    epsilon: float = 1e-8,
    row_counts: Tensor | None = None,
) -> Tensor:
    """(A − mean) / √(var + epsilon) over all mask-1 tokens of the batch, 0 elsewhere. (B, T).

    `unbiased` divides by n − 1; otherwise the variance is at least epsilon (OpenRLHF, NeMo-RL).
    `row_counts` (B,): how often a row was drawn.
    """
    check_rank(2, advantages=advantages, mask=mask)
    check_same_shape(advantages=advantages, mask=mask)
    check_mask(mask)
    check_rows(advantages, row_counts=row_counts)
    weights = mask.double() if row_counts is None else mask.double() * row_counts.double()[:, None]
    count = weights.sum()
    values = advantages.double()
    mean = masked_sum(values * weights, mask) / count.clamp(min=1)
    squares = masked_sum((values - mean).square() * weights, mask)
    if unbiased:
        scale = (squares / (count - 1).clamp(min=1) + epsilon).rsqrt()
    else:
        scale = (squares / count.clamp(min=1)).clamp(min=epsilon).rsqrt()
    whitened = (values - mean) * scale
    return torch.where(mask, whitened, torch.zeros_like(whitened)).float()
