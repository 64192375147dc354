"""Expressions of numbers: worked out exactly, refused beyond limits, never run as code."""

import random

import pytest

from coloop.data.tools.builtin import GRAMMAR, calculated
from coloop.data.tools.protocol import ToolFailure


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("123+456", "579"),
        (" 2 * (3 + 4) ** 2 / 7 ", "14"),
        ("-2**2", "-4"),
        ("2**-1", "0.5"),
        ("2**3**2", "512"),
        ("7//2", "3"),
        ("-7 % 3", "2"),
        ("1/3", "0.3333333333"),
        ("-1/3", "-0.3333333333"),
        ("0.1+0.2", "0.3"),
        ("1,000 × 2", "2000"),
        ("6÷4", "1.5"),
        ("1/3*3", "1"),
        ("--5", "5"),
        (".5*4", "2"),
    ],
)
def test_an_expression_has_its_value(expression: str, value: str) -> None:
    assert calculated(expression) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "the expression is empty"),
        ("1+", "ends too early"),
        ("(1+2", "ends too early"),
        ("1 2", "unexpected '2'"),
        ("1+x", "unexpected 'x'"),
        ("__import__('os')", "unexpected '_'"),
        ("1/0", "division by zero"),
        ("0**-1", "division by zero"),
        ("5 % 0", "division by zero"),
        ("2**0.5", "not a whole number"),
        (f"1**{GRAMMAR.largest_power + 1}", "too large"),
        ("9**9**9", "too large"),
        ("9**999*9**999*9**999", "too large"),
        ("1" * (GRAMMAR.longest + 1), "longer than"),
        ("(" * (GRAMMAR.deepest + 2) + "1" + ")" * (GRAMMAR.deepest + 2), "deep"),
        ("-" * (GRAMMAR.deepest + 2) + "1", "deep"),
    ],
)
def test_what_is_no_expression_or_too_large_is_told(expression: str, reason: str) -> None:
    with pytest.raises(ToolFailure, match=reason):
        calculated(expression)


def test_values_are_those_of_python() -> None:
    rng = random.Random(0)
    for _ in range(200):
        expression = _drawn(rng, 3)
        try:
            expected = eval(expression)
        except ZeroDivisionError:
            with pytest.raises(ToolFailure, match="zero"):
                calculated(expression)
            continue
        assert calculated(expression) == str(expected)


def _drawn(rng: random.Random, depth: int) -> str:
    """An expression of whole numbers."""
    if depth == 0 or rng.random() < 0.2:
        return str(rng.randrange(1, 50))
    sign = rng.choice(["+", "-", "*", "//", "%"])
    return f"({_drawn(rng, depth - 1)}{sign}{_drawn(rng, depth - 1)})"
