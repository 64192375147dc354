"""Help of an algorithm with the settings of a node: its loss in formulas, its curves, its paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from coloop.explain.curves import Curve, curves_of
from coloop.explain.formulas import Formula, formulas_of
from coloop.explain.maths import MathElement, to_mathml, to_text
from coloop.spec.algorithm import PORTS_OF, Algorithm, family_of
from coloop.spec.algorithm_presets import PRESETS
from coloop.spec.catalog_texts import ALGORITHM_TEXTS
from coloop.spec.diagnostics import closest

ANY_ALGORITHM: TypeAdapter[Algorithm] = TypeAdapter(Algorithm)
ARXIV = "https://arxiv.org/abs/"

PAPERS: Mapping[str, str] = {
    "grpo": f"{ARXIV}2402.03300",
    "dr_grpo": f"{ARXIV}2503.20783",
    "dapo": f"{ARXIV}2503.14476",
    "gspo": f"{ARXIV}2507.18071",
    "cispo": f"{ARXIV}2506.13585",
    "rloo": f"{ARXIV}2402.14740",
    "opo": f"{ARXIV}2505.23585",
    "remax": f"{ARXIV}2310.10505",
    "reinforce": "https://doi.org/10.1007/BF00992696",
    "reinforce_pp": f"{ARXIV}2501.03262",
    "reinforce_pp_baseline": f"{ARXIV}2501.03262",
    "ppo": f"{ARXIV}1707.06347",
    "vapo": f"{ARXIV}2504.05118",
    "pf_ppo": f"{ARXIV}2409.06957",
    "dpo": f"{ARXIV}2305.18290",
    "ipo": f"{ARXIV}2310.12036",
    "kto": f"{ARXIV}2402.01306",
    "orpo": f"{ARXIV}2403.07691",
    "simpo": f"{ARXIV}2405.14734",
    "spin": f"{ARXIV}2401.01335",
    "online_dpo": f"{ARXIV}2402.04792",
    "bradley_terry": "https://doi.org/10.1093/biomet/39.3-4.324",
    "label_ce": f"{ARXIV}2408.15240",
    "regression": f"{ARXIV}2406.08673",
    "outcome": f"{ARXIV}2110.14168",
    "implicit_prm": f"{ARXIV}2412.01981",
    "sft": f"{ARXIV}2203.02155",
    "value": f"{ARXIV}1506.02438",
}
"""By family, where it comes from."""


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
    text = ALGORITHM_TEXTS[family_of(entry.name)]
    return AlgorithmHelp(
        name=entry.name,
        title=text.title,
        help=text.help,
        ports=list(PORTS_OF[type(entry)]),
        formulas=[_told(one) for one in formulas_of(entry, max_new_tokens=max_new_tokens)],
        curves=curves_of(entry),
        source=PAPERS[family_of(entry.name)],
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
    return tuple(dict.fromkeys([*PRESETS, *ALGORITHM_TEXTS]))


def near_algorithms(word: str) -> list[str]:
    return closest(word, algorithm_names())
