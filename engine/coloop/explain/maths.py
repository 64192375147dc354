"""Formulas in LaTeX, converted to MathML for the page (`latex2mathml`) and to text for a terminal.

The text is made from the MathML, because no LaTeX-to-text library keeps the brackets of a fraction:
`\\frac{a - b}{c}` is `(a − b) / c`, and not `a − b/c`.
"""

from __future__ import annotations

import ast
import html
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from coloop.spec.base import FrozenRecord

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

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


class MathElement(FrozenRecord):
    """An element of MathML: a leaf has `text`, any other has `children`."""

    tag: Tag
    text: str = ""
    children: list[MathElement] = Field(default_factory=list)
    upright: bool = False
    """Whether it is set upright, as names of functions are, and not in italics."""


class Formula(NamedTuple):
    """One step of a computation."""

    name: str
    """Its result, e.g. `Advantage`."""
    latex: str
    note: str = ""
    """How to read it."""
    settings: tuple[str, ...] = ()
    """Fields of the algorithm that its numbers come from."""


def number(value: float) -> str:
    """Small numbers as powers of ten: 3·10⁻⁴."""
    if value == 0 or abs(value) >= 1e-3:
        return f"{value:.6g}"
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    power = f"10^{{{int(exponent)}}}"
    return power if float(mantissa) == 1 else rf"{float(mantissa):g} \cdot {power}"


def word(name: str) -> str:
    """A letter unchanged, a word upright and escaped."""
    plain = re.sub(r"[\\{}$]", " ", name)
    return plain if len(plain) == 1 else rf"\text{{{plain}}}"


def fraction(top: str, bottom: str) -> str:
    return rf"\frac{{{top}}}{{{bottom}}}"


def call(name: str, *arguments: str) -> str:
    return rf"\operatorname{{{name}}}({', '.join(arguments)})"


def log_sigmoid(of: str) -> str:
    return rf"\log \sigma({of})"


def cases(*rows: tuple[str, str]) -> str:
    """A case distinction: expressions with conditions in words."""
    body = r" \\ ".join(rf"{value} & \text{{{condition}}}" for value, condition in rows)
    return rf"\begin{{cases}} {body} \end{{cases}}"


def from_python(source: str) -> str:
    """LaTeX of arithmetic in Python: `a / b` is a fraction, `r_i` has an index, `sum_j(...)` is a
    sum over j. Anything else is kept as words.
    """
    try:
        return _latex(ast.parse(source, mode="eval").body)
    except (SyntaxError, ValueError):
        return word(source)


def _latex(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            base, _, index = name.partition("_")
            return f"{word(base)}_{{{word(index)}}}" if index else word(base)
        case ast.Constant(value=int() | float() as value):
            return number(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-{_factor(operand)}"
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return fraction(_latex(left), _latex(right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return f"{_factor(left)} {_factor(right)}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{_latex(left)} + {_latex(right)}"
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return f"{_latex(left)} - {_factor(right)}"
        case ast.Call(func=ast.Name(id=name), args=[of], keywords=[]) if name.startswith("sum_"):
            return rf"\sum_{{{name.removeprefix('sum_')}}} {_latex(of)}"
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return call(name, *map(_latex, arguments))
    raise ValueError(ast.unparse(node))


def _factor(node: ast.expr) -> str:
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
    return f"({_latex(node)})" if is_sum else _latex(node)


def to_mathml(latex: str) -> MathElement:
    """The formula as an element `math`."""
    from latex2mathml.converter import convert_to_element

    return _element(convert_to_element(latex, display="block"))


def _element(source: Element) -> MathElement:
    if source.tag == "mrow" and len(source) == 1:
        return _element(source[0])
    text = html.unescape(source.text or "")
    is_name = source.tag in ("mi", "mo") and len(text) > 1
    fields = {
        "tag": "mi" if is_name else source.tag,
        "text": f"{text}\N{THIN SPACE}" if text == "log" else text,
        "children": _bracketed([_element(child) for child in source]),
        "upright": is_name,
    }
    return MathElement.model_validate(fields)


def _bracketed(elements: list[MathElement]) -> list[MathElement]:
    """Brackets and their contents as separate rows, so that brackets have the right height."""
    levels: list[list[MathElement]] = [[]]
    for element in elements:
        end = element.children[0] if element.tag == "msup" else element
        if element.text in ("(", "["):
            levels.append([element])
        elif end.text in (")", "]") and len(levels) > 1:
            group = MathElement(tag="mrow", children=[*levels.pop(), end])
            is_power = element.tag == "msup"
            changed = {"children": [group, *element.children[1:]]}
            levels[-1].append(element.model_copy(update=changed) if is_power else group)
        else:
            levels[-1].append(element)
    return [element for level in levels for element in level]


def to_text(formula: MathElement) -> str:
    """The formula on one line, e.g. `A_t = (r_i − mean(group)) / (std(group) + 1e-6)`."""
    line = re.sub(r"\| (.*?) \|", r"|\1|", _line(formula))
    return re.sub(r"(?:([\d.]+) · )?10\^\{−(\d+)\}", lambda m: f"{m[1] or 1}e-{m[2]}", line)


def _line(element: MathElement) -> str:
    parts = [_line(child) for child in element.children]
    match element.tag:
        case "msub" | "munder":
            return f"{parts[0]}_{_script(parts[1])}"
        case "msup":
            return f"{parts[0]}^{_script(parts[1])}"
        case "msubsup":
            return f"{parts[0]}_{_script(parts[1])}^{_script(parts[2])}"
        case "mfrac":
            return " / ".join(f"({part})" if " " in part else part for part in parts)
        case "mtable":
            return "; ".join(parts)
        case "msqrt":
            return f"√({_row(element.children, parts)})"
        case _ if parts:
            return _row(element.children, parts)
        case _:
            return element.text.replace("\N{NO-BREAK SPACE}", " ").strip()


def _row(elements: list[MathElement], parts: list[str]) -> str:
    """Parts separated by blanks, except in brackets and after function names."""
    line, is_function = "", False
    for element, part in zip(elements, parts, strict=True):
        if part == "{":
            continue
        is_tight = line.endswith(("(", "[")) or part[0] in ")],"
        line += part if is_tight or (part[0] == "(" and is_function) else f" {part}"
        is_function = element.upright or part == "σ"
    return line.strip()


def _script(text: str) -> str:
    return text if text.isalnum() else f"{{{text.replace(' ', '')}}}"
