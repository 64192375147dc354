"""Losses of scorers, judges and critics, and imitation."""

from __future__ import annotations

from coloop.explain.formulas.formula import (
    PI,
    Formula,
    at,
    equals,
    log_sigmoid,
    minus,
    share,
    squared,
    total,
)
from coloop.explain.maths import Call, Fraction, Index, Maths, Symbol, Words, maths
from coloop.spec.algorithm import (
    Algorithm,
    BradleyTerry,
    ImplicitPrm,
    LabelCrossEntropy,
    Outcome,
    Regression,
    Sft,
    ValueLoss,
)

SCORE, LABEL, LOSS = Symbol("s"), Symbol("y"), Symbol("ℓ")
_HARD = "A label of 0.5 or more counts as 1, else as 0."
_SOFT = "Labels are probabilities."


def formulas(entry: Algorithm) -> list[Formula]:
    match entry:
        case BradleyTerry():
            found = _bradley_terry(entry)
        case LabelCrossEntropy():
            found = [_label_words(entry)]
        case Regression():
            tree = equals(LOSS, squared(SCORE, "−", LABEL))
            found = [Formula(name="Loss of a label", tree=tree, note="Prediction against label.")]
        case Outcome():
            found = [_outcome(entry.soft)]
        case ImplicitPrm():
            found = [_implicit(entry), _outcome(entry.soft)]
        case Sft():
            found = [_imitation(entry)]
        case ValueLoss():
            found = [_value(entry)]
        case _:
            raise ValueError(f"no formula of {entry.name}")
    return [*found, _mean(entry)]


def _mean(entry: Algorithm) -> Formula:
    by_token = isinstance(entry, Sft | ValueLoss)
    over = "trained tokens" if by_token else "rows"
    tree: Maths = Call("mean", (at("ℓ", "t") if by_token else LOSS,))
    tree = tree if entry.weight == 1.0 else maths(entry.weight, "·", tree)
    fields = () if entry.weight == 1.0 else ("weight",)
    note = f"Mean over all {over} of the optimizer step."
    return Formula(name="Loss", tree=equals("L", tree), note=note, settings=fields)


def _bradley_terry(entry: BradleyTerry) -> list[Formula]:
    chosen, rejected = at("s", "chosen"), at("s", "rejected")
    margin: tuple[Maths | str, ...] = ("−", Symbol("m")) if entry.margin else ()
    lead = Formula(
        name="Lead",
        tree=equals("z", chosen, "−", rejected, *margin),
        note=f"m is the pair's column `{entry.margin}`." if entry.margin else "",
        settings=("margin",) if entry.margin else (),
    )
    z = Symbol("z")
    tree: Maths = minus(log_sigmoid(z))
    note, fields = "Chosen is to score higher than rejected.", []
    if entry.soft or entry.label_smoothing:
        p: Maths = Symbol("p") if entry.soft else maths(1 - entry.label_smoothing)
        q: Maths = maths("(1 − p)") if entry.soft else maths(entry.label_smoothing)
        tree = maths(minus(p, log_sigmoid(z)), "−", q, log_sigmoid("−", z))
        fields.append("soft" if entry.soft else "label_smoothing")
        note += " p is the pair's probability." if entry.soft else ""
    if entry.center:
        tree = maths(tree, "+", entry.center, squared(chosen, "+", rejected))
        fields.append("center")
        note += " The last term keeps scores near 0."
    loss = Formula(
        name="Loss of a pair", tree=equals(LOSS, tree), note=note, settings=tuple(fields)
    )
    return [lead, loss]


def _label_words(entry: LabelCrossEntropy) -> Formula:
    smooth = entry.label_smoothing
    said = maths("log", Index(Symbol("p"), Symbol("c")))
    wanted = Index(LABEL, Symbol("c"))
    tree = minus(total("c", wanted, said))
    note = "Over the label words c only: the model's prediction against the correct label."
    fields = []
    if smooth:
        note += f" The correct label has the target {1 - smooth:g}, the others share {smooth:g}."
        tree = minus(total("c", maths("(", 1 - smooth, wanted, "+", smooth, "…", ")"), said))
        fields.append("label_smoothing")
    if entry.soft:
        note += f" {_SOFT}"
        fields.append("soft")
    return Formula(
        name="Loss of a label", tree=equals(LOSS, tree), note=note, settings=tuple(fields)
    )


def _outcome(is_soft: bool) -> Formula:
    other = maths("(1 − y)", log_sigmoid("−", SCORE))
    tree = equals(LOSS, minus(LABEL, log_sigmoid(SCORE)), "−", other)
    return Formula(
        name="Loss of a label",
        tree=tree,
        note=_SOFT if is_soft else _HARD,
        settings=("soft",),
    )


def _implicit(entry: ImplicitPrm) -> Formula:
    ratio = total("t", "log", share(PI, at("π", "t", Symbol("prior"))))
    return Formula(
        name="Score",
        tree=equals(SCORE, entry.beta, "·", ratio),
        note="Each term of the sum is the reward of its token.",
        settings=("beta",),
    )


def _imitation(entry: Sft) -> Formula:
    note = "The tokens of the target only."
    if entry.mask:
        note += f" Text inside {', '.join(f'`{tag}`' for tag in entry.mask)} is not trained."
    return Formula(
        name="Loss of a token",
        tree=equals(at("ℓ", "t"), minus("log", PI)),
        note=note,
        settings=("mask",) if entry.mask else (),
    )


def _value(entry: ValueLoss) -> Formula:
    value, wanted = at("V", "t"), at("R", "t")
    half = Fraction(maths(1), maths(2))
    fields: tuple[str, ...] = ()
    note = "The critic's value against the return from this token on."
    if entry.clip is None:
        tree: Maths = maths(half, squared(value, "−", wanted))
    else:
        old = at("V", "t", Symbol("old"))
        kept = Call("clip", (value, maths(old, "−", entry.clip), maths(old, "+", entry.clip)))
        both = (squared(value, "−", wanted), squared(kept, "−", wanted))
        tree = maths(half, Call("max", both))
        note += " A move beyond the clip has no gradient."
        fields = ("clip",)
    if entry.gae_lambda is not None:
        tree = maths(tree, Words("returns with"), equals("λ", entry.gae_lambda))
        fields += ("gae_lambda",)
    return Formula(
        name="Loss of a token", tree=equals(at("ℓ", "t"), tree), note=note, settings=fields
    )
