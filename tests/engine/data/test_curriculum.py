"""Difficulty pools: what rows have scored decides how often they are drawn."""

import random
from statistics import fmean

import pytest
from pydantic import ValidationError
from tests.engine.numerics import near

from coloop.data.curriculum import DifficultyPools
from coloop.spec.data import Curriculum
from coloop.spec.nodes import DatasetNode


def curriculum(**fields: object) -> Curriculum:
    return Curriculum.model_validate({"by": "exact", **fields})


ONLY_MIDDLE = curriculum(
    bands=[{"up_to": 0.2, "weight": 0}, {"up_to": 0.8}, {"up_to": 1.0, "weight": 0}]
)


def drawn(pools: DifficultyPools, count: int, given: Curriculum) -> list[int]:
    return [draw.index for draw in pools.take(count, given)]


def test_a_row_belongs_to_the_first_band_that_holds_its_mean() -> None:
    pools = DifficultyPools(rows=6, seed=1)
    pools.observe({0: [0.0], 1: [0.25], 2: [0.0, 1.0], 3: [1.0], 4: [7.0]}, ema=0.0)

    found = [pools.band_of(row, curriculum()) for row in range(6)]

    assert found == [0, 0, 1, 2, 2, None]
    shares = pools.shares(curriculum())
    assert shares == {"0.25": near(2 / 6), "0.75": near(1 / 6), "1": near(2 / 6), **rest(1 / 6)}


def rest(share: float) -> dict[str, object]:
    return {"unmeasured": near(share)}


def test_a_mean_moves_as_the_ema_says_and_begins_with_the_first_scores() -> None:
    latest, slow = DifficultyPools(rows=2, seed=1), DifficultyPools(rows=2, seed=1)

    for scores in ([1.0, 0.0], [1.0], [0.0, 0.0]):
        latest.observe({1: scores}, ema=0.0)
        slow.observe({1: scores}, ema=0.75)

    # .5, then .75 of it and a quarter of 1, then .75 of that
    assert latest.means == {1: 0.0}
    assert slow.means == {1: near(0.75 * (0.75 * 0.5 + 0.25))}


def test_rows_of_weight_0_are_drawn_only_where_the_others_are_too_few() -> None:
    pools = DifficultyPools(rows=10, seed=3)
    pools.observe({row: [float(row % 2)] for row in range(7)}, ema=0.0)  # all far too easy or hard

    few, more = drawn(pools, 3, ONLY_MIDDLE), drawn(pools, 5, ONLY_MIDDLE)

    assert sorted(few) == [7, 8, 9]
    assert sorted(more)[-3:] == [7, 8, 9]
    assert len(set(more)) == 5


def test_no_row_comes_twice_in_a_step_that_the_source_can_fill() -> None:
    pools = DifficultyPools(rows=8, seed=0)

    once, twice = pools.take(8, curriculum()), pools.take(12, curriculum())

    assert sorted(draw.index for draw in once) == list(range(8))
    assert len({(draw.epoch, draw.index) for draw in [*once, *twice]}) == 20


def test_rows_are_drawn_in_proportion_to_their_weights() -> None:
    """Two of a hundred rows: the first is drawn first with the chance of its weight."""
    given = curriculum(bands=[{"up_to": 0.5, "weight": 1.0}, {"up_to": 1.0, "weight": 0.25}])
    pools = DifficultyPools(rows=2, seed=5)
    pools.observe({0: [0.0], 1: [1.0]}, ema=0.0)

    firsts = [drawn(pools, 1, given)[0] for _ in range(4000)]

    assert fmean(one == 0 for one in firsts) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_draws_go_on_from_a_state_as_if_nothing_had_happened(seed: int) -> None:
    draw = random.Random(seed)
    whole = DifficultyPools(rows=20, seed=seed)
    for _ in range(3):
        rows = drawn(whole, 6, curriculum())
        whole.observe({row: [draw.random()] for row in rows}, ema=0.3)
    resumed = DifficultyPools(rows=20, seed=seed)
    resumed.load(whole.state())

    assert resumed.means == whole.means
    assert resumed.take(6, curriculum()) == whole.take(6, curriculum())
    assert resumed.shares(curriculum()) == whole.shares(curriculum())


SOURCE = {"type": "task", "task": "arithmetic"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"bands": [{"up_to": 0.5}, {"up_to": 0.5}]}, "`up_to` must rise from band to band"),
        ({"bands": [{"up_to": 0.5, "weight": 0}]}, "a band needs a `weight` above 0"),
        ({"bands": []}, "at least 1 item"),
        ({"ema": 1.0}, "less than 1"),
    ],
)
def test_bands_that_draw_nothing_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        curriculum(**fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "without `rows_per_step` each step has all rows"),
        ({"rows_per_step": 2, "shuffle": False}, "a curriculum draws rows at random"),
    ],
)
def test_a_dataset_without_draws_has_no_curriculum(fields: dict[str, object], words: str) -> None:
    given = {"kind": "dataset", "source": SOURCE, "curriculum": {"by": "exact"}, **fields}

    with pytest.raises(ValidationError, match=words):
        DatasetNode.model_validate(given)
