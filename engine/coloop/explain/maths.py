"""Formulas as small trees: written once, told as MathML for the page and as a line for a terminal.

A tree says what a formula means (a fraction, an index, a sum over t) and not how it looks. The two
readings are made from the same tree, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Tag = Literal[
    "math",
    "mrow",
    "mi",
    "mn",
    "mo",
    "mtext",
    "msub",
    "msup",
    "msubsup",
    "mfrac",
    "msqrt",
    "munder",
    "mtable",
    "mtr",
    "mtd",
]


class MathElement(BaseModel):
    """One element of MathML; a leaf has a text, a branch has children."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    tag: Tag
    text: str = ""
    children: list[MathElement] = Field(default_factory=list)
    upright: bool = False
    """Written upright, as names of functions are."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A quantity: one letter, or a word that is set upright."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it stands in the settings."""

    value: float


@dataclass(frozen=True, slots=True)
class Sign:
    """An operator or a bracket."""

    sign: str


@dataclass(frozen=True, slots=True)
class Words:
    """Words within a formula."""

    words: str


@dataclass(frozen=True, slots=True)
class Row:
    """Parts side by side."""

    parts: tuple[Maths, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """A quantity with something below and above."""

    base: Maths
    below: Maths | None = None
    above: Maths | None = None


@dataclass(frozen=True, slots=True)
class Fraction:
    top: Maths
    bottom: Maths


@dataclass(frozen=True, slots=True)
class Root:
    of: Maths


@dataclass(frozen=True, slots=True)
class Call:
    """A function of something: `clip(ρ, 0.8, 1.2)`."""

    name: str
    arguments: tuple[Maths, ...]


@dataclass(frozen=True, slots=True)
class Big:
    """A sum or a product, over what stands below."""

    sign: str
    below: Maths
    of: Maths


@dataclass(frozen=True, slots=True)
class Cases:
    """One of several, by a condition."""

    cases: tuple[tuple[Maths, str], ...]


Maths = Symbol | Number | Sign | Words | Row | Index | Fraction | Root | Call | Big | Cases


def maths(*parts: Maths | str | float) -> Maths:
    """Parts as a tree: texts of one letter or a word are quantities, others signs."""
    found = tuple(
        part if not isinstance(part, str | int | float) else _leaf(part) for part in parts
    )
    return found[0] if len(found) == 1 else Row(found)


def _leaf(part: str | float) -> Maths:
    if isinstance(part, int | float):
        return Number(part)
    return Symbol(part) if part[0].isalpha() or part in ("∞",) else Sign(part)


def join(sign: str, parts: Iterable[Maths]) -> Maths:
    """Parts with a sign between them."""
    found: list[Maths] = []
    for part in parts:
        found += [Sign(sign), part] if found else [part]
    return maths(*found)


def digits(value: float) -> str:
    """A number as a person writes it: 0.001, 3e-4 for what is smaller."""
    if value != 0 and abs(value) < 1e-3:
        head, _, power = f"{value:.6e}".partition("e")
        return f"{float(head):g}e{int(power)}"
    return f"{value:.6g}"


# For a terminal.

_TIGHT = {"(", ")", "[", "]", "|"}


def to_text(tree: Maths) -> str:
    """The formula on one line; of cases on one line each."""
    match tree:
        case Symbol(name):
            return name
        case Number(value):
            return digits(value)
        case Sign(sign):
            return sign if sign in _TIGHT else f" {sign} "
        case Words(words):
            return f" {words} "
        case Row(parts):
            return _tidy("".join(map(to_text, _spaced(parts))))
        case Index(base, below, above):
            lower = "" if below is None else f"_{_grouped(below)}"
            upper = "" if above is None else f"^{_grouped(above)}"
            return f"{to_text(base)}{lower}{upper}"
        case Fraction(top, bottom):
            return f"{_bracketed(top)} / {_bracketed(bottom)}"
        case Root(of):
            return f"√({to_text(of)})"
        case Call(name, arguments):
            return f"{name}({', '.join(map(to_text, arguments))})"
        case Big(sign, below, of):
            return f"{sign}_{_grouped(below)} {to_text(of)}"
        case Cases(cases):
            return "; ".join(f"{to_text(one)} {when}" for one, when in cases)


def _spaced(parts: tuple[Maths, ...]) -> list[Maths]:
    """A blank between two quantities that stand side by side."""
    found: list[Maths] = []
    for part in parts:
        if found and not isinstance(found[-1], Sign) and not isinstance(part, Sign):
            found.append(Words(""))
        found.append(part)
    return found


def _tidy(text: str) -> str:
    words = " ".join(text.split())
    return words.replace("( ", "(").replace(" )", ")").removeprefix("- ")


def _grouped(tree: Maths) -> str:
    text = to_text(tree)
    return text if len(text) == 1 or text.isalnum() else f"{{{text}}}"


def _bracketed(tree: Maths) -> str:
    text = to_text(tree)
    return text if " " not in text else f"({text})"


# For the page.


def to_mathml(tree: Maths) -> MathElement:
    """The formula as an element `math`."""
    return MathElement(tag="math", children=[_element(tree)])


def _element(tree: Maths) -> MathElement:
    match tree:
        case Symbol(name):
            thin = "\N{THIN SPACE}" if name == "log" else ""
            return MathElement(tag="mi", text=name + thin, upright=len(name) > 1)
        case Number(value):
            return _number(digits(value))
        case Sign(sign):
            return MathElement(tag="mo", text=sign)
        case Words(words):
            gap = "\N{NO-BREAK SPACE}"
            return MathElement(tag="mtext", text=f"{gap}{words}{gap}")
        case Row(parts):
            return _branch("mrow", parts)
        case Index(base, below, above):
            return _indexed(base, below, above)
        case Fraction(top, bottom):
            return _branch("mfrac", (top, bottom))
        case Root(of):
            return _branch("msqrt", (of,))
        case Call(name, arguments):
            inner = join(",", arguments)
            return _branch("mrow", (Symbol(name), Sign("("), inner, Sign(")")))
        case Big(sign, below, of):
            head = MathElement(tag="munder", children=[_element(Sign(sign)), _element(below)])
            return MathElement(tag="mrow", children=[head, _element(of)])
        case Cases(cases):
            rows = [_case(one, when) for one, when in cases]
            table = MathElement(tag="mtable", children=rows)
            return MathElement(tag="mrow", children=[_element(Sign("{")), table])


def _branch(tag: Tag, parts: Iterable[Maths]) -> MathElement:
    return MathElement(tag=tag, children=[_element(part) for part in parts])


def _number(text: str) -> MathElement:
    """`3e-4` is written 3·10⁻⁴."""
    head, _, power = text.partition("e")
    if not power:
        return MathElement(tag="mn", text=text)
    ten = MathElement(
        tag="msup",
        children=[MathElement(tag="mn", text="10"), MathElement(tag="mn", text=f"−{power[1:]}")],
    )
    if head == "1":
        return ten
    parts = [MathElement(tag="mn", text=head), MathElement(tag="mo", text="·"), ten]
    return MathElement(tag="mrow", children=parts)


def _indexed(base: Maths, below: Maths | None, above: Maths | None) -> MathElement:
    parts = [part for part in (base, below, above) if part is not None]
    tag: Tag = "msubsup" if len(parts) == 3 else "msub" if below is not None else "msup"
    return _branch(tag, parts)


def _case(one: Maths, when: str) -> MathElement:
    cells = [
        MathElement(tag="mtd", children=[_element(one)]),
        MathElement(tag="mtd", children=[MathElement(tag="mtext", text=when)]),
    ]
    return MathElement(tag="mtr", children=cells)
