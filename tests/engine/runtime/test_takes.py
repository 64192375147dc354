"""What goes on from a round to the next, and what leaves: over rows made by hand."""

from coloop.data.tables import Row, Table
from coloop.data.tables.row import child_row, root_row
from coloop.runtime.schedule.rounds import RoundTables, all_rounds, selected, taken

KEY = ("a", "rollouts")


def texts(table: Table) -> list[str]:
    return [row.columns["completion"] for row in table.rows]


def written(above: Row, number: int, *completions: str) -> list[Row]:
    """What `a` wrote to a row in a round."""
    return [
        child_row("a", above.in_round(number), k, {"completion": text})
        for k, text in enumerate(completions)
    ]


def ids(rows: list[Row]) -> dict[str, Row]:
    return {row.id: row for row in rows}


def two_rounds() -> tuple[RoundTables, RoundTables]:
    """Of `w`, `x`, `y` a filter cut `x`; `w` went on, `y` stayed behind."""
    entered = root_row("d", "0", {"prompt": "p"})
    w, x, y = written(entered, 1, "w", "x", "y")
    first = RoundTables(tables={KEY: Table(rows=(w, x, y))}, closing=ids([w, y]), going_on=ids([w]))
    later = written(w, 2, "ww", "wx")
    second = RoundTables(tables={KEY: Table(rows=tuple(later))}, closing=ids(later))
    return first, second


def test_tables_of_all_rounds_stand_one_after_another() -> None:
    assert texts(all_rounds(two_rounds())[KEY]) == ["w", "x", "y", "ww", "wx"]


def test_last_has_what_was_cut_and_ends_has_what_stayed_behind_too() -> None:
    found = taken(KEY, two_rounds())

    assert texts(found["last"]) == ["x", "ww", "wx"]
    assert texts(found["ends"]) == ["x", "y", "ww", "wx"]


def test_a_conversation_that_is_lost_in_the_next_round_ends_where_it_was() -> None:
    """Nothing was written to `w`, for its prompt was too long."""
    first, second = two_rounds()
    nothing = RoundTables(tables={KEY: Table()}, closing={})

    assert texts(taken(KEY, [first, nothing])["last"]) == ["w", "x"]
    assert texts(taken(KEY, [first, second])["last"])[0] == "x"


def test_what_is_done_with_a_row_again_stands_in_place_of_what_was_done_before() -> None:
    row = root_row("d", "0", {"prompt": "p"})
    rounds = [
        RoundTables(
            tables={("t", "rows"): Table(rows=(row.in_round(n).with_columns("t", {"n": n}),))},
            closing=ids([row]),
            going_on=ids([row]),
        )
        for n in (1, 2)
    ]

    [only] = all_rounds(rounds)["t", "rows"].rows
    assert (only.round, only.columns["n"]) == (2, 2)
    assert [one.round for one in taken(("t", "rows"), rounds)["ends"].rows] == [2]


def test_one_goes_on_with_the_first_row_of_each_that_entered() -> None:
    entered = [root_row("d", str(n), {"prompt": "p"}) for n in (0, 1)]
    rows = [row for one in entered for row in written(one, 1, "w", "x")]
    names = {one.id for one in entered}
    table = Table(rows=tuple(rows))

    [found] = selected({"e": table}, {KEY: table}, names, "one").values()

    assert [row.parents[0] for row in found.rows] == ["d:0", "d:1"]
    assert texts(found) == ["w", "w"]
    for branch in ("all", "lines"):
        assert len(selected({"e": table}, {KEY: table}, names, branch)["e"].rows) == 4
