"""Whose turn it is to say which line."""

from coloop.roles.scripts import scripts_of
from coloop.tables import Row

ROW = Row(id="a", trail=(), columns={"prompt": "1+1=", "answer": 2, "blank": "", "none": None})


def test_completions_take_turns_and_one_is_drawn() -> None:
    assert scripts_of(("one", "is $answer"), ROW, 4, 0) == ("one", "is 2", None, "one")
    assert scripts_of(("one", "is $answer"), ROW, 2, 5) == (None, "one")


def test_without_lines_nothing_is_said() -> None:
    assert scripts_of((), ROW, 4, 0) == ()


def test_a_line_about_what_the_row_does_not_have_is_drawn() -> None:
    assert scripts_of(("$target", "$blank", "$none"), ROW, 3, 0) == (None, None, None)


def test_a_doubled_dollar_is_a_dollar() -> None:
    assert scripts_of(("$$5",), ROW, 1, 0) == ("$5",)
