"""MaxRL (arXiv 2602.02710): a reward's lead over the mean of its group, as a share of that mean."""

import random

import pytest
from tests.engine.numerics import near
from tests.engine.recipes.literals import literal
from tests.engine.recipes.test_credit import LENGTHS, SCORES, TWO_GROUPS, rows, run, settings
from tests.engine.recipes.test_recipes import golden_batch, loss_of, rewards

EPSILON = 1e-6


def credit(scores: list[float], groups: list[int]) -> list[float]:
    found = run(rows(("exact", 1.0, [*scores]), groups=groups), settings("maxrl"))
    return [number for number in found.advantages if isinstance(number, float)]


def slowly(scores: list[float], groups: list[int]) -> list[float]:
    """The formula, row by row."""
    advantages = []
    for score, group in zip(scores, groups, strict=True):
        members = [other for other, own in zip(scores, groups, strict=True) if own == group]
        mean = sum(members) / len(members)
        advantages.append((score - mean) / (mean + EPSILON))
    return advantages


@literal("maxrl", golden="advantage")
def test_a_reward_counts_as_a_share_of_its_groups_mean() -> None:
    """As SkyRL prints them: mean 1/4, so 0.75 and -0.25 over 0.250001; equal rewards teach 0."""
    given = rows(("exact", 1.0, SCORES), groups=TWO_GROUPS, lengths=LENGTHS)

    output = run(given, settings("maxrl"))

    assert list(output.advantages) == near([2.999988, *[-0.999996] * 3, *[0.0] * 4], digits=6)


@literal("maxrl")
def test_its_loss_is_clipped_as_that_of_grpo() -> None:
    assert loss_of(golden_batch(), rewards("maxrl")) == near(-0.082452, digits=6)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_formula_row_by_row(seed: int) -> None:
    draw = random.Random(seed)
    groups = [draw.randrange(3) for _ in range(12)]
    scores = [draw.choice([0.0, 0.25, 1.0]) for _ in groups]

    assert credit(scores, groups) == near(slowly(scores, groups), terms=64, scale=12.0)


def test_rewards_that_are_twice_as_large_teach_the_same() -> None:
    once, twice = credit([1.0, 0.0, 0.0, 0.5], [0] * 4), credit([2.0, 0.0, 0.0, 1.0], [0] * 4)

    assert twice == near(once, digits=5)


def test_other_groups_and_the_order_of_rows_change_nothing() -> None:
    alone = credit([1.0, 0.0, 0.0], [0, 0, 0])

    assert credit([0.0, 1.0, 1.0, 0.0, 0.0], [0, 1, 0, 1, 0]) == near(
        [alone[1], 1.0, alone[0], -1.0, alone[2]], digits=5
    )


def test_the_rarer_a_right_answer_the_more_it_counts() -> None:
    rare, common = credit([1.0, 0.0, 0.0, 0.0], [0] * 4), credit([1.0, 1.0, 1.0, 0.0], [0] * 4)

    assert rare[0] == near(3.0, digits=4)
    assert common[0] == near(1 / 3, digits=4)


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.5]])
def test_a_group_without_a_difference_teaches_nothing(scores: list[float]) -> None:
    assert credit(scores, [0] * len(scores)) == [0.0] * len(scores)
