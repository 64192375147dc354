"""Who says which line."""

from coloop.data.tables import Row
from coloop.runtime.roles.generation.writer import scripts_of

ROW = Row(id="a", trail=(), columns={"prompt": "1+1=", "answer": 2, "blank": "", "none": None})


def test_the_seed_decides_who_says_what_and_what_is_drawn() -> None:
    assert scripts_of(("one", "is $answer"), ROW, (0, 1, 2, 3)) == ("one", "is 2", None, "one")
    assert scripts_of(("one", "is $answer"), ROW, (5, 6)) == (None, "one")


def test_without_lines_nothing_is_said() -> None:
    assert scripts_of((), ROW, (0, 1)) == ()


def test_a_line_about_what_the_row_does_not_have_is_said_by_nobody() -> None:
    assert scripts_of(("$target", "$blank", "$none"), ROW, (0, 1, 2)) == (None, None, None)
    assert scripts_of(("$target", "one"), ROW, (0, 1, 2)) == ("one", None, "one")


def test_a_doubled_dollar_is_a_dollar() -> None:
    assert scripts_of(("$$5",), ROW, (0,)) == ("$5",)
