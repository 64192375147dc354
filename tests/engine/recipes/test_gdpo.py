"""GDPO (arXiv 2601.05242) by name: several rewards, each compared within its group."""

import math
import random
from statistics import fmean, stdev

import pytest
from tests.engine.numerics import near
from tests.engine.recipes.literals import literal
from tests.engine.recipes.test_credit import LENGTHS, SCORES, TWO_GROUPS, rows, run, settings

SECOND = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
TWO_REWARDS = (("exact", 1.0, SCORES), ("format", 0.5, SECOND))
OF_TRL = [1.696508, -0.106492, -0.106492, -1.483523, 1.192512, *[-0.397504] * 3]
OF_VERL = [1.577533, -0.037482, -0.037482, -1.270882, 1.126077, *[-0.298130] * 3]
"""What the functions of TRL 1.16.0 and of verl 0.9.1 print for these rewards."""


@literal("gdpo", golden="advantage")
def test_rewards_are_compared_one_by_one_and_their_sum_over_the_batch() -> None:
    """With TRL's 1e-4 in both deviations, as it prints them."""
    given = rows(*TWO_REWARDS, groups=TWO_GROUPS, lengths=LENGTHS)

    output = run(given, settings("gdpo", epsilon=1e-4))

    assert list(output.advantages) == near(OF_TRL, digits=6)


def test_verl_whitens_the_sum_over_tokens() -> None:
    given = rows(*TWO_REWARDS, groups=TWO_GROUPS, lengths=LENGTHS)

    output = run(given, settings("verl-gdpo"))

    assert list(output.advantages) == near(OF_VERL, digits=6)


def slowly(rewards: list[list[float]], weights: list[float], groups: list[int]) -> list[float]:
    """The formula, row by row."""
    total = [0.0] * len(groups)
    for said, weight in zip(rewards, weights, strict=True):
        for row, group in enumerate(groups):
            members = [said[other] for other, own in enumerate(groups) if own == group]
            spread = stdev(members) if len(members) > 1 else 0.0
            total[row] += weight * (said[row] - fmean(members)) / (spread + 1e-6)
    return [(one - fmean(total)) / (stdev(total) + 1e-6) for one in total]


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_formula_row_by_row(seed: int) -> None:
    draw = random.Random(seed)
    groups = [draw.randrange(3) for _ in range(12)]
    rewards = [[draw.choice([0.0, 0.25, 1.0]) for _ in groups] for _ in range(3)]
    weights = [1.0, 0.5, 2.0]
    edges = [(f"r{k}", weights[k], rewards[k]) for k in range(3)]

    output = run(rows(*edges, groups=groups), settings("gdpo"))

    assert list(output.advantages) == near(slowly(rewards, weights, groups), digits=4)


def test_the_setting_of_the_learner_is_stronger_than_the_name() -> None:
    given = rows(*TWO_REWARDS, groups=TWO_GROUPS)

    summed = run(given, settings("gdpo"), combine="sum_then_normalize")
    by_name = run(given, settings("grpo"), combine="normalize_then_sum")

    assert summed.advantages == run(given, settings("grpo")).advantages
    assert by_name.advantages == run(given, settings("gdpo")).advantages
    assert by_name.advantages != summed.advantages


def test_a_reward_that_is_a_hundred_times_as_large_drowns_no_other() -> None:
    small, large = [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 100.0, 100.0]
    given = rows(("small", 1.0, small), ("large", 1.0, large))

    output = run(given, settings("gdpo"))

    assert output.advantages[0] == near(output.advantages[3], terms=64)
    assert output.advantages[2] == near(math.sqrt(2) * math.sqrt(3) / 2, digits=4)
