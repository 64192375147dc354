"""Calculator: one expression of numbers, read and worked out here, with limits on what it may cost.

    2*(3+4)**2 / 7     ->  14

Numbers are whole or decimal and exact up to the last division; nothing but arithmetic is read, so
no expression reaches anything. Python's own parser is not asked, which takes names and calls.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from coloop.data.expressions import Grammar, NotArithmetic, read_expression
from coloop.data.tools.protocol import Answered, StatelessTool, Tick, ToolFailure

LONGEST: Final = 400
DEEPEST: Final = 40
LARGEST_EXPONENT: Final = 1_000
DECIMALS: Final = 10
"""Of an answer that is not whole."""

GRAMMAR: Final = Grammar(
    token=re.compile(r"\s*(?:(\d[\d,_]*(?:\.\d*)?|\.\d+)|(\*\*|//|[-+*/%^()×÷−]))"),
    same={"^": "**", "×": "*", "÷": "/", "−": "-"},
    longest=LONGEST,
    deepest=DEEPEST,
    largest_power=LARGEST_EXPONENT,
    largest_bits=4_000,  # about 1,200 digits
)


class Calculator(StatelessTool):
    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        del tick
        return Answered(value=calculated(arguments.get("expression", "")))


def calculated(expression: str) -> str:
    """The value of an expression: whole numbers without a point, others with up to ten decimals.

    Raises:
        ToolFailure: it is no expression, or beyond the limits.
    """
    try:
        return _written(read_expression(expression, GRAMMAR).value)
    except NotArithmetic as error:
        raise ToolFailure(str(error)) from None


def _written(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    scaled = round(value * 10**DECIMALS)
    whole, rest = divmod(abs(scaled), 10**DECIMALS)
    text = f"{whole}.{rest:0{DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if scaled < 0 else text
