"""Traced numbers as lines of text: a formula in words, and what each word stands for."""

from collections.abc import Iterator, Sequence

from coloop.plan.settings.settings import Planned
from coloop.plan.settings.traced import Constant, Leaf, Operation, Step, Traced, Unit

SIGNS = {"*": "×", "/": "÷", "+": "+", "-": "−"}
LOOSE = ("+", "-")


class Line(Planned):
    """What a name in a formula stands for."""

    name: str
    """Empty: the number itself."""
    value: float
    unit: Unit
    formula: str | None
    """How it is computed from the names of other lines; null if it was not computed."""
    source: str | None
    """Where a value that was not computed is from; null if nothing is said about it."""
    depth: int
    """0: the number itself, 1: what its formula names, 2: what their formulas name, ..."""


def lines_of(number: float, unit: Unit) -> tuple[Line, ...]:
    """The formula of a number, and everything that it refers to."""
    return tuple(_Reading().lines(number, "", 0, unit))


def added(numbers: Sequence[float]) -> float:
    """Their sum, with a formula even if all are constants."""
    if len(numbers) == 1 and type(numbers[0]) is not Constant:
        return numbers[0]
    return Traced(sum(numbers, 0.0), Operation("+", tuple(numbers)))


def as_weighted_sum(number: float) -> float:
    """A number computed from others by sums and plain factors, with each of them once."""
    if not isinstance(number, Traced) or not isinstance(number.made, Operation):
        return number
    found: dict[int, tuple[Traced, float]] = {}
    rest = _weigh(number, 1.0, found)
    terms: list[float] = []
    for named, weight in found.values():
        if abs(weight - 1) < 1e-9:
            terms.append(named)
        elif weight and abs(1 / weight - round(1 / weight)) < 1e-9:
            terms.append(named / round(1 / weight))
        elif abs(weight) > 1e-9:
            terms.append(weight * named)
    if abs(rest) > 1e-12:
        terms.append(rest)
    return Traced(number, Operation("+", tuple(terms))) if terms else 0.0


def _weigh(number: float, weight: float, found: dict[int, tuple[Traced, float]]) -> float:
    """Add up the weights of what a number consists of; returns the plain rest."""
    if not isinstance(number, Traced):
        return weight * number
    made = number.made
    if not isinstance(made, Operation):
        _, before = found.get(id(made), (number, 0.0))
        found[id(made)] = number, before + weight
        return 0.0
    one, *others = made.operands
    if made.symbol in LOOSE:
        sign = 1.0 if made.symbol == "+" else -1.0
        rest = _weigh(one, weight, found)
        return rest + sum(_weigh(other, sign * weight, found) for other in others)
    if made.symbol == "*":
        plain, traced = (one, others[0]) if not isinstance(one, Traced) else (others[0], one)
        return _weigh(traced, weight * plain, found)
    return _weigh(one, weight / others[0], found)


class _Reading:
    """One number, whose formulas use every name for one thing."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, float], str] = {}
        self._taken: set[str] = set()
        self._seen: set[str] = set()

    def lines(self, number: float, name: str, depth: int, unit: Unit = "") -> Iterator[Line]:
        made = number.made if isinstance(number, Traced) else None
        if isinstance(made, Step):
            unit = made.unit
            number = made.of
            made = number.made if isinstance(number, Traced) else None
        if not isinstance(made, Operation):
            unit = made.unit if isinstance(made, Leaf) else unit
            source = made.source or None if isinstance(made, Leaf) else None
            yield Line(
                name=name or (made.name if isinstance(made, Leaf) else ""),
                value=float(number),
                unit=unit,
                formula=None,
                source=source,
                depth=depth,
            )
            return
        yield Line(
            name=name,
            value=float(number),
            unit=unit,
            formula=self._text(number),
            source=None,
            depth=depth,
        )
        for place, operand in enumerate(self._names_in(number)):
            label = self._label(operand)
            if label in self._seen:
                continue
            self._seen.add(label)
            if made.symbol == "sum" and place:
                yield self._alike(operand, label, depth + 1)
            elif isinstance(operand, Traced):
                yield from self.lines(operand, label, depth + 1)
            else:
                assert isinstance(operand, Constant)
                yield Line(
                    name=label,
                    value=float(operand),
                    unit=operand.unit,
                    formula=None,
                    source=operand.source or None,
                    depth=depth + 1,
                )

    def _alike(self, number: float, name: str, depth: int) -> Line:
        """One of many that are computed like the first of them."""
        made = number.made if isinstance(number, Traced) else None
        return Line(
            name=name,
            value=float(number),
            unit=made.unit if isinstance(made, Step) else "",
            formula=None,
            source="computed like the first",
            depth=depth,
        )

    def _names_in(self, number: float) -> Iterator[float]:
        """What a formula names, from left to right."""
        if isinstance(number, Traced) and isinstance(number.made, Operation):
            for operand in number.made.operands:
                if isinstance(operand, Traced) and isinstance(operand.made, Operation):
                    yield from self._names_in(operand)
                elif isinstance(operand, Constant):
                    yield operand

    def _label(self, number: float) -> str:
        name = number.made.name if isinstance(number, Traced) else number.name  # type: ignore
        key = name, float(number)
        if key not in self._named:
            label, count = name, 1
            while label in self._taken:
                count += 1
                label = f"{name} ({count})"
            self._named[key] = label
            self._taken.add(label)
        return self._named[key]

    def _text(self, number: float, around: str = "", is_right: bool = False) -> str:
        if not isinstance(number, Constant):
            return _literal(number)
        if not isinstance(number, Traced) or not isinstance(number.made, Operation):
            return self._label(number)
        symbol, operands = number.made.symbol, number.made.operands
        if symbol in ("ceil", "floor"):
            return f"{symbol}({self._text(operands[0])})"
        if symbol == "sum":
            return f"sum of {self._text(operands[0])} to {self._text(operands[-1])}"
        texts = [self._text(one, symbol, place > 0) for place, one in enumerate(operands)]
        text = f" {SIGNS[symbol]} ".join(texts)
        is_inner = symbol in LOOSE and around in ("*", "/", "-") and (is_right or around != "-")
        is_divided = is_right and around == "/" and symbol in ("*", "/")
        is_after = is_right and around == "*" and symbol == "/"
        return f"({text})" if is_inner or is_divided or is_after else text


def _literal(number: float) -> str:
    value = float(number)
    return f"{int(value)}" if value.is_integer() and abs(value) < 1e15 else f"{value:.9g}"
