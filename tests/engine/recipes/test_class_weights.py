"""Weights of classes and balanced groups: literal numbers and what they keep."""

import math

import pytest
from tests.engine.numerics import near

from coloop.algorithms.recipes.kl_control import class_weights, moved_frequencies
from coloop.algorithms.recipes.rows import balanced_counts


def test_frequencies_are_a_moving_average_that_begins_with_the_first_step() -> None:
    first = moved_frequencies({}, [1.0, 0.0, 0.0, 0.0, None], ema=0.8)
    second = moved_frequencies(first, [1.0, 1.0], ema=0.8)

    assert first == {0.0: 0.75, 1.0: 0.25}
    # .8 · .75 and .8 · .25 + .2
    assert second == near({0.0: 0.6, 1.0: 0.4})
    assert moved_frequencies(second, [None], ema=0.8) == second


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        # 1/√f over √.2 + √.8 · and 1/f over 2 classes
        (
            "inverse_sqrt",
            [1 / math.sqrt(f) / (math.sqrt(0.2) + math.sqrt(0.8)) for f in (0.2, 0.8)],
        ),
        ("inverse", [2.5, 0.625]),
    ],
)
def test_the_mean_weight_is_one(shape: str, expected: list[float]) -> None:
    frequencies = {0.0: 0.2, 1.0: 0.8}

    found = class_weights(frequencies, shape=shape)

    assert [*found.values()] == near(expected)
    assert sum(frequencies[one] * found[one] for one in found) == near(1.0)


def test_one_class_alone_weighs_one() -> None:
    assert class_weights({1.0: 1.0}, shape="inverse") == {1.0: 1.0}
    assert class_weights({}, shape="inverse") == {}


@pytest.mark.parametrize(
    ("counts", "to", "expected"),
    [
        ([1, 1, 1], 2, [0, 1, 1]),
        ([1, 1, 1], 3, [1, 1, 1]),
        ([1, 1, 1], 5, [1, 2, 2]),
        ([3, 1, 0], 3, [2, 1, 0]),  # drawn three times: three rows
        ([0, 0, 0], 3, [0, 0, 0]),
    ],
)
def test_rows_that_teach_most_stay_and_are_repeated_first(
    counts: list[int], to: int, expected: list[int]
) -> None:
    assert balanced_counts(counts, [0.1, 0.9, 0.5], to=to, by="advantage", seed=0) == expected


def test_random_rows_are_cut_and_repeated_evenly() -> None:
    few = [balanced_counts([1] * 6, [0.0] * 6, to=4, by="random", seed=seed) for seed in range(9)]
    many = balanced_counts([1] * 6, [0.0] * 6, to=15, by="random", seed=1)

    assert all(sorted(one) == [0, 0, 1, 1, 1, 1] for one in few)
    assert len({tuple(one) for one in few}) > 1
    assert sorted(many) == [2, 2, 2, 3, 3, 3]
