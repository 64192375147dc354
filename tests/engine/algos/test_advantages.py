"""Advantage estimators against slow loops on random shapes, and at their edges."""

import random
import statistics
from collections.abc import Callable

import pytest
import torch
from tests.engine.algos.wholes import group_mean_std
from tests.engine.numerics import assert_near, near

from coloop.algorithms import advantages


def random_groups(seed: int) -> tuple[list[float], list[int]]:
    draw = random.Random(seed)
    scores, groups = [], []
    for group in range(draw.randint(1, 6)):
        for _ in range(draw.randint(1, 7)):
            scores.append(draw.choice([0.0, 0.25, 1.0, draw.random()]))
            groups.append(group)
    order = list(range(len(scores)))
    draw.shuffle(order)
    return [scores[i] for i in order], [groups[i] for i in order]


def peers(groups: list[int], row: int) -> list[int]:
    return [j for j in range(len(groups)) if groups[j] == groups[row]]


@pytest.mark.parametrize("seed", range(20))
def test_group_estimators_equal_the_slow_loops(seed: int) -> None:
    scores, groups = random_groups(seed)
    values, ids = torch.tensor(scores, dtype=torch.float64), torch.tensor(groups)
    draw = random.Random(seed)
    lengths = [draw.randint(1, 9) for _ in scores]
    expected: dict[str, list[float]] = {"mean": [], "std": [], "loo": [], "opo": [], "loo_std": []}

    for row, score in enumerate(scores):
        members = peers(groups, row)
        mine = [scores[j] for j in members]
        mean = statistics.fmean(mine)
        deviation = statistics.stdev(mine) if len(mine) > 1 else 0.0
        others = [scores[j] for j in members if j != row]
        expected["mean"].append(score - mean)
        expected["std"].append((score - mean) / (deviation + 1e-6))
        expected["loo"].append(score - statistics.fmean(others) if others else 0.0)
        weighted = sum(lengths[j] * scores[j] for j in members) / sum(lengths[j] for j in members)
        expected["opo"].append(score - weighted if others else 0.0)
        spread = statistics.stdev(others) if len(others) > 1 else 0.0
        advantage = score - statistics.fmean(others) if others else 0.0
        expected["loo_std"].append(advantage / (spread + 1e-6) if spread > 1e-7 else advantage)

    assert advantages.group_mean(values, ids).tolist() == near(expected["mean"])
    assert group_mean_std(values, ids).tolist() == near(expected["std"])
    assert advantages.leave_one_out(values, ids).tolist() == near(expected["loo"])
    opo = advantages.length_weighted(values, ids, torch.tensor(lengths))
    assert opo.tolist() == near(expected["opo"])
    assert advantages.scale_by_deviation(
        advantages.leave_one_out(values, ids), values, ids, deviation="leave_one_out"
    ).tolist() == near(expected["loo_std"])


@pytest.mark.parametrize("score", [0.1, 0.7, 1 / 3, 1e6])
def test_a_group_of_equal_rewards_gets_no_advantage(score: float) -> None:
    scores, groups = torch.full((7,), score), torch.zeros(7, dtype=torch.long)

    assert (group_mean_std(scores, groups) == 0).all()
    assert (advantages.leave_one_out(scores, groups) == 0).all()


@pytest.mark.parametrize(
    "estimate",
    [
        advantages.group_mean,
        group_mean_std,
        advantages.leave_one_out,
        advantages.best_minus_second,
    ],
)
def test_a_group_of_one_gets_zero(estimate: Callable[..., torch.Tensor]) -> None:
    assert estimate(torch.tensor([3.0]), torch.tensor([0])).tolist() == [0.0]


def test_no_rows_are_no_error() -> None:
    none, groups = torch.zeros(0), torch.zeros(0, dtype=torch.long)

    assert group_mean_std(none, groups).shape == (0,)


def random_tokens(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rows, tokens = 1 + seed % 4, 1 + seed % 9
    mask = torch.rand(rows, tokens, generator=generator) < 0.6
    rewards = torch.randn(rows, tokens, generator=generator) * mask
    values = torch.randn(rows, tokens, generator=generator)
    return rewards, values, mask


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("gamma", "gae_lambda"), [(1.0, 1.0), (0.9, 0.95), (0.5, 0.0)])
def test_gae_equals_the_slow_loop(seed: int, gamma: float, gae_lambda: float) -> None:
    """Without gaps: drop the mask-0 tokens, run the textbook recursion, put them back."""
    rewards, values, mask = random_tokens(seed)

    found, returns = advantages.generalized_advantages(
        rewards, values, mask, gamma=gamma, gae_lambda=gae_lambda
    )

    for row in range(mask.shape[0]):
        own = mask[row].nonzero().flatten().tolist()
        following_value = following = 0.0
        for t in reversed(own):
            delta = float(rewards[row, t]) + gamma * following_value - float(values[row, t])
            following = delta + gamma * gae_lambda * following
            following_value = float(values[row, t])
            assert float(found[row, t]) == near(following, terms=64)
            assert float(returns[row, t]) == near(following + following_value, terms=64)
    assert (found[~mask] == 0).all()
    assert (returns[~mask] == 0).all()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_returns_equal_the_slow_loop(seed: int, gamma: float) -> None:
    rewards, _, mask = random_tokens(seed)

    found = advantages.discounted_returns(rewards, mask, gamma=gamma)

    for row in range(mask.shape[0]):
        running = 0.0
        for t in reversed(range(mask.shape[1])):
            if mask[row, t]:
                running = float(rewards[row, t]) + gamma * running
                assert float(found[row, t]) == near(running, terms=64)
            else:
                assert float(found[row, t]) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_undiscounted_returns_are_added_from_the_last_token_to_the_first(seed: int) -> None:
    """Bit for bit in single precision, in which the order of additions decides the last digits."""
    generator = torch.Generator().manual_seed(seed)
    rewards = torch.randn(3, 200, generator=generator)
    mask = torch.rand(3, 200, generator=generator) < 0.8
    rewards = torch.where(mask, rewards, 0.0)

    found = advantages.discounted_returns(rewards, mask)

    running = torch.zeros(3)
    for t in reversed(range(200)):
        running = torch.where(mask[:, t], rewards[:, t] + running, running)
        assert torch.equal(found[:, t], torch.where(mask[:, t], running, 0.0))


def test_a_reward_in_a_gap_belongs_to_the_token_before_it() -> None:
    rewards = torch.tensor([[0.0, 0, 2, 0, 1]])
    mask = torch.tensor([[1, 1, 0, 0, 1]]).bool()

    assert advantages.discounted_returns(rewards, mask, gamma=0.5).tolist() == [
        [1.25, 2.5, 0, 0, 1]
    ]


def test_gae_gives_a_reward_in_a_gap_to_the_token_before_it() -> None:
    """As where an environment pays behind its own answer."""
    rewards = torch.tensor([[0.0, 0, 2, 0, 1]])
    values = torch.tensor([[0.1, 0.2, 9, 9, 0.4]])
    mask = torch.tensor([[1, 1, 0, 0, 1]]).bool()

    found, returns = advantages.generalized_advantages(rewards, values, mask, gae_lambda=1.0)

    # 1 - .4 = .6; 2 + .4 - .2 + .6 = 2.8; .2 - .1 + 2.8 = 2.9
    assert found[0].tolist() == near([2.9, 2.8, 0, 0, 0.6], terms=16)
    assert returns[0].tolist() == near([3.0, 3.0, 0, 0, 1.0], terms=16)


def test_lambda_may_differ_by_row() -> None:
    lengths = torch.tensor([10.0, 200.0])

    # 1 - 1/(0.05·10) = -1, kept at 0; 1 - 1/(0.05·200) = 0.9
    assert advantages.length_adaptive_lambda(lengths, alpha=0.05).tolist() == near([0.0, 0.9])


@pytest.mark.parametrize("seed", range(10))
def test_whitening_counts_rows_as_often_as_they_were_drawn(seed: int) -> None:
    rewards, _, mask = random_tokens(seed)
    counts = torch.arange(mask.shape[0]) % 3
    repeated = torch.repeat_interleave(torch.arange(mask.shape[0]), counts)

    weighted = advantages.whiten(rewards, mask, row_counts=counts.float())
    plain = advantages.whiten(rewards[repeated], mask[repeated])

    # Both are means over the same tokens in float64, so only the last rounding is left.
    assert_near(weighted[repeated], plain, terms=16)


def test_whitening_one_token_or_none_gives_zero() -> None:
    one = torch.tensor([[5.0, 1.0]])

    assert advantages.whiten(one, torch.tensor([[True, False]])).tolist() == [[0.0, 0.0]]
    assert advantages.whiten(one, torch.zeros(1, 2, dtype=torch.bool)).tolist() == [[0.0, 0.0]]


def test_the_population_variance_is_kept_above_epsilon_not_added_to_it() -> None:
    values, mask = torch.tensor([[1.0, 3.0]]), torch.ones(1, 2, dtype=torch.bool)

    # variance 1: above 0.5 it stays, below 4 it becomes 4; unbiased it is 2, and 2 + 2 is added
    above = advantages.whiten(values, mask, unbiased=False, epsilon=0.5)
    below = advantages.whiten(values, mask, unbiased=False, epsilon=4.0)
    added = advantages.whiten(values, mask, epsilon=2.0)

    assert above[0].tolist() == near([-1.0, 1.0])
    assert below[0].tolist() == near([-0.5, 0.5])
    assert added[0].tolist() == near([-0.5, 0.5])


def test_whitened_tokens_have_mean_zero_and_deviation_one() -> None:
    values = torch.tensor([[1.0, 2, 3], [4, 5, 99]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]]).bool()

    whitened = advantages.whiten(values, mask)[mask]

    assert float(whitened.mean()) == near(0)
    assert float(whitened.std()) == near(1)


def test_shapes_that_differ_are_refused_with_both_shapes() -> None:
    with pytest.raises(ValueError, match=r"\(1, 3\).*\(1, 2\)"):
        advantages.whiten(torch.zeros(1, 2), torch.ones(1, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="bool"):
        advantages.whiten(torch.zeros(1, 2), torch.ones(1, 2))
    with pytest.raises(ValueError, match="rank 2"):
        advantages.discounted_returns(torch.zeros(2), torch.ones(2, dtype=torch.bool))
    with pytest.raises(ValueError, match="groups has 2 rows"):
        advantages.group_mean(torch.zeros(3), torch.zeros(2, dtype=torch.long))


def test_deviations_on_literal_numbers() -> None:
    scores, groups = torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 1])
    expected = {"unbiased": 2**0.5, "population": 1.0, "batch": 2.0, "none": 1.0}

    for deviation, std in expected.items():
        scaled = advantages.scale_by_deviation(
            torch.ones(3), scores, groups, deviation=deviation, epsilon=0.0
        )
        assert scaled[:2].tolist() == near([1 / std] * 2)


def test_leave_one_out_over_steps_compares_with_the_mean_step_of_the_others() -> None:
    # row 0: steps 1 and 0; row 1: one step 0.2. n = 2, means 0.5 and 0.2
    steps, rows = torch.tensor([1.0, 0.0, 0.2]), torch.tensor([0, 0, 1])
    groups = torch.zeros(3, dtype=torch.long)

    found = advantages.leave_one_out(steps, groups, rows)

    # 2 r - (0.5 + 0.2)
    assert found.tolist() == near([1.3, -0.7, -0.3])


def test_best_minus_second_is_zero_where_two_are_best() -> None:
    scores = torch.tensor([1.0, 1.0, 0.0])

    assert advantages.best_minus_second(scores, torch.zeros(3, dtype=torch.long)).tolist() == [
        0,
        0,
        0,
    ]
