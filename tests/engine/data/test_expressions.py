"""Arithmetic is read exactly, and never run."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coloop.data.answers import last_line, says
from coloop.data.expressions import WITH_FUNCTIONS, NotArithmetic, read_expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", Fraction(7)),
        ("(1+2)*3", Fraction(9)),
        ("10-4-3", Fraction(3)),
        ("8/4/2", Fraction(1)),
        ("1/3+1/6", Fraction(1, 2)),
        ("-2^2", Fraction(-4)),
        ("2^3^2", Fraction(512)),
        ("2**-1", Fraction(1, 2)),
        (" 1.5 + .5 ", Fraction(2)),
        ("--3", Fraction(3)),
    ],
)
def test_values(text: str, value: Fraction) -> None:
    assert read_expression(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "1+", "1 2", "(1", "1)", "a", "1/0", "0^-1", "2^0.5", "2^65", "9^9^9", "1,000"),
        *("(" * 100 + "1" + ")" * 100, "1+" * 400 + "1", "sqrt(4)", "pi", "9^64*9^64^2"),
    ],
)
def test_what_is_no_arithmetic(text: str) -> None:
    with pytest.raises(NotArithmetic):
        read_expression(text)


def test_roots_and_pi_only_where_asked() -> None:
    assert read_expression("sqrt(9/4)", WITH_FUNCTIONS).value == Fraction(3, 2)
    assert abs(float(read_expression("sqrt(2)", WITH_FUNCTIONS).value) - 2**0.5) < 1e-15
    assert float(read_expression("2*pi", WITH_FUNCTIONS).value) == pytest.approx(6.283185307179586)


def test_the_numbers_of_an_expression_are_listed() -> None:
    assert read_expression("(3+5)*7-3").numbers == (3, 5, 7, 3)


@pytest.mark.slow
@given(st.text(alphabet="0123456789+-*/().^ ", max_size=30))
def test_any_text_ends_in_a_value_or_a_refusal(text: str) -> None:
    try:
        value = read_expression(text).value
    except NotArithmetic:
        return
    assert isinstance(value, Fraction)


def test_an_answer_may_stand_on_the_last_line() -> None:
    assert says("so\n 42 \n", "42")
    assert not says("42\nso", "42")
    assert says("1,234", "1234")
    assert not says("1,23", "123")
    assert last_line("\n\n") == ""
