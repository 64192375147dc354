"""Credit over rounds: R = own + discount * mean of the next round's R below."""

import pytest

from coloop.algorithms.recipes.protocol import Score
from coloop.algorithms.recipes.rows import returns_over_rounds


def returns(
    scores: list[Score], rounds: list[int], below: list[list[int]], discount: float = 0.9
) -> list[Score]:
    last = [4] * len(scores)
    return returns_over_rounds(
        scores, rounds=rounds, below=below, last_tokens=last, discount=discount
    )


def test_a_tree_of_three_rounds() -> None:
    """0 ── 1 ── 3        R3 = 1, R4 = 2, R5 = -1
    │    └─ 4        R1 = 0.5 + 0.9 * (1 + 2) / 2 = 1.85
    └── 2 ── 5       R2 = 0 + 0.9 * -1 = -0.9
                     R0 = 1 + 0.9 * (1.85 - 0.9) / 2 = 1.4275"""
    found = returns(
        [1.0, 0.5, 0.0, 1.0, 2.0, -1.0], [1, 2, 2, 3, 3, 3], [[1, 2], [3, 4], [5], [], [], []]
    )

    assert found == pytest.approx([1.4275, 1.85, -0.9, 1.0, 2.0, -1.0], abs=1e-12)


def test_whoever_has_no_score_has_what_comes_after_and_else_none() -> None:
    assert returns([None, None, 2.0], [1, 1, 2], [[2], [], []], 0.5) == [1.0, None, 2.0]
    assert returns([None, 2.0], [1, 2], [[1], []], 0.0) == [None, 2.0]
    assert returns([1.0, None, 3.0], [1, 2, 2], [[1, 2], [], []], 1.0) == [4.0, None, 3.0]


def test_what_comes_later_lands_on_the_last_token_of_scores_by_the_token() -> None:
    found = returns([{1: 0.5}, {2: 1.0, 4: 1.0}], [1, 2], [[1], []], 0.5)

    assert found == [{1: 0.5, 4: 1.0}, {2: 1.0, 4: 1.0}]


def test_without_a_discount_that_counts_nothing_changes() -> None:
    scores: list[Score] = [1.0, None, {0: 1.0}]

    assert returns(scores, [1, 2, 2], [[1, 2], [], []], 0.0) == scores
