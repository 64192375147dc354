"""Answers in few chunks, and what a policy wrote for a text as rows."""

import pytest

from coloop.data.tables import Tokens
from coloop.data.tables.row import child_row, root_row
from coloop.runtime.roles.generation.policy_tool import Asked, first_fit_decreasing, tables_beside


@pytest.mark.parametrize(
    ("sizes", "room", "bins"),
    [
        ([], 10, []),
        ([4, 8, 1, 4, 2, 1], 10, [[0, 2, 3, 5], [1, 4]]),
        ([11, 3], 10, [[0], [1]]),
        ([5, 5, 5], 10, [[0, 1], [2]]),
    ],
)
def test_the_largest_comes_first_into_the_first_bin_with_room(
    sizes: list[int], room: int, bins: list[list[int]]
) -> None:
    """4, 8, 1, 4, 2, 1 in bins of 10: 8 | 4 4 | 8 2 | 4 4 1 1, in the order of their places."""
    assert first_fit_decreasing(sizes, room) == bins


def text(said: str) -> Tokens:
    return Tokens(
        prompt_ids=[1], token_ids=[2, 3], loss_mask=[True, True], log_probs=[-1.0, -1.0], text=said
    )


def asked(*said: str) -> Asked:
    return Asked(tool="asks", policy="helper", prompt="q", texts=tuple(map(text, said)))


@pytest.mark.parametrize("is_greedy", [False, True])
def test_what_was_asked_are_children_of_the_text_that_asked(is_greedy: bool) -> None:
    root = root_row("problems", "0", {"prompt": "p"})
    parent = child_row("actor", root, 0, {"greedy": is_greedy}, tokens=text("t"))
    tool = type("Tool", (), {"policy": "helper", "node": "asks"})()

    tables = tables_beside([parent], {parent.id: [asked("a", "b"), asked("c")]}, [tool])

    rows = tables["helper", "rollouts"].rows
    assert rows == tables["asks", "rollouts"].rows
    assert [(row.columns["completion"], row.k) for row in rows] == [("a", 0), ("b", 1), ("c", 2)]
    assert {row.parents for row in rows} == {(parent.id,)}
    assert {row.group for row in rows} == {None if is_greedy else parent.id}
    assert all(row.is_greedy == is_greedy for row in rows)


def test_a_policy_that_nobody_asked_has_written_nothing() -> None:
    tool = type("Tool", (), {"policy": "helper", "node": "asks"})()

    tables = tables_beside((), {}, [tool])

    assert {key: len(table.rows) for key, table in tables.items()} == {
        ("helper", "rollouts"): 0,
        ("asks", "rollouts"): 0,
    }
