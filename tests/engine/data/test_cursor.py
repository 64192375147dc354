"""The data cursor: seeded orders, exact counting of passes, exact resume."""

import json

import pytest

from coloop.data.sources import DataCursor, steps_for
from coloop.errors import CheckpointError


def indexes(cursor: DataCursor, count: int | None = None) -> list[int]:
    return [draw.index for draw in cursor.take(count)]


def test_a_pass_draws_every_row_once() -> None:
    cursor = DataCursor(rows=10, seed=0)

    assert sorted(indexes(cursor, 10)) == list(range(10))
    assert cursor.epoch == 1
    assert cursor.position == 0


def test_each_pass_has_another_order_and_each_seed_too() -> None:
    cursor = DataCursor(rows=50, seed=0)
    first, second = indexes(cursor, 50), indexes(cursor, 50)

    assert first != second
    assert indexes(DataCursor(rows=50, seed=1), 50) != first
    assert indexes(DataCursor(rows=50, seed=0), 50) == first


def test_without_shuffling_rows_come_in_their_own_order() -> None:
    assert indexes(DataCursor(rows=4, seed=0, shuffle=False), 6) == [0, 1, 2, 3, 0, 1]


def test_a_step_at_the_end_of_a_pass_goes_on_with_the_next() -> None:
    cursor = DataCursor(rows=10, seed=0)
    steps = [cursor.take(4) for _ in range(5)]

    assert all(len(step) == 4 for step in steps)
    assert [draw.epoch for draw in steps[2]] == [0, 0, 1, 1]
    assert cursor.epoch == 2
    first_pass = [draw.index for step in steps for draw in step if draw.epoch == 0]
    assert sorted(first_pass) == list(range(10))


def test_a_step_may_be_larger_than_the_source() -> None:
    draws = DataCursor(rows=3, seed=0).take(8)

    assert len(draws) == 8
    assert len({(draw.epoch, draw.index) for draw in draws}) == 8


def test_no_number_takes_all_rows() -> None:
    assert sorted(indexes(DataCursor(rows=5, seed=0))) == [0, 1, 2, 3, 4]


def test_resume_goes_on_with_the_very_next_row() -> None:
    whole = DataCursor(rows=7, seed=3)
    expected = indexes(whole, 20)
    first = DataCursor(rows=7, seed=3)
    before = indexes(first, 9)
    saved = json.loads(json.dumps(first.state()))

    resumed = DataCursor(rows=7, seed=99)
    resumed.load(saved)

    assert before + indexes(resumed, 11) == expected
    assert resumed.state() == whole.state()


def test_a_checkpoint_of_other_data_is_refused() -> None:
    cursor = DataCursor(rows=90, seed=0)

    with pytest.raises(CheckpointError, match=r"dataset of 100 rows, now it has 90"):
        cursor.load(DataCursor(rows=100, seed=0).state())


def test_other_rows_keep_the_count_of_passes() -> None:
    cursor = DataCursor(rows=4, seed=0)
    cursor.take(8)

    other = cursor.resized(10)

    assert (other.epoch, other.position, other.rows) == (2, 0, 10)


def test_other_rows_end_the_pass_that_has_begun() -> None:
    cursor = DataCursor(rows=8, seed=0)
    seen = [tuple(indexes(cursor, 5))]
    for _ in range(3):
        cursor = cursor.resized(8)
        seen.append(tuple(indexes(cursor, 5)))

    assert len(set(seen)) == 4
    assert cursor.epoch == 3


@pytest.mark.parametrize(
    ("epochs", "rows", "per_step", "steps"),
    [(1, 2048, 64, 32), (1, 10, 4, 3), (2, 10, 4, 5), (3, 5, None, 3)],
)
def test_steps_of_some_passes(epochs: int, rows: int, per_step: int | None, steps: int) -> None:
    assert steps_for(epochs=epochs, rows=rows, rows_per_step=per_step) == steps


def test_a_cursor_over_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        DataCursor(rows=0, seed=0)
