"""Advantage estimators: from rewards to what multiplies the gradient of each token.

Legend: ``B`` sequences, ``T`` token positions, ``E`` events (scores or steps), ``G`` groups.
Does not know who forms a group: callers pass dense group numbers. Group statistics are taken in
float64, so a group of equal rewards gets exactly no advantage (in float32 the rounding error of
the mean, divided by a small epsilon, would be a visible one). A group of one gets 0 everywhere.
"""

import torch
from torch import Tensor

from coloop.algos.masks import masked_sum
from coloop.algos.shapes import check_mask, check_rank, check_rows, check_same_shape


def group_sums(values: Tensor, groups: Tensor) -> Tensor:
    """Sum of each event's group, given back to the event. (E,) -> (E,)."""
    check_rank(1, values=values)
    check_rows(values, groups=groups)
    if groups.numel() == 0:
        return values.clone()
    sums = values.new_zeros(int(groups.max()) + 1).index_add(0, groups, values)
    return sums[groups]


def group_sizes(groups: Tensor) -> Tensor:
    """Number of events in each event's group, float64. (E,) -> (E,)."""
    return group_sums(torch.ones_like(groups, dtype=torch.float64), groups)


def group_means(values: Tensor, groups: Tensor) -> Tensor:
    """Mean of each event's group, float64. (E,) -> (E,)."""
    return group_sums(values.double(), groups) / group_sizes(groups)


def group_mean(scores: Tensor, groups: Tensor) -> Tensor:
    """A = r - mean_g. Dr. GRPO (arXiv 2503.20783). (E,) -> (E,)."""
    return (scores.double() - group_means(scores, groups)).float()


def group_mean_std(scores: Tensor, groups: Tensor, *, epsilon: float = 1e-6) -> Tensor:
    """A = (r - mean_g) / (std_g + epsilon), unbiased std. GRPO (arXiv 2402.03300). (E,) -> (E,)."""
    centred = scores.double() - group_means(scores, groups)
    degrees = (group_sizes(groups) - 1).clamp(min=1)
    std = (group_sums(centred.square(), groups) / degrees).sqrt()
    return (centred / (std + epsilon)).float()


def batch_std(scores: Tensor, groups: Tensor, *, epsilon: float = 1e-4) -> Tensor:
    """A = (r - mean_g) / (std of the whole batch + epsilon), unbiased std. (E,) -> (E,)."""
    values = scores.double()
    centred = values - group_means(scores, groups)
    if values.numel() < 2:
        return torch.zeros_like(scores, dtype=torch.float32)
    return (centred / (values.std() + epsilon)).float()


def leave_one_out(scores: Tensor, groups: Tensor) -> Tensor:
    """A_i = r_i - mean of the group's other rewards = n/(n-1) (r_i - mean_g). (E,) -> (E,).

    RLOO (arXiv 2402.14740).
    """
    sizes = group_sizes(groups)
    centred = scores.double() - group_means(scores, groups)
    return (centred * sizes / (sizes - 1).clamp(min=1)).float()


def leave_one_out_std(scores: Tensor, groups: Tensor, *, epsilon: float = 1e-6) -> Tensor:
    """A_i = (r_i - mean_{j!=i}) / (std_{j!=i} + epsilon), scaled only where that std is above 0.

    What NeMo-RL calls GRPO by default; the std is unbiased over the n-1 others. (E,) -> (E,).
    """
    values = scores.double()
    others = group_sizes(groups) - 1
    divisor = others.clamp(min=1)
    mean = (group_sums(values, groups) - values) / divisor
    # Σ_{j!=i} (r_j - mean_{-i})² from sums around the group's mean, which loses no digits.
    centred = values - group_means(scores, groups)
    centred_mean = -centred / divisor
    squares = group_sums(centred.square(), groups) - centred.square()
    variance = (squares - others * centred_mean.square()) / (others - 1).clamp(min=1)
    std = torch.where(variance > 1e-15, variance, torch.zeros_like(variance)).sqrt()
    advantage = values - mean
    scaled = torch.where(std > 0, advantage / (std + epsilon), advantage)
    return torch.where(others > 0, scaled, torch.zeros_like(scaled)).float()


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


def greedy_baseline(scores: Tensor, greedy_scores: Tensor) -> Tensor:
    """A = r - r(greedy completion of the same prompt). ReMax (arXiv 2310.10505). (E,) -> (E,)."""
    check_rank(1, scores=scores)
    check_rows(scores, greedy_scores=greedy_scores)
    return scores.float() - greedy_scores.float()


def best_minus_second(scores: Tensor, groups: Tensor, *, epsilon: float = 1e-6) -> Tensor:
    """The group's best gets (r_max - r_second) / (std_g + epsilon), the others 0. (E,) -> (E,).

    Pass@k training (arXiv 2503.19595) with the group as k. Among equal bests the difference is 0.
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
        spread = values[members].std() + epsilon
        advantage[members[top.indices[0]]] = (top.values[0] - top.values[1]) / spread
    return advantage.float()


def mean_normalised(scores: Tensor, groups: Tensor, *, epsilon: float = 1e-6) -> Tensor:
    """A = (r - mean_g) / (mean_g + epsilon). MaxRL. (E,) -> (E,)."""
    mean = group_means(scores, groups)
    return ((scores.double() - mean) / (mean + epsilon)).float()


def nonzero_scaled(scores: Tensor, groups: Tensor) -> Tensor:
    """A = α (r - mean_g), α = E / number of nonzero rewards. GPG (arXiv 2504.02546)."""
    alpha = scores.numel() / max(int((scores != 0).sum()), 1)
    return (alpha * (scores.double() - group_means(scores, groups))).float()


def discounted_returns(rewards: Tensor, mask: Tensor, *, gamma: float = 1.0) -> Tensor:
    """G_t = r_t + γ G_{t+1} over mask-1 tokens, 0 elsewhere. (B, T) -> (B, T).

    REINFORCE++ (arXiv 2501.03262). The return is carried over gaps of the mask (tool and
    observation tokens) unchanged and undiscounted, so a final reward reaches earlier turns.
    A reward that stands in a gap belongs to the mask-1 token before it.
    """
    check_rank(2, rewards=rewards, mask=mask)
    check_same_shape(rewards=rewards, mask=mask)
    check_mask(mask)
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
    never leaks in and λ does not decay there. `gae_lambda` may be one number a row, (B,).
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
    """λ = 1 − 1/(α L) kept in [0, 1], one a row. VAPO (arXiv 2504.05118). (B,) -> (B,)."""
    check_rank(1, lengths=lengths)
    return (1 - 1 / (alpha * lengths.float().clamp(min=1))).clamp(0, 1)


def whiten(
    advantages: Tensor,
    mask: Tensor,
    *,
    unbiased: bool = True,
    epsilon: float = 1e-8,
    row_counts: Tensor | None = None,
    keep_mean: bool = False,
) -> Tensor:
    """(A − mean) / √(var + epsilon) over all mask-1 tokens of the batch, 0 elsewhere. (B, T).

    `unbiased` divides the variance by n − 1; otherwise the population variance is kept at or
    above epsilon, as OpenRLHF and NeMo-RL do. `row_counts` (B,) says how often a row was drawn.
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
    whitened = (values if keep_mean else values - mean) * scale
    return torch.where(mask, whitened, torch.zeros_like(whitened)).float()
