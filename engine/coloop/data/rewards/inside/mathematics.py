"""Compares answers with math-verify, in a sandbox; the caller limits their length and the time.

An answer is one short expression, LaTeX or plain. Loading fails if math-verify cannot parse LaTeX
here: it would then compare texts and call equal answers different.
"""

import logging

# Imported by math-verify's own imports only when they first read an expression or a set: where no
# file can be read later, they are read now.
import antlr4.LL1Analyzer  # noqa: F401
import sympy.assumptions.wrapper
import sympy.concrete.delta
import sympy.integrals.heurisch
import sympy.integrals.manualintegrate
import sympy.integrals.risch
import sympy.physics.units
import sympy.sets.handlers.functions
import sympy.sets.handlers.issubset
import sympy.sets.setexpr
import sympy.tensor.tensor  # noqa: F401
from math_verify import parse, verify

logging.disable(logging.WARNING)  # it warns that it has no time limit; the caller has one


def judge(answer: str, golds: list[str]) -> dict[str, float]:
    """`score` 1 if the answer equals one of the right ones, else 0."""
    return {"score": float(any(_is_equal(gold, answer) for gold in golds))}


def _is_equal(gold: str, answer: str) -> bool:
    """Whether math-verify finds the answers equal; it is not symmetric, so the order matters."""
    left, right = (parse(f"${text}$", parsing_timeout=None) for text in (gold, answer))
    return bool(verify(left, right, timeout_seconds=None))


if not _is_equal("(x+1)^2", "x^2 + 2x + 1"):
    raise ImportError(
        "math-verify cannot read LaTeX here: latex2sympy2-extended and antlr4 must fit"
    )
