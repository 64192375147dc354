"""Help for an algorithm with given settings: formulas, curves to watch, paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from coloop.explain.formulas import (
    distillation_formulas,
    pair_formulas,
    reward_formulas,
    supervised_formulas,
)
from coloop.explain.maths import Formula, MathElement, to_mathml, to_text
from coloop.runtime.health.symptoms import SYMPTOMS
from coloop.spec.algorithm import (
    PORTS_OF,
    Algorithm,
    BradleyTerry,
    ImplicitPrm,
    ResolvedDistillation,
    RewardsAlgorithm,
    Sft,
    ValueLoss,
    resolve_algorithm,
)
from coloop.spec.algorithm import ResolvedPreference as Preference
from coloop.spec.algorithm import ResolvedRewards as Rewards
from coloop.spec.algorithms.registry import ALGORITHMS, help_of, texts_of, title_of
from coloop.spec.base import FrozenRecord
from coloop.spec.metrics import METRICS, OTHERWISE, OTHERWISE_WITHOUT_SCORES, Better


class Curve(FrozenRecord):
    """A metric of an algorithm, and how its curve should look."""

    metric: str
    title: str
    help: str
    expect: str
    """How the curve should look."""
    better: Better
    """Direction in which the metric is better."""
    otherwise: str
    """What to do if it looks different."""


def curves_of(entry: Algorithm) -> list[Curve]:
    """The curves of one algorithm, most important first."""
    is_scored = isinstance(entry, RewardsAlgorithm)
    advice = OTHERWISE if is_scored else OTHERWISE | OTHERWISE_WITHOUT_SCORES
    return [
        Curve(**asdict(METRICS[name]), metric=name, otherwise=advice.get(name) or _hint_of(name))
        for name in _metrics(entry)
    ]


def _hint_of(metric: str) -> str:
    hint = next(symptom.hint for symptom in SYMPTOMS if symptom.metric == metric)
    return f"{hint[0].upper()}{hint[1:]}."


def _metrics(entry: Algorithm) -> Iterator[str]:
    match resolve_algorithm(entry):
        case Rewards() as full:
            yield from _of_rewards(full)
        case Preference() as full:
            yield from _of_pairs(full)
        case ResolvedDistillation() as full:
            yield from _of_distillation(full)
        case BradleyTerry():
            yield from ("loss/pairs", "accuracy", "margin", "score/chosen", "score/rejected")
        case Sft():
            yield from ("loss/demonstrations", "entropy")
        case ValueLoss():
            yield from ("loss/returns", "explained_variance", "value/mean", "return/mean")
        case ImplicitPrm():
            yield from ("loss/labels", "accuracy", "score/mean", "log_ratio")
        case _:
            yield from ("loss/labels", "accuracy", "score/mean")
    yield "grad_norm"


def _of_rewards(settings: Rewards) -> Iterator[str]:
    yield "reward/mean"
    if settings.needs_group:
        yield "group/zero_variance"
    if settings.needs_baseline:
        yield "baseline/mean"
    if settings.kl is not None:
        yield "kl"
        if settings.kl.into == "reward":
            yield "kl/penalty"
        if settings.kl.target is not None:
            yield "kl/coefficient"
    yield "entropy"
    if settings.loss in ("clipped", "sequence_clipped", "dppo"):
        yield "clip_fraction"
    if settings.loss == "vespo":
        yield "weight/mean"
    if settings.loss != "policy_gradient":
        yield "ratio/max"
    yield from ("rollout/length", "rollout/finished", "advantage/std")
    if settings.correction.method != "none" or settings.old_policy == "engine":
        yield "mismatch_kl"
    yield "loss/policy"


def _of_distillation(settings: ResolvedDistillation) -> Iterator[str]:
    if settings.support != "sampled":
        yield "distillation/divergence"
    yield "distillation/kl"
    if settings.support == "top_k":
        yield from ("distillation/mass", "distillation/own_mass")
    yield from ("entropy", "rollout/length", "rollout/finished")
    if settings.support == "sampled" and settings.correction.method != "none":
        yield "mismatch_kl"
    yield "loss/reference"


def _of_pairs(settings: Preference) -> Iterator[str]:
    what = "log_ratio" if settings.needs_reference else "log_prob"
    yield from ("loss/pairs", "accuracy", "margin", f"{what}/chosen", f"{what}/rejected")
    if settings.needs_reference:
        yield "kl"
    if settings.loss == "kto":
        yield "divergence"
    if settings.loss == "bco":
        yield "shift"
    yield "entropy"


ANY_ALGORITHM: TypeAdapter[Algorithm] = TypeAdapter(Algorithm)


class FormulaText(FrozenRecord):
    """One formula of an algorithm."""

    name: str
    text: str
    """The formula as text in one line."""
    maths: MathElement
    """The formula as MathML."""
    note: str
    """How to read it; may be empty."""
    settings: list[str]
    """Settings of the algorithm that its numbers come from."""


class AlgorithmHelp(FrozenRecord):
    """Help for an algorithm with its current settings."""

    name: str
    title: str
    help: str
    ports: list[str]
    """Teaching ports that can use it."""
    formulas: list[FormulaText]
    curves: list[Curve]
    """Metrics to watch, most important first."""
    source: str
    reads: str
    """Meaning of the letters in the formulas."""


LETTERS = (
    "i indexes texts, t their tokens; π is the probability that a model gives to a token, L the "
    "number of trained tokens of a text, σ the logistic function, and sg stops the gradient."
)


def explain_algorithm(
    settings: Mapping[str, Any], *, max_new_tokens: int | None = None
) -> AlgorithmHelp:
    """The help of an algorithm with these settings (`name` included); raises pydantic's errors."""
    entry = ANY_ALGORITHM.validate_python(settings)
    record = texts_of(entry.name)
    return AlgorithmHelp(
        name=entry.name,
        title=title_of(entry.name),
        help=help_of(entry.name),
        ports=list(PORTS_OF[type(entry)]),
        formulas=[_shown(formula) for formula in _formulas_of(entry, max_new_tokens)],
        curves=curves_of(entry),
        source=record.paper,
        reads=LETTERS,
    )


def _formulas_of(entry: Algorithm, max_new_tokens: int | None) -> list[Formula]:
    match resolve_algorithm(entry, max_new_tokens=max_new_tokens):
        case Rewards() as full:
            return reward_formulas(full)
        case Preference() as full:
            return pair_formulas(full)
        case ResolvedDistillation() as full:
            return distillation_formulas(full)
    return supervised_formulas(entry)


def _shown(formula: Formula) -> FormulaText:
    maths = to_mathml(formula.latex)
    return FormulaText(
        name=formula.name,
        text=to_text(maths),
        maths=maths,
        note=formula.note,
        settings=list(formula.settings),
    )


def algorithm_names() -> tuple[str, ...]:
    return tuple(ALGORITHMS)
