"""Joins by lineage: same rows, ancestors with descendants, siblings, crosses, gathers."""

import itertools

import pytest

from coloop.data.tables import Table, cross_rows, gather_rows, join_rows
from coloop.data.tables.row import Row, child_row, root_row


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
    with pytest.raises(LookupError, match=r"row actor:sums:0\.0\.0 does not descend from any row"):
        gather_rows(children("actor", rows_of(1), 1).rows, {"elsewhere"})


def below(node: str, table: Table, each: int) -> Table:
    return children(node, list(table.rows), each)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_three_siblings_meet_alike_in_whatever_order(order: tuple[int, ...]) -> None:
    roots = rows_of(2)
    tables = [children(name, roots, 3) for name in ("ann", "bea", "cid")]

    together = join_rows([tables[place] for place in order])

    assert {row.id for row in together} == {row.id for row in join_rows(tables)}
    assert len(together) == 6
    assert all(
        len({row.column(f"{name}.completion")[-1] for name in ("ann", "bea", "cid")}) == 1
        for row in together
    )


def test_every_row_of_a_branch_meets_the_sibling_of_its_place() -> None:
    roots = rows_of(2)
    ann, bea = children("ann", roots, 2), children("bea", roots, 2)

    together = join_rows([below("fixer", ann, 3), bea])

    assert len(together) == 2 * 2 * 3
    assert all(
        row.column("ann.completion")[-1] == row.column("bea.completion")[-1] for row in together
    )


def test_rows_of_equal_depth_meet_by_their_whole_way() -> None:
    roots = rows_of(1)
    ann, bea = children("ann", roots, 2), children("bea", roots, 2)

    together = join_rows([below("fixer", ann, 2), below("mender", bea, 3)])

    assert len(together) == 4


def test_siblings_under_a_nearer_ancestor_meet_there() -> None:
    ann = children("ann", rows_of(2), 2)

    together = join_rows(
        [below("fixer", ann, 3), below("mender", ann, 3), children("bea", rows_of(2), 2)]
    )

    assert len(together) == 2 * 2 * 3


def test_a_branch_that_a_filter_emptied_meets_nothing() -> None:
    roots = rows_of(1)
    ann, bea = children("ann", roots, 2), children("bea", roots, 2)
    fixed = below("fixer", Table(rows=ann.rows[:1]), 2)

    assert len(join_rows([fixed, bea])) == 2
    assert join_rows([fixed, Table(rows=bea.rows[1:])]) == ()
    assert join_rows([fixed, Table(rows=ann.rows[1:])]) == ()


def test_what_stands_above_some_of_the_siblings_is_looked_at_too() -> None:
    roots = rows_of(2)
    ann, bea = children("ann", roots, 2), children("bea", roots, 2)
    kept = Table(rows=ann.rows[:1])

    together = join_rows([kept, below("fixer", ann, 2), bea, Table(rows=tuple(roots))])

    assert len(together) == 2
    assert {len(row.parents) for row in together} == {2}


def test_a_join_of_joins_meets_by_the_place_of_the_branch() -> None:
    roots = rows_of(2)
    ann, bea, cid, dan = (children(name, roots, 2) for name in ("ann", "bea", "cid", "dan"))
    fixed = below("fixer", ann, 2)
    left = Table(rows=join_rows([fixed, bea]))
    right = Table(rows=join_rows([cid, dan]))

    assert len(join_rows([left, right])) == 8
    assert len(join_rows([Table(rows=join_rows([ann, bea])), right])) == 4
    assert len(join_rows([left, cid])) == 8


def test_crossed_rows_have_places_of_their_own_among_their_siblings() -> None:
    roots = rows_of(2)
    left, right = children("left", roots, 2), children("right", roots, 3)
    crossed = Table(rows=cross_rows([left, right]))

    for row in left.rows:
        places = [one.k for one in crossed.rows if row.id in one.parents]
        assert len(set(places)) == 3
    again, other = below("again", crossed, 1), below("other", crossed, 1)
    assert len(join_rows([again, other])) == 12


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_cross_takes_all_tables_at_once(order: tuple[int, ...]) -> None:
    roots = rows_of(2)
    tables = [children(name, roots, each) for name, each in (("a", 2), ("b", 3), ("c", 2))]

    crossed = cross_rows([tables[place] for place in order])

    assert {row.id for row in crossed} == {row.id for row in cross_rows(tables)}
    assert len(crossed) == 2 * 2 * 3 * 2


def test_a_cross_stays_under_the_nearest_common_ancestor() -> None:
    ann = children("ann", rows_of(2), 2)

    crossed = cross_rows([below("fixer", ann, 2), below("mender", ann, 3)])

    assert len(crossed) == 2 * 2 * 2 * 3
