"""Joins by lineage: same rows, ancestors with descendants, siblings, crosses, gathers."""

import pytest

from coloop.tables import Table, cross_rows, gather_rows, join_rows
from coloop.tables.row import Row, child_row, root_row


def rows_of(count: int) -> list[Row]:
    return [root_row("sums", f"0.{i}", {"prompt": f"p{i}"}) for i in range(count)]


def children(node: str, roots: list[Row], each: int) -> Table:
    return Table(
        rows=tuple(
            child_row(node, root, k, {"completion": f"{node}{k}"})
            for root in roots
            for k in range(each)
        )
    )


def test_siblings_of_equal_place_meet_under_their_common_ancestor() -> None:
    roots = rows_of(2)
    tens, units = children("tens", roots, 3), children("units", roots, 3)

    both = join_rows([tens, units])

    assert len(both) == 6
    assert [row.column("tens.completion") for row in both[:3]] == ["tens0", "tens1", "tens2"]
    assert all(
        row.column("tens.completion")[-1] == row.column("units.completion")[-1] for row in both
    )


def test_a_descendant_gets_what_its_ancestor_has() -> None:
    roots = rows_of(2)
    scored = Table(rows=tuple(root.with_columns("judge", {"judge": 1.0}) for root in roots))
    rollouts = children("actor", roots, 2)

    joined = join_rows([rollouts, scored])

    assert [row.id for row in joined] == [row.id for row in rollouts.rows]
    assert all(row.column("judge") == 1.0 for row in joined)
    assert join_rows([scored, rollouts])[0].id == rollouts.rows[0].id


def test_a_join_keeps_only_rows_that_every_input_delivered() -> None:
    roots = rows_of(2)
    rollouts = children("actor", roots, 2)
    kept = Table(rows=rollouts.rows[1:3])

    joined = join_rows([rollouts, kept])

    assert [row.id for row in joined] == [row.id for row in kept.rows]


def test_a_filtered_sibling_leaves_its_partner_alone_too() -> None:
    roots = rows_of(1)
    tens, units = children("tens", roots, 3), children("units", roots, 3)

    both = join_rows([tens, Table(rows=units.rows[2:])])

    assert [row.column("tens.completion") for row in both] == ["tens2"]


def test_filters_that_kept_different_rows_of_one_table_have_nothing_in_common() -> None:
    rollouts = children("actor", rows_of(1), 4)

    assert join_rows([Table(rows=rollouts.rows[:2]), Table(rows=rollouts.rows[2:])]) == ()


def test_a_cross_combines_all_siblings_of_one_ancestor_only() -> None:
    roots = rows_of(2)
    left, right = children("left", roots, 2), children("right", roots, 3)

    crossed = cross_rows([left, right])

    assert len(crossed) == 2 * 2 * 3
    assert len({row.id for row in crossed}) == 12


def test_gathered_rows_keep_the_ancestors_columns_single() -> None:
    roots = rows_of(2)
    rollouts = children("actor", roots, 2)

    gathered = gather_rows(rollouts.rows, None)

    assert [row.columns["prompt"] for row in gathered] == ["p0", "p1"]
    assert gathered[0].columns["completion"] == ["actor0", "actor1"]


def test_rows_are_gathered_under_the_nearest_row_that_was_born_in_a_node() -> None:
    roots = rows_of(2)
    asked = [root.with_columns("ask", {"prompt": f"{root.columns['prompt']}?"}) for root in roots]
    rollouts = children("actor", asked, 2)

    gathered = gather_rows(rollouts.rows, {"ask", "sums"})

    assert [row.columns["prompt"] for row in gathered] == ["p0?", "p1?"]
    assert [row.column("sums.prompt") for row in gathered] == ["p0", "p1"]
    assert [row.column("ask.prompt") for row in gathered] == ["p0?", "p1?"]
    assert gathered[0].columns["completion"] == ["actor0", "actor1"]


def test_a_row_that_nothing_can_gather_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"row actor:sums:0\.0\.0 descends from no row"):
        gather_rows(children("actor", rows_of(1), 1).rows, {"elsewhere"})
