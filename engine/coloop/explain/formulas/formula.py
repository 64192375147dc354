"""One formula with the words round it, and letters that several use."""

from __future__ import annotations

from dataclasses import dataclass

from coloop.explain.maths import Big, Call, Fraction, Index, Maths, Row, Sign, Symbol, maths


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A step of what is computed."""

    name: str
    """What it makes, e.g. `Advantage`."""
    tree: Maths
    note: str = ""
    """How to read it."""
    settings: tuple[str, ...] = ()
    """Fields of the algorithm from which its numbers are."""


def at(base: str, below: str, above: Maths | None = None) -> Maths:
    """A letter with an index: `A_t`."""
    return Index(Symbol(base), Symbol(below), above)


def equals(left: Maths | str, *right: Maths | str | float) -> Maths:
    return maths(left, "=", *right)


def bracket(*parts: Maths | str | float) -> Maths:
    return maths("(", *parts, ")")


def squared(*parts: Maths | str | float) -> Maths:
    return Index(bracket(*parts), above=maths(2))


def log_sigmoid(*parts: Maths | str | float) -> Maths:
    return maths("log", sigmoid(*parts))


def sigmoid(*parts: Maths | str | float) -> Maths:
    return Call("σ", (maths(*parts),))


def minus(*parts: Maths | str | float) -> Maths:
    return Row((Sign("−"), *(maths(part) for part in parts)))


def total(over: str, *parts: Maths | str | float) -> Maths:
    return Big("∑", Symbol(over), maths(*parts))


def share(top: Maths | str | float, bottom: Maths | str | float) -> Maths:
    return Fraction(maths(top), maths(bottom))


def times(factor: float, *parts: Maths | str | float) -> Maths:
    """A factor before something; 1 is not written."""
    return maths(*parts) if factor == 1.0 else maths(factor, "·", *parts)


PI = at("π", "t")
OLD = at("π", "t", Symbol("old"))
REFERENCE = at("π", "t", Symbol("ref"))
RATIO = at("ρ", "t")
ADVANTAGE = at("A", "t")
