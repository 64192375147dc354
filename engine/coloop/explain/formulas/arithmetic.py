"""A formula that is written as arithmetic, as a tree: `(r_i - mean(group)) / mean(group)`.

Names with an underscore are indexed (`r_i`), `a / b` is a fraction, `sum_j(...)` a sum over j, any
other call a function; a product is written without a sign. What is no such arithmetic stays words.
"""

from __future__ import annotations

import ast

from coloop.explain.formulas.formula import at, bracket, minus, share, total
from coloop.explain.maths import Call, Maths, Symbol, Words, maths


def arithmetic(text: str) -> Maths:
    """The tree of a formula."""
    try:
        return _tree(ast.parse(text, mode="eval").body)
    except (SyntaxError, _NoArithmetic):
        return Words(text)


class _NoArithmetic(Exception):
    """A part that has no tree."""


def _tree(part: ast.expr) -> Maths:
    match part:
        case ast.Name(id=name):
            return _quantity(name)
        case ast.Constant(value=int() | float() as number):
            return maths(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return minus(_factor(operand))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return share(_tree(left), _tree(right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return maths(_factor(left), _factor(right))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return maths(_tree(left), "+", _tree(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return maths(_tree(left), "−", _factor(right))
        case ast.Call(func=ast.Name(id=name), args=[of], keywords=[]) if name.startswith("sum_"):
            return total(name.removeprefix("sum_"), _tree(of))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return Call(name, tuple(_tree(one) for one in arguments))
    raise _NoArithmetic


def _factor(part: ast.expr) -> Maths:
    """A part of a product, or what is subtracted: in brackets where it is a sum."""
    is_sum = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub)
    return bracket(_tree(part)) if is_sum else _tree(part)


def _quantity(name: str) -> Maths:
    base, _, below = name.partition("_")
    return at(base, below) if below else Symbol(base)
