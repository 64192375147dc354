"""Reads arithmetic expressions into exact fractions, without evaluating any code.

    sum  := term (("+" | "-") term)*         term := factor (("*" | "/" | "//" | "%") factor)*
    factor := ("-" | "+") factor | power      power := atom (("^" | "**") factor)?
    atom := number | "(" sum ")" | "sqrt" "(" sum ")" | "pi"

A `Grammar` says which signs and words are allowed. Length, depth and the size of numbers are
limited, so that hostile completions cost no time.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Final

PI: Final = Fraction(314159265358979323846, 10**20)
ROOT_DIGITS: Final = 10**20
"""Irrational roots are rounded down to a multiple of 1 / this."""


class NotArithmetic(ValueError):
    """The text is not an arithmetic expression, or exceeds the limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    token: re.Pattern[str]
    """A number (first group), or a sign or word (second group)."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Signs that are read as another one."""
    longest: int = 500
    """Maximum characters of a text."""
    deepest: int = 40
    """Maximum nesting of brackets and signs."""
    largest_power: int = 64
    largest_bits: int = 4096
    """Maximum bits of an intermediate numerator or denominator."""


PLAIN: Final = Grammar(token=re.compile(r"\s*(?:(\d+\.\d+|\.\d+|\d+)|(\*\*|[-+*/^()]))"))
WITH_FUNCTIONS: Final = Grammar(
    token=re.compile(r"\s*(?:(\d+\.\d+|\.\d+|\d+)|(\*\*|[-+*/^()]|sqrt|pi))")
)
"""With roots and pi, exact to 20 digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """The value of an expression, and the numbers in it, in order."""

    value: Fraction
    numbers: tuple[Fraction, ...]


def read_expression(text: str, grammar: Grammar = PLAIN) -> Expression:
    """Parse and compute an expression; raises NotArithmetic, also for a division by zero."""
    if len(text) > grammar.longest:
        raise NotArithmetic(f"the expression is longer than {grammar.longest} characters")
    reader = _Reader(list(_tokens(text, grammar)), grammar)
    if not reader.tokens:
        raise NotArithmetic("the expression is empty")
    value = reader.sum(0)
    if reader.place != len(reader.tokens):
        raise NotArithmetic(f"unexpected {reader.tokens[reader.place]!r}")
    return Expression(value=value, numbers=tuple(reader.numbers))


def _tokens(text: str, grammar: Grammar) -> Iterator[str]:
    start, end = 0, len(text.rstrip())
    while start < end:
        token = grammar.token.match(text, start)
        if token is None:
            raise NotArithmetic(f"unexpected {text[start:].lstrip()[:1]!r}")
        yield token[1] or grammar.same.get(token[2], token[2])
        start = token.end()


class _Reader:
    def __init__(self, tokens: list[str], grammar: Grammar) -> None:
        self.tokens = tokens
        self.grammar = grammar
        self.place = 0
        self.numbers: list[Fraction] = []

    def next_is(self, *wanted: str) -> bool:
        return self.place < len(self.tokens) and self.tokens[self.place] in wanted

    def take(self) -> str:
        if self.place >= len(self.tokens):
            raise NotArithmetic("the expression ends too early")
        self.place += 1
        return self.tokens[self.place - 1]

    def sum(self, depth: int) -> Fraction:
        value = self.term(depth)
        while self.next_is("+", "-"):
            sign, other = self.take(), self.term(depth)
            value = self.bounded(value + other if sign == "+" else value - other)
        return value

    def term(self, depth: int) -> Fraction:
        value = self.factor(depth)
        while self.next_is("*", "/", "//", "%"):
            sign, other = self.take(), self.factor(depth)
            if sign != "*" and other == 0:
                raise NotArithmetic("division by zero")
            match sign:
                case "*":
                    value *= other
                case "/":
                    value /= other
                case "//":
                    value = Fraction(value // other)
                case "%":
                    value %= other
            value = self.bounded(value)
        return value

    def factor(self, depth: int) -> Fraction:
        if depth > self.grammar.deepest:
            raise NotArithmetic(f"brackets are more than {self.grammar.deepest} deep")
        if self.next_is("-", "+"):
            sign, value = self.take(), self.factor(depth + 1)
            return -value if sign == "-" else value
        base = self.atom(depth)
        if self.next_is("^", "**"):
            self.take()
            return self.power(base, self.factor(depth + 1))
        return base

    def atom(self, depth: int) -> Fraction:
        token = self.take()
        if token == "(":
            value = self.sum(depth + 1)
            if self.take() != ")":
                raise NotArithmetic("a bracket is not closed")
            return value
        if token == "pi":
            return PI
        if token == "sqrt" and self.next_is("("):
            return _root(self.atom(depth + 1))
        if token[0] not in ".0123456789":
            raise NotArithmetic(f"unexpected {token!r}")
        self.numbers.append(self.bounded(Fraction(token.replace(",", "").replace("_", ""))))
        return self.numbers[-1]

    def power(self, base: Fraction, exponent: Fraction) -> Fraction:
        if exponent.denominator != 1:
            raise NotArithmetic("an exponent is not a whole number")
        power, bits = exponent.numerator, max(map(int.bit_length, base.as_integer_ratio()))
        limits = self.grammar
        if abs(power) > limits.largest_power or abs(power) * bits > limits.largest_bits:
            raise NotArithmetic("the power is too large")
        if base == 0 and power < 0:
            raise NotArithmetic("division by zero")
        return base**power

    def bounded(self, value: Fraction) -> Fraction:
        if max(map(int.bit_length, value.as_integer_ratio())) > self.grammar.largest_bits:
            raise NotArithmetic("the numbers are too large")
        return value


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise NotArithmetic("it takes a root of a negative number")
    whole = Fraction(isqrt(value.numerator), isqrt(value.denominator) or 1)
    if whole * whole == value:
        return whole
    scaled = value.numerator * ROOT_DIGITS**2 // value.denominator
    return Fraction(isqrt(scaled), ROOT_DIGITS)
