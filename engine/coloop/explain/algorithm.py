"""Help of an algorithm with the settings of a node: its loss in formulas, its curves, its paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from coloop.explain.formulas import formulas_of
from coloop.explain.maths import Formula, MathElement, to_mathml, to_text
from coloop.runtime.health.symptoms import SYMPTOMS
from coloop.spec.algorithm import (
    PORTS_OF,
    Algorithm,
    BradleyTerry,
    ImplicitPrm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    Sft,
    ValueLoss,
    resolve_pairs_algorithm,
    resolve_rewards_algorithm,
)
from coloop.spec.algorithm import ResolvedPreference as Preference
from coloop.spec.algorithm import ResolvedRewards as Rewards
from coloop.spec.algorithms.registry import ALGORITHMS, family_of, title_of
from coloop.spec.diagnostics import closest
from coloop.spec.metrics import METRICS, Better

# Which curves belong to an algorithm, how they should look, and what to do where they do not.
#
# What a curve should look like is said once, in `spec.metrics`; what to do is the hint of the
# learning doctor where it watches the metric, and is said here for the others.


class Curve(BaseModel):
    """One number over the steps of a run."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    metric: str
    title: str
    help: str
    expect: str
    """What it should look like."""
    better: Better
    otherwise: str
    """What to do where it looks different."""


OTHERWISE: dict[str, str] = {
    "loss/policy": (
        "A drift away from 0 often comes with clipped tokens or a high KL: lower the learning "
        "rate, and check these two curves."
    ),
    "loss/demonstrations": (
        "If it does not fall, raise the learning rate or check the target column. If it falls to 0 "
        "and held-out accuracy does not rise, stop earlier or use more rows."
    ),
    "loss/pairs": (
        "If it stays at 0.69, the model does not distinguish the sides: raise the learning rate or "
        "beta, and read some pairs. If it is near 0 at once, chosen and rejected differ in their "
        "format."
    ),
    "loss/labels": (
        "If it does not move, check the labels: are there both kinds? Does the judge see the whole "
        "text?"
    ),
    "loss/returns": "If it does not fall, raise the critic's learning rate or its updates, or let "
    "it learn alone before the policy.",
    "reward/mean": (
        "If it does not move, check the groups without variance and read samples: can the problems "
        "be solved at all, and does the scorer find the answer? If it jumps, read the texts with "
        "the highest rewards."
    ),
    "kl/penalty": "If it outweighs the reward, lower `kl.coefficient`.",
    "kl/coefficient": "If it keeps rising or falling, choose another `kl.target`.",
    "advantage/std": "At 0 nothing is learned: check the groups without variance.",
    "rollout/length": (
        "If it grows to the limit, add a length penalty or raise `max_new_tokens`; if it falls to "
        "almost nothing, the reward favors short texts."
    ),
    "accuracy": (
        "At 0.5 the model does not distinguish the sides: raise the learning rate, check the data. "
        "At 1 from the start the two sides are trivial to tell apart, by their length or their "
        "format."
    ),
    "margin": (
        "If it does not rise, raise the learning rate; if it keeps rising while held-out accuracy "
        "falls, stop earlier or raise beta."
    ),
    "log_ratio/chosen": "If it falls as fast as that of rejected sides, both are unlearned: lower "
    "the learning rate, raise beta, or add a share of imitation (`sft`).",
    "log_ratio/rejected": "If it runs away, lower the learning rate or raise beta.",
    "log_prob/chosen": "If it falls, lower the learning rate or raise the share of imitation.",
    "log_prob/rejected": "If it does not fall below that of chosen sides, raise the learning rate.",
    "divergence": "If it is far above both sides, lower the learning rate.",
    "shift": "If it runs away, lower the learning rate.",
    "score/chosen": (
        "If it stays with that of rejected sides, raise the learning rate and check the pairs."
    ),
    "score/rejected": "If it stays with that of chosen sides, raise the learning rate.",
    "score/mean": "At one of its extremes all labels are of one kind: balance them.",
    "log_ratio": "If it does not rise, raise `beta` or the learning rate.",
    "value/mean": "If it lags far behind the returns, raise the critic's learning rate.",
    "return/mean": "It follows the reward: check that one.",
    "grad_norm": (
        "Spikes call for a lower learning rate or a lower `gradient_clip`; 0 means that no reward "
        "differs within any group."
    ),
}
"""For metrics that the learning doctor does not watch, or of which there is more to say."""


WITHOUT_SCORES: dict[str, str] = {
    "entropy": (
        "If it drops sharply while held-out numbers stay, stop earlier, lower the learning rate, "
        "or use more rows."
    ),
    "kl": "If it rises fast, lower the learning rate, or raise beta.",
    "grad_norm": (
        "Spikes call for a lower learning rate or a lower `gradient_clip`; near 0 there is nothing "
        "left to learn."
    ),
}
"""The same of learners that are taught by no scores, where that differs."""


def curves_of(entry: Algorithm) -> list[Curve]:
    """The curves of one algorithm, the most important first."""
    own = {} if isinstance(entry, RewardsAlgorithm) else WITHOUT_SCORES
    return [_curve(metric, own) for metric in _metrics(entry)]


def _curve(name: str, own: Mapping[str, str]) -> Curve:
    metric = METRICS[name]
    return Curve(
        metric=name,
        title=metric.title,
        help=metric.help,
        expect=metric.expect,
        better=metric.better,
        otherwise=own.get(name) or otherwise(name),
    )


def otherwise(metric: str) -> str:
    """What to do where a curve does not look as it should."""
    if metric in OTHERWISE:
        return OTHERWISE[metric]
    hint = next(symptom.hint for symptom in SYMPTOMS if symptom.metric == metric)
    return f"{hint[0].upper()}{hint[1:]}."


def _metrics(entry: Algorithm) -> Iterator[str]:
    match entry:
        case RewardsAlgorithm():
            yield from _of_rewards(resolve_rewards_algorithm(entry))
        case PreferenceAlgorithm():
            full = resolve_pairs_algorithm(entry)
            assert isinstance(full, Preference)
            yield from _of_pairs(full)
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
    if settings.kl is not None:
        yield "kl"
        if settings.kl.into == "reward":
            yield "kl/penalty"
        if settings.kl.target is not None:
            yield "kl/coefficient"
    yield "entropy"
    if settings.loss in ("clipped", "sequence_clipped"):
        yield "clip_fraction"
    if settings.loss != "policy_gradient":
        yield "ratio/max"
    yield from ("rollout/length", "rollout/finished", "advantage/std")
    if settings.correction.method != "none":
        yield "mismatch_kl"
    yield "loss/policy"


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
    "i indexes texts, t their tokens; π is the probability that a model gives to a token, L the "
    "number of trained tokens of a text, σ the logistic function, and sg stops the gradient."
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
        formulas=[_shown(formula) for formula in formulas_of(entry, max_new_tokens=max_new_tokens)],
        curves=curves_of(entry),
        source=record.paper,
        reads=LETTERS,
    )


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
    """All algorithms, presets of other frameworks included."""
    return tuple(ALGORITHMS)


def near_algorithms(word: str) -> list[str]:
    return closest(word, algorithm_names())
