"""Numbers that know how they were computed, so that an estimate can show its formulas.

The estimate's own code makes them: given `Traced` inputs, its arithmetic gives a `Traced` result
with the expression that was evaluated. With plain numbers nothing is recorded, and nothing costs
more. What a comparison, `min` or `max` chose is all that is recorded of it.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Literal, TypeVar, cast

Number = TypeVar("Number", bound=float)
Unit = Literal["", "B", "s", "FLOP/s", "B/s", "tokens", "GPU-hours", "money"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number that was not computed here."""

    name: str
    unit: Unit = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """A symbol between two numbers, or before one in brackets (`ceil`, `floor`)."""

    symbol: str
    operands: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A result with a name of its own."""

    name: str
    unit: Unit
    of: float


class Constant(float):
    """A constant with a name, as formulas show it; in arithmetic a plain float."""

    __slots__ = ("name", "source", "unit")
    name: str
    source: str
    unit: Unit

    def __new__(cls, value: float, name: str, source: str = "", unit: Unit = "") -> "Constant":
        constant = super().__new__(cls, value)
        constant.name, constant.source, constant.unit = name, source, unit
        return constant


class Traced(Constant):
    """A float with what made it. Its value is that of the same arithmetic on plain numbers. It
    extends `Constant` so that Python asks it first where both meet."""

    __slots__ = ("made",)
    made: Leaf | Operation | Step

    def __new__(cls, value: float, made: Leaf | Operation | Step) -> "Traced":
        traced = float.__new__(cls, value)
        traced.made = made
        return traced

    def __format__(self, spec: str) -> str:
        """Whole numbers as the integers that they stand for."""
        value = float(self)
        return format(int(value) if value.is_integer() and "f" not in spec else value, spec)

    def __add__(self, other: Any) -> float:
        return _sum(self, other)

    def __radd__(self, other: Any) -> float:
        return _sum(other, self)

    def __sub__(self, other: Any) -> float:
        return _computed("-", operator.sub, self, other) if other else self

    def __rsub__(self, other: Any) -> float:
        return _computed("-", operator.sub, other, self)

    def __mul__(self, other: Any) -> float:
        return _product(self, other)

    def __rmul__(self, other: Any) -> float:
        return _product(other, self)

    def __truediv__(self, other: Any) -> float:
        return self if other == 1 else _computed("/", operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> float:
        return _computed("/", operator.truediv, other, self)

    def __floordiv__(self, other: Any) -> float:
        return _whole("floor", floor, self / other)

    def __rfloordiv__(self, other: Any) -> float:
        return _whole("floor", floor, other / self)

    def __ceil__(self) -> Any:
        return _whole("ceil", ceil, self)

    def __floor__(self) -> Any:
        return _whole("floor", floor, self)

    def __round__(self, ndigits: Any = None) -> Any:
        return self if ndigits is None and float(self).is_integer() else round(float(self), ndigits)


def leaf(value: float, name: str, unit: Unit = "", source: str = "") -> Any:
    """A number to be traced; one that changes nothing (0 and 1 of a count) stays as it is."""
    return Traced(value, Leaf(name, unit, source))


def named(name: str, value: Number, unit: Unit = "") -> Number:
    """The same value; if it is traced, with a name under which formulas refer to it."""
    if not isinstance(value, Traced) or not isinstance(value.made, Operation):
        return value
    return cast(Number, Traced(value, Step(name, unit, value)))


def listed(name: str, each: str, values: Sequence[float], unit: Unit = "") -> float:
    """Their sum; if it is traced, a step that lists them, as `each` with a number."""
    total = sum(values, 0.0)
    if len(values) < 2 or not all(type(value) is Traced for value in values):
        return named(name, total, unit)
    parts = tuple(
        Traced(value, Step(f"{each} {place}", unit, value)) for place, value in enumerate(values, 1)
    )
    return Traced(total, Step(name, unit, Traced(total, Operation("sum", parts))))


def _computed(symbol: str, operation: Callable[..., float], *operands: Any) -> float:
    value = operation(*(float(one) for one in operands))
    return Traced(value, Operation(symbol, operands)) if value else 0.0


def _sum(one: Any, other: Any) -> float:
    if not one or not other:
        found: float = one or other or 0.0
        return found
    return _computed("+", operator.add, one, other)


def _product(one: Any, other: Any) -> float:
    if one == 1 or other == 1:
        found: float = other if one == 1 else one
        return found
    return _computed("*", operator.mul, one, other)


def _whole(name: str, function: Callable[[float], int], one: float) -> float:
    return one if float(one).is_integer() else _computed(name, function, one)
