"""Help of an algorithm with the settings of a node: its loss in formulas, its curves, its paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from coloop.explain.curves import Curve, curves_of
from coloop.explain.formulas import Formula, formulas_of
from coloop.explain.maths import MathElement, to_mathml, to_text
from coloop.spec.algorithm import PORTS_OF, Algorithm
from coloop.spec.algorithms.registry import ALGORITHMS, family_of, title_of
from coloop.spec.diagnostics import closest

ANY_ALGORITHM: TypeAdapter[Algorithm] = TypeAdapter(Algorithm)


class FormulaText(BaseModel):
    """One step of what is computed."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    text: str
    """On one line, for a terminal or to be copied."""
    maths: MathElement
    note: str
    settings: list[str]
    """Fields of the algorithm from which its numbers are."""


class AlgorithmHelp(BaseModel):
    """What an algorithm is and computes, as it is set."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    title: str
    help: str
    ports: list[str]
    """Teaching ports that it may serve."""
    formulas: list[FormulaText]
    curves: list[Curve]
    source: str
    reads: str
    """What the letters stand for."""


LETTERS = (
    "i counts texts, t their tokens; π is the chance that a model gives to a token, L the number "
    "of trained tokens of a text, σ the logistic function, and sg stops the gradient."
)


def explain_algorithm(
    settings: Mapping[str, Any], *, max_new_tokens: int | None = None
) -> AlgorithmHelp:
    """The help of an algorithm as it is written in a loop; raises what pydantic says of it.

    Args:
        settings: with a `name`, as at `algorithm.rewards`.
    """
    entry = ANY_ALGORITHM.validate_python(settings)
    record = ALGORITHMS[family_of(entry.name)]
    return AlgorithmHelp(
        name=entry.name,
        title=title_of(entry.name),
        help=record.help,
        ports=list(PORTS_OF[type(entry)]),
        formulas=[_told(one) for one in formulas_of(entry, max_new_tokens=max_new_tokens)],
        curves=curves_of(entry),
        source=record.paper,
        reads=LETTERS,
    )


def _told(formula: Formula) -> FormulaText:
    return FormulaText(
        name=formula.name,
        text=to_text(formula.tree).strip(),
        maths=to_mathml(formula.tree),
        note=formula.note,
        settings=list(formula.settings),
    )


def algorithm_names() -> tuple[str, ...]:
    """All algorithms, presets of other frameworks included."""
    return tuple(ALGORITHMS)


def near_algorithms(word: str) -> list[str]:
    return closest(word, algorithm_names())
