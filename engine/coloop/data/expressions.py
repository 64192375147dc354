"""Reads arithmetic expressions into exact fractions, without evaluating any code.

    sum  := term (("+" | "-") term)*         term := factor (("*" | "/") factor)*
    factor := ("-" | "+") factor | power      power := atom ("^" factor)?
    atom := number | "(" sum ")" | "sqrt" "(" sum ")" | "pi"      (the last two only where asked)

Text, depth and size of numbers are bounded, so a hostile completion costs microseconds.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Final

LONGEST_TEXT: Final = 500
DEEPEST: Final = 40
LARGEST_POWER: Final = 64
LARGEST_BITS: Final = 4096

TOKEN: Final = re.compile(r"\s*(?:(\d+\.\d+|\.\d+|\d+)|(\*\*|[-+*/^()]|sqrt|pi))")

PI: Final = Fraction(314159265358979323846, 10**20)
ROOT_DIGITS: Final = 10**20
"""Roots that are no fractions are cut after this many steps of one."""


class NotArithmetic(ValueError):
    """The text is no arithmetic expression, or one beyond the bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """An expression's value and the numbers that stand in it, in order."""

    value: Fraction
    numbers: tuple[Fraction, ...]


def read_expression(text: str, *, functions: bool = False) -> Expression:
    """Value of an expression; NotArithmetic where it is none, and on division by zero.

    With `functions`, sqrt and pi are known too; their values are exact to 20 digits.
    """
    if len(text) > LONGEST_TEXT:
        raise NotArithmetic(f"longer than {LONGEST_TEXT} characters")
    reader = _Reader(list(_tokens(text)), functions)
    value = reader.sum(0)
    if reader.place != len(reader.tokens):
        raise NotArithmetic(f"{reader.tokens[reader.place]!r} is out of place")
    return Expression(value=value, numbers=tuple(reader.numbers))


def _tokens(text: str) -> Iterator[str]:
    place, end = 0, len(text.rstrip())
    while place < end:
        found = TOKEN.match(text, place)
        if found is None:
            raise NotArithmetic(f"{text[place]!r} is not allowed in an expression")
        yield found.group(1) or found.group(2)
        place = found.end()


class _Reader:
    def __init__(self, tokens: list[str], functions: bool) -> None:
        self.tokens = tokens
        self.functions = functions
        self.place = 0
        self.numbers: list[Fraction] = []

    def next_is(self, *wanted: str) -> bool:
        return self.place < len(self.tokens) and self.tokens[self.place] in wanted

    def take(self) -> str:
        if self.place >= len(self.tokens):
            raise NotArithmetic("it ends too early")
        self.place += 1
        return self.tokens[self.place - 1]

    def sum(self, depth: int) -> Fraction:
        value = self.term(depth)
        while self.next_is("+", "-"):
            value = value + self.term(depth) if self.take() == "+" else value - self.term(depth)
        return _bounded(value)

    def term(self, depth: int) -> Fraction:
        value = self.factor(depth)
        while self.next_is("*", "/"):
            if self.take() == "*":
                value = _bounded(value * self.factor(depth))
            else:
                divisor = self.factor(depth)
                if divisor == 0:
                    raise NotArithmetic("it divides by zero")
                value = _bounded(value / divisor)
        return value

    def factor(self, depth: int) -> Fraction:
        if depth > DEEPEST:
            raise NotArithmetic(f"nested deeper than {DEEPEST}")
        if self.next_is("-", "+"):
            sign = self.take()
            value = self.factor(depth + 1)
            return -value if sign == "-" else value
        base = self.atom(depth)
        if self.next_is("^", "**"):
            self.take()
            return _power(base, self.factor(depth + 1))
        return base

    def atom(self, depth: int) -> Fraction:
        token = self.take()
        if token == "(":
            value = self.sum(depth + 1)
            if self.take() != ")":
                raise NotArithmetic("a bracket is not closed")
            return value
        if self.functions and token == "pi":
            return PI
        if self.functions and token == "sqrt" and self.next_is("("):
            return _root(self.atom(depth + 1))
        if token[0].isdigit() or token[0] == ".":
            self.numbers.append(Fraction(token))
            return self.numbers[-1]
        raise NotArithmetic(f"{token!r} is out of place")


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise NotArithmetic("it takes a root of a negative number")
    whole = Fraction(isqrt(value.numerator), isqrt(value.denominator) or 1)
    if whole * whole == value:
        return whole
    scaled = value.numerator * ROOT_DIGITS**2 // value.denominator
    return Fraction(isqrt(scaled), ROOT_DIGITS)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > LARGEST_POWER:
        raise NotArithmetic(f"powers are whole numbers up to {LARGEST_POWER}")
    if base == 0 and exponent < 0:
        raise NotArithmetic("it divides by zero")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent.numerator) > LARGEST_BITS:
        raise NotArithmetic("its numbers grow too large")
    return base**exponent.numerator


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LARGEST_BITS:
        raise NotArithmetic("its numbers grow too large")
    return value
