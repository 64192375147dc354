"""RAE (arXiv 2506.24119): rewards less a moving average of earlier ones, one for each dataset and
role."""

import random

import pytest
from tests.engine.numerics import near
from tests.engine.recipes.literals import literal
from tests.engine.recipes.test_credit import rows, run, settings

KEYS = ["a", "b", "a", "b"]


@literal("rae")
def test_a_reward_is_compared_with_what_the_average_was_before_it() -> None:
    """a: 0, then .05 · 1; b: 0, then .05 · -1. prime-rl's order: the reward moves it afterwards."""
    given = rows(("won", 1.0, [1.0, -1.0, 1.0, 0.5]), baseline_keys=KEYS)

    output = run(given, settings("rae"))

    assert list(output.advantages) == near([1.0, -1.0, 0.95, 0.55])
    assert output.baselines == {("", "a"): near(0.0975), ("", "b"): near(-0.0225)}
    assert output.metrics["baseline/mean"] == near(0.0375)


def slowly(rewards: list[float], keys: list[str], decay: float) -> list[float]:
    """prime-rl's `RAEAlgorithm.score_group`, row by row."""
    baselines: dict[str, float] = {}
    advantages = []
    for reward, key in zip(rewards, keys, strict=True):
        baseline = baselines.get(key, 0.0)
        advantages.append(reward - baseline)
        baselines[key] = decay * baseline + (1.0 - decay) * reward
    return advantages


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_formula_row_by_row_over_several_steps(seed: int) -> None:
    draw = random.Random(seed)
    keys = [draw.choice("abc") for _ in range(30)]
    rewards = [draw.choice([-1.0, 0.0, 0.3, 1.0]) for _ in keys]
    algorithm = settings("rae", baseline_decay=0.7)
    found, baselines = [], {}

    for begin in range(0, 30, 10):
        part = slice(begin, begin + 10)
        edge = ("won", 1.0, rewards[part])
        output = run(rows(edge, baseline_keys=keys[part], baselines=baselines), algorithm)
        found += list(output.advantages)
        baselines = output.baselines

    assert found == near(slowly(rewards, keys, 0.7), terms=64)


def test_the_given_averages_are_left_as_they_are() -> None:
    before = {("", "a"): 0.5}
    given = rows(("won", 1.0, [1.0, 0.0]), baseline_keys=["a", "a"], baselines=before)

    output = run(given, settings("rae"))

    assert output.advantages == (0.5, near(-0.525))
    assert before == {("", "a"): 0.5}


def test_a_row_that_was_drawn_twice_moves_the_average_twice() -> None:
    once = rows(("won", 1.0, [1.0, 1.0, 0.0]), baseline_keys=["a"] * 3)
    drawn = rows(("won", 1.0, [1.0, 0.0]), baseline_keys=["a"] * 2, counts=[2.0, 1.0])

    written_out, counted = run(once, settings("rae")), run(drawn, settings("rae"))

    assert counted.advantages[1] == near(written_out.advantages[2])
    assert counted.baselines == {("", "a"): near(written_out.baselines["", "a"])}


def test_several_rewards_have_averages_of_their_own_where_each_is_compared() -> None:
    given = rows(("a", 1.0, [1.0, 1.0]), ("b", 2.0, [0.0, 1.0]), baseline_keys=["x", "x"])

    summed = run(given, settings("rae"))
    apart = run(given, settings("rae"), combine="separate_advantages")

    # (1, 3) against 0 and .05; (1, 1) against 0 and .05, (0, 1) against 0 and 0
    assert list(summed.advantages) == near([1.0, 2.95])
    assert list(apart.advantages) == near([1.0, 0.95 + 2.0])
    assert set(summed.baselines) == {("", "x")}
    assert set(apart.baselines) == {("a", "x"), ("b", "x")}


def test_scores_of_steps_count_as_their_sum() -> None:
    given = rows(("steps", 1.0, [{0: 0.5, 1: 0.5}, {1: 1.0}]), baseline_keys=["a", "a"])

    output = run(given, settings("rae"))

    assert list(output.advantages) == near([1.0, 0.95])


def test_a_row_without_a_score_moves_nothing() -> None:
    given = rows(("won", 1.0, [1.0, None, 1.0]), baseline_keys=["a"] * 3)

    output = run(given, settings("rae"))

    assert output.advantages[1] is None
    assert output.advantages[2] == near(0.95)


def test_a_zero_sum_game_that_favors_one_side_teaches_both() -> None:
    """In the long run neither side is praised or blamed for what the game gives it."""
    first = [1.0, 1.0, 1.0, -1.0] * 50
    given = rows(("won", 1.0, [one for won in first for one in (won, -won)]))
    given = rows(
        ("won", 1.0, list(given.edges[0].scores)), baseline_keys=["first", "second"] * len(first)
    )

    output = run(given, settings("rae"))
    late = [float(one) for one in output.advantages if one is not None][-80:]

    assert abs(sum(late[::2]) / 40) < 0.05
    assert abs(sum(late[1::2]) / 40) < 0.05
