"""Calculator: one expression of numbers, read and worked out here, with limits on what it may cost.

    2*(3+4)**2 / 7     ->  14

Numbers are whole or decimal and exact up to the last division; nothing but arithmetic is read, so
no expression reaches anything. Python's own parser is not asked, which takes names and calls.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from coloop.data.tools.protocol import Answered, Caller, Forgetful, Tick, ToolFailure

LONGEST: Final = 400
"""Characters of an expression."""
DEEPEST: Final = 40
"""Brackets and signs within each other."""
LARGEST_EXPONENT: Final = 1_000
LARGEST_BITS: Final = 4_000
"""Of a numerator or denominator on the way: about 1,200 digits."""
DECIMALS: Final = 10
"""Of an answer that is not whole."""

TOKEN: Final = re.compile(r"\s*(?:(\d[\d,_]*(?:\.\d*)?|\.\d+)|(\*\*|//|[-+*/%^()×÷−]))")
SAME: Final = {"^": "**", "×": "*", "÷": "/", "−": "-"}
"""Signs that mean another one."""


class Calculator:
    """Tool that evaluates one arithmetic expression, within limits on its cost."""

    def open(self, caller: Caller) -> "CalculatorSession":
        del caller
        return CalculatorSession()

    def close(self) -> None: ...


class CalculatorSession(Forgetful):
    """Every call stands for itself."""

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        del tick
        return Answered(value=calculated(arguments.get("expression", "")))


def calculated(expression: str) -> str:
    """The value of an expression: whole numbers without a point, others with up to ten decimals.

    Raises:
        ToolFailure: it is no expression, or beyond the limits.
    """
    if len(expression) > LONGEST:
        raise ToolFailure(f"the expression is longer than {LONGEST} characters")
    reader = _Reader(_tokens(expression))
    value = reader.sum(0)
    if reader.next is not None:
        raise ToolFailure(f"unexpected {reader.next!r}")
    return _written(value)


def _tokens(expression: str) -> list[str]:
    found, place, end = [], 0, len(expression.rstrip())
    while place < end:
        match = TOKEN.match(expression, place)
        if match is None:
            raise ToolFailure(f"unexpected {expression[place:].lstrip()[:1]!r}")
        sign = match[2]
        found.append(SAME.get(sign, sign) if sign else match[1])
        place = match.end()
    if not found:
        raise ToolFailure("the expression is empty")
    return found


def _written(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    scaled = round(value * 10**DECIMALS)
    whole, rest = divmod(abs(scaled), 10**DECIMALS)
    text = f"{whole}.{rest:0{DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if scaled < 0 else text


class _Reader:
    """Reads tokens by descent: sums of products of signed powers."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0

    @property
    def next(self) -> str | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _take(self) -> str:
        if self.next is None:
            raise ToolFailure("the expression ends too early")
        self._place += 1
        return self._tokens[self._place - 1]

    def sum(self, depth: int) -> Fraction:
        value = self._product(depth)
        while self.next in ("+", "-"):
            sign, other = self._take(), self._product(depth)
            value = _checked(value + other if sign == "+" else value - other)
        return value

    def _product(self, depth: int) -> Fraction:
        value = self._signed(depth)
        while self.next in ("*", "/", "//", "%"):
            sign, other = self._take(), self._signed(depth)
            if sign != "*" and other == 0:
                raise ToolFailure("division by zero")
            value = _checked(_multiplied(sign, value, other))
        return value

    def _signed(self, depth: int) -> Fraction:
        if depth > DEEPEST:
            raise ToolFailure(f"brackets are more than {DEEPEST} deep")
        if self.next in ("+", "-"):
            sign, value = self._take(), self._signed(depth + 1)
            return value if sign == "+" else -value
        return self._power(depth)

    def _power(self, depth: int) -> Fraction:
        base = self._atom(depth)
        if self.next != "**":
            return base
        self._take()
        return _raised(base, self._signed(depth + 1))

    def _atom(self, depth: int) -> Fraction:
        token = self._take()
        if token == "(":
            value = self.sum(depth + 1)
            if self._take() != ")":
                raise ToolFailure("a bracket is not closed")
            return value
        if token[0] not in ".0123456789":
            raise ToolFailure(f"unexpected {token!r}")
        return _checked(Fraction(re.sub("[,_]", "", token)))


def _multiplied(sign: str, value: Fraction, other: Fraction) -> Fraction:
    match sign:
        case "*":
            return value * other
        case "/":
            return value / other
        case "//":
            return Fraction(value // other)
        case _:
            return value % other


def _raised(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise ToolFailure("an exponent is not a whole number")
    power = exponent.numerator
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(power) > LARGEST_EXPONENT or abs(power) * size > LARGEST_BITS:
        raise ToolFailure("the power is too large")
    if base == 0 and power < 0:
        raise ToolFailure("division by zero")
    return base**power


def _checked(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LARGEST_BITS:
        raise ToolFailure("the numbers are too large")
    return value
