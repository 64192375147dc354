"""Rows: ids, trails, nearest columns."""

from dataclasses import replace
from typing import Any

import pytest

from coloop.data.tables.row import ABSENT, Row, child_row, joined_row, root_row


def problem(index: int = 0) -> Row:
    return root_row("problems", f"0.{index}", {"prompt": "1+1=", "answer": "2"})


def test_a_child_has_its_parents_columns_and_its_own_place() -> None:
    child = child_row("actor", problem(), 3, {"completion": "2"})

    assert child.id == "actor:problems:0.0.3"
    assert child.k == 3
    assert child.columns == {"prompt": "1+1=", "answer": "2", "completion": "2"}
    assert child.scoped["actor.completion"] == "2"
    assert child.scoped["problems.prompt"] == "1+1="
    assert child.trail["problems:0.0"] == (("actor:problems:0.0.3", 3),)


def test_the_nearest_value_of_a_bare_name_wins() -> None:
    child = child_row("actor", problem(), 0, {"prompt": "own"})

    assert child.column("prompt") == "own"
    assert child.column("problems.prompt") == "1+1="


def test_a_name_that_two_parents_have_at_one_distance_is_absent() -> None:
    root = problem()
    left = child_row("left", root, 0, {"completion": "a"})
    right = child_row("right", root, 0, {"completion": "b"})

    both = joined_row([left, right])

    assert both.column("completion") is ABSENT
    assert both.column("left.completion") == "a"
    assert both.column("prompt") == "1+1="


def test_the_same_parents_in_the_same_order_give_the_same_row() -> None:
    left, right = child_row("l", problem(), 0, {}), child_row("r", problem(), 0, {})

    assert joined_row([left, right]).id == joined_row([left, right]).id
    assert joined_row([left, right]).id != joined_row([right, left]).id


def test_ids_stay_short_however_long_the_lineage() -> None:
    row = problem()
    for turn in range(60):
        row = child_row("speaker", row, turn, {})

    assert len(row.id) <= 160
    assert row.ancestor_born_at("problems") == "problems:0.0"


def test_absent_is_not_none() -> None:
    row = problem().with_columns("exact", {"exact": None})

    assert row.column("exact") is None
    assert row.column("judge") is ABSENT


def test_more_columns_are_a_row_like_any_other() -> None:
    row = child_row("actor", root_row("d", "1", {"x": 1}), 2, {"y": 2}, version=3)

    found = row.with_columns("judge", {"judge": 0.5})

    assert found == replace(
        row,
        columns={"x": 1, "y": 2, "judge": 0.5},
        scoped={"d.x": 1, "actor.y": 2, "judge.judge": 0.5},
        depths={"x": 1, "y": 0, "judge": 0},
    )
    assert "judge" not in row.columns


@pytest.mark.parametrize("value", [0, 5, -3, "yes", None, [1]])
def test_a_column_of_the_data_does_not_say_how_often_a_row_was_drawn(value: Any) -> None:
    data = root_row("problems", "0.0", {"prompt": "1+1=", "drawn": value})
    child = child_row("actor", data, 0, {})

    assert (data.drawn, child.drawn) == (1.0, 1.0)
    assert child.drawn_by("again", 3).drawn == 3.0
    assert child_row("judge", child.drawn_by("again", 3), 0, {}).drawn == 3.0


def test_a_column_of_the_data_makes_no_row_a_greedy_one() -> None:
    data = root_row("problems", "0.0", {"prompt": "1+1=", "greedy": True})
    drawn = [child_row(node, data, 0, {}) for node in ("left", "right")]
    greedy = [child_row(node, problem(), 0, {"greedy": True}) for node in ("left", "right")]

    assert [row.is_greedy for row in (data, *drawn, joined_row(drawn))] == [False] * 4
    assert [row.is_greedy for row in (*greedy, joined_row(greedy))] == [True] * 3
