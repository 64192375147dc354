"""Losses of preference pairs for policies: what `recipes.preference` computes."""

from __future__ import annotations

from collections.abc import Iterator

from coloop.explain.formulas.formula import (
    PI,
    REFERENCE,
    Formula,
    equals,
    log_sigmoid,
    minus,
    share,
    sigmoid,
    squared,
    total,
)
from coloop.explain.maths import Call, Fraction, Index, Maths, Symbol, Words, maths
from coloop.spec.algorithm import ResolvedPreference

A, B, Z, S = Symbol("a"), Symbol("b"), Symbol("z"), Symbol("ℓ")
_HALVES = ("kto", "nca", "bco", "sppo", "apo", "aot")
"""Losses that look at each side alone."""


def formulas(settings: ResolvedPreference) -> list[Formula]:
    return [
        _side(settings),
        *_lead(settings),
        *_across(settings),
        _pair(settings),
        *_whole(settings),
    ]


def _side(settings: ResolvedPreference) -> Formula:
    quotient = share(PI, REFERENCE) if settings.needs_reference else PI
    inner = total("t", "log", quotient)
    tree = inner if settings.reduce == "sum" else maths(share(1, "L"), inner)
    against = "against the reference" if settings.needs_reference else "by itself, no reference"
    how = "summed over its tokens" if settings.reduce == "sum" else "mean over its tokens"
    note = f"How likely a side is, {against}, {how}: a of the chosen side, b of the rejected one."
    return Formula(name="A side", tree=equals(A, tree), note=note, settings=("reduce",))


def _lead(settings: ResolvedPreference) -> Iterator[Formula]:
    if settings.loss not in (*_HALVES, "orpo"):
        yield Formula(name="Lead", tree=equals(Z, A, "−", B), note="Of chosen over rejected.")


def _across(settings: ResolvedPreference) -> Iterator[Formula]:
    """What is measured over the whole batch."""
    if settings.loss == "kto":
        tree = equals(Index(Z, maths(0)), Call("max", (maths(0), Call("mean", (A,)))))
        note = "Over answers paired with the prompts of other pairs: how far the policy has moved."
        yield Formula(name="Divergence", tree=tree, note=note)
    if settings.loss == "bco":
        mean = Call("mean", (maths(settings.beta, A), maths(settings.beta, B)))
        yield Formula(name="Shift", tree=equals("δ", mean), note="Over all sides of the batch.")


def _pair(settings: ResolvedPreference) -> Formula:
    tree, note = _loss(settings)
    fields = ["loss", "beta"]
    if settings.label_smoothing:
        fields.append("label_smoothing")
    if settings.loss == "simpo":
        fields.append("gamma")
    return Formula(name="Loss of a pair", tree=equals(S, tree), note=note, settings=tuple(fields))


def _loss(settings: ResolvedPreference) -> tuple[Maths, str]:
    beta, smooth = settings.beta, settings.label_smoothing
    lead, back = maths(beta, "·", Z), maths("−", beta, "·", Z)
    half = share(1, maths(2, "·", beta))
    match settings.loss:
        case "sigmoid":
            return _smoothed(
                lead, back, smooth
            ), "Chosen should lead; the larger the lead, the smaller the gradient."
        case "hinge":
            return Call("max", (maths(0), maths(1, "−", lead))), "No gradient beyond a lead of 1/β."
        case "ipo":
            return squared(Z, "−", half), "The lead is pulled towards a fixed size."
        case "robust":
            inner = maths(minus(1 - smooth, log_sigmoid(lead)), "+", smooth, log_sigmoid(back))
            return share(inner, 1 - 2 * smooth), "Unbiased where some labels are wrong."
        case "exo":
            kept = smooth or 1e-3
            left = maths(sigmoid(lead), "(", log_sigmoid(lead), "−", "log", 1 - kept, ")")
            right = maths(sigmoid(back), "(", log_sigmoid(back), "−", "log", kept, ")")
            return maths(left, "+", right), "The reverse divergence from the labels."
        case "discopop":
            gate = equals("m", sigmoid(share(lead, 0.05)))
            mixed = maths("(1 − m)", "·", minus(log_sigmoid(lead)), "+", "m")
            power = Index(Symbol("e"), above=back)
            return maths(mixed, power, Words("with"), gate), "Between logistic and exponential."
        case "simpo":
            ahead = maths(lead, "−", settings.gamma)
            behind = maths(settings.gamma, "−", lead)
            return _smoothed(ahead, behind, smooth), "Chosen should lead by a margin."
        case "orpo":
            odds = maths(Call("log odds", (A,)), "−", Call("log odds", (B,)))
            imitation = minus(share(1, "L"), total("t", "log", PI))
            tree = maths(imitation, "−", beta, log_sigmoid(odds))
            return tree, "Imitation of the chosen side, and better odds than the rejected one."
        case _:
            return _of_halves(settings)


def _of_halves(settings: ResolvedPreference) -> tuple[Maths, str]:
    beta = settings.beta
    a, b, half = maths(beta, "·", A), maths(beta, "·", B), share(1, maths(2, "·", beta))
    match settings.loss:
        case "kto":
            origin = Index(Z, maths(0))
            good = sigmoid(beta, "(", A, "−", origin, ")")
            bad = sigmoid(beta, "(", origin, "−", B, ")")
            tree = maths(share(maths(1, "−", good), 2), "+", share(maths(1, "−", bad), 2))
            return tree, "Each side for itself: desirable up, undesirable down."
        case "nca":
            halves = maths(Fraction(maths(1), maths(2)), log_sigmoid("−", a))
            other = maths(Fraction(maths(1), maths(2)), log_sigmoid("−", b))
            return maths(
                minus(log_sigmoid(a)), "−", halves, "−", other
            ), "Raises chosen; both stay near the reference."
        case "bco":
            tree = maths(
                minus(log_sigmoid(a, "−", "δ")), "−", log_sigmoid("−", "(", b, "−", "δ", ")")
            )
            return tree, "Each side against the mean of all sides."
        case "sppo":
            tree = maths(squared(A, "−", half), "+", squared(B, "+", half))
            return tree, "Both sides are drawn to fixed sizes."
        case "apo":
            return maths(1, "−", sigmoid(a), "+", sigmoid(b)), "Chosen up and rejected down."
        case _:
            rank = maths(
                settings.beta, "·", "(", Index(A, Symbol("k")), "−", Index(B, Symbol("k")), ")"
            )
            back = maths("−", rank)
            return (
                _smoothed(rank, back, settings.label_smoothing),
                "Sides are sorted over the batch; the k-th chosen meets the k-th rejected.",
            )


def _smoothed(lead: Maths, back: Maths, share_wrong: float) -> Maths:
    """−log σ(lead); with smoothing a share of it the other way round."""
    if not share_wrong:
        return minus(log_sigmoid(lead))
    return maths(minus(1 - share_wrong, log_sigmoid(lead)), "−", share_wrong, log_sigmoid(back))


def _whole(settings: ResolvedPreference) -> Iterator[Formula]:
    tree: Maths = Call("mean", (S,))
    note, fields = "Mean over the pairs of the optimizer step.", []
    if settings.sft:
        imitation = maths(settings.sft, "·", minus(share(1, "L"), total("t", "log", PI)))
        tree = Call("mean", (maths(imitation, "+", 1 - settings.sft, "·", S),))
        note = "With a share of imitation of the chosen side. Mean over pairs."
        fields.append("sft")
    if settings.weight != 1.0:
        tree = maths(settings.weight, "·", tree)
        fields.append("weight")
    yield Formula(name="Loss", tree=equals("L", tree), note=note, settings=tuple(fields))
