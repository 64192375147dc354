"""Losses of own rollouts with rewards: what `recipes.policy` computes."""

from __future__ import annotations

from collections.abc import Iterator

from coloop.explain.formulas.advantages import advantage_formulas
from coloop.explain.formulas.formula import (
    ADVANTAGE,
    OLD,
    PI,
    RATIO,
    REFERENCE,
    Formula,
    at,
    bracket,
    equals,
    minus,
    share,
    sigmoid,
    times,
    total,
)
from coloop.explain.maths import Big, Call, Cases, Fraction, Index, Maths, Symbol, Words, maths
from coloop.spec.algorithm import ResolvedKl, ResolvedRewards

LOSS = at("ℓ", "t")
SEQUENCE = Symbol("s")
_RATIO_LOSSES = ("clipped", "cispo", "sapo", "kl_cov", "clip_cov")


def formulas(settings: ResolvedRewards) -> list[Formula]:
    """All of it, in the order in which it is computed."""
    return [
        *advantage_formulas(settings),
        *_ratio(settings),
        _loss(settings),
        *_correction(settings),
        *_kl(settings),
        *_of_others(settings),
        _aggregated(settings),
    ]


def _ratio(settings: ResolvedRewards) -> Iterator[Formula]:
    if settings.loss in _RATIO_LOSSES:
        yield Formula(
            name="Ratio",
            tree=equals(RATIO, share(PI, OLD)),
            note="New policy against the one that wrote the token.",
        )
    if settings.loss == "sequence_clipped":
        logs = total("t", "log", share(PI, OLD))
        inner = maths(share(1, "L"), logs) if settings.reduce == "mean" else logs
        yield Formula(
            name="Ratio of the text",
            tree=equals(SEQUENCE, Call("exp", (inner,))),
            note="One ratio for all tokens of a text.",
            settings=("loss", "reduce"),
        )
    if settings.loss == "gmpo":
        kept = Call("clip", (maths("log", share(PI, OLD)), *_bounds_of_logs(settings)))
        yield Formula(
            name="Ratio of the text",
            tree=equals(SEQUENCE, Call("exp", (maths(share(1, "L"), total("t", kept)),))),
            note="A log ratio is clipped only in the direction of the advantage.",
            settings=("loss", "clip_low", "clip_high"),
        )


def _bounds_of_logs(settings: ResolvedRewards) -> tuple[Maths, Maths]:
    low, high = settings.clip_low, settings.clip_high
    lowest = maths("−", "∞") if low is None else maths("−", low)
    return lowest, maths("∞") if high is None else maths(high)


def _clip(ratio: Maths, settings: ResolvedRewards) -> Maths | None:
    """The ratio within its band; None where both sides are open."""
    low, high = settings.clip_low, settings.clip_high
    if low is None and high is None:
        return None
    lowest = maths(0) if low is None else maths(1, "−", low)
    highest = maths("∞") if high is None else maths(1, "+", high)
    return Call("clip", (ratio, lowest, highest))


def _loss(settings: ResolvedRewards) -> Formula:
    tree, note, fields = _LOSSES[settings.loss](settings)
    return Formula(
        name="Loss of a token",
        tree=equals(LOSS, tree),
        note=note,
        settings=("loss", *fields),
    )


_Loss = tuple[Maths, str, tuple[str, ...]]


def _clipped(settings: ResolvedRewards, ratio: Maths = RATIO) -> _Loss:
    clipped = _clip(ratio, settings)
    plain = maths(ratio, ADVANTAGE)
    fields: tuple[str, ...] = ("clip_low", "clip_high")
    if clipped is None:
        return minus(plain), "No clip: the ratio is unbounded.", fields
    tree = minus(Call("min", (plain, maths(clipped, ADVANTAGE))))
    note = "Beyond the band a token has no gradient."
    if settings.dual_clip is not None and settings.loss == "clipped":
        capped = Call("min", (tree, maths("−", times(settings.dual_clip, ADVANTAGE))))
        tree = Cases(((tree, "where A > 0"), (capped, "where A < 0")))
        note += " Dual clip bounds it below where the advantage is negative."
        fields += ("dual_clip",)
    return tree, note, fields


def _plain(settings: ResolvedRewards) -> _Loss:
    del settings
    return minus(ADVANTAGE, "log", PI), "No ratio and no clip.", ()


def _sequence(settings: ResolvedRewards) -> _Loss:
    tree, _, fields = _clipped(settings, SEQUENCE)
    return (
        tree,
        ("The ratio of the whole text is clipped, so all of its tokens are trained or none."),
        fields,
    )


def _cispo(settings: ResolvedRewards) -> _Loss:
    low, high = settings.ratio_min, settings.ratio_max
    lowest = maths(0) if low is None else maths(low)
    highest = maths("∞") if high is None else maths(high)
    kept = Call("sg", (Call("clip", (RATIO, lowest, highest)),))
    note = "The weight is clipped and has no gradient (sg); every token keeps a gradient."
    return minus(kept, ADVANTAGE, "log", PI), note, ("ratio_min", "ratio_max")


def _sapo(settings: ResolvedRewards) -> _Loss:
    gate = maths(share(4, "τ"), sigmoid("τ", bracket(RATIO, "−", 1)))
    tree = maths(minus(ADVANTAGE, gate), Words(","), _taus(settings))
    note = "A soft gate in the place of a clip; its width depends on the sign of the advantage."
    return tree, note, ("tau_positive", "tau_negative")


def _taus(settings: ResolvedRewards) -> Maths:
    up, down = maths(settings.tau_positive), maths(settings.tau_negative)
    return equals("τ", Cases(((up, "where A > 0"), (down, "else"))))


def _gmpo(settings: ResolvedRewards) -> _Loss:
    del settings
    return minus(Call("mean", (Symbol("A"),)), SEQUENCE), "The same for all tokens of a text.", ()


def _clip_cov(settings: ResolvedRewards) -> _Loss:
    tree, _, fields = _clipped(settings)
    part = f"{settings.covariance_share:.3%}"
    note = (
        f"{part} of the tokens, drawn from those that would cost the most entropy (covariance of "
        "advantage and log-prob between 1 and 5), have loss 0."
    )
    return tree, note, (*fields, "covariance_share")


def _kl_cov(settings: ResolvedRewards) -> _Loss:
    held = maths("|", "log", RATIO, "|")
    plain = minus(RATIO, ADVANTAGE)
    tree = Cases(((maths(plain, "+", held), "for the chosen tokens"), (plain, "else")))
    note = f"The {settings.covariance_share:.3%} with the greatest covariance get a KL penalty."
    return tree, note, ("covariance_share",)


_LOSSES = {
    "clipped": _clipped,
    "policy_gradient": _plain,
    "sequence_clipped": _sequence,
    "cispo": _cispo,
    "sapo": _sapo,
    "gmpo": _gmpo,
    "clip_cov": _clip_cov,
    "kl_cov": _kl_cov,
}


def _correction(settings: ResolvedRewards) -> Iterator[Formula]:
    """Weights where engine and trainer disagree."""
    method = settings.correction.method
    if method == "none":
        return
    low, high = settings.correction.min, settings.correction.max
    lowest = maths(0) if low is None else maths(low)
    highest = maths("∞") if high is None else maths(high)
    trained = PI if settings.loss == "policy_gradient" else OLD
    ratio: Maths = Fraction(trained, at("π", "t", Symbol("engine")))
    if method == "sequence_mask":
        ratio = Big("∏", Symbol("t"), ratio)
    band = maths("[", lowest, ",", highest, "]")
    tree: Maths
    if method == "token_tis":
        tree = equals(at("w", "t"), Call("clip", (ratio, lowest, highest)))
        note = (
            "A token whose probability differs between engine and trainer is weighted by the "
            "bounded ratio of the two."
        )
    else:
        inside = maths(at("w", "t"), Words("within"), band)
        tree = maths(equals(at("w", "t"), ratio), Words("where"), inside, Words("else"), 0)
        whose = "A text" if method == "sequence_mask" else "A token"
        note = f"{whose} on which engine and trainer disagree too much is masked."
    yield Formula(
        name="Correction",
        tree=tree,
        note=note,
        settings=("correction.method", "correction.min", "correction.max"),
    )


def _kl(settings: ResolvedRewards) -> Iterator[Formula]:
    kl = settings.kl
    if kl is None:
        return
    yield Formula(
        name="KL of a token",
        tree=maths(
            equals(at("k", "t"), _estimator(kl)),
            Words("with"),
            equals("x", "log", share(PI, REFERENCE)),
        ),
        note=_kl_note(kl),
        settings=("kl.estimator",),
    )
    strength: Maths = equals("β", kl.coefficient)
    note = "How strongly the policy is kept near its reference."
    fields: tuple[str, ...] = ("kl.coefficient",)
    if kl.target is not None:
        change = Call("clip", (maths(share("KL", kl.target), "−", 1), maths("−", 0.2), maths(0.2)))
        factor = bracket(1, "+", change, "·", share("rows", kl.horizon))
        strength = maths(
            equals("β", kl.coefficient), Words("at first, then"), "β", "←", "β", factor
        )
        note = "It rises and falls so that the KL stays at its target."
        fields += ("kl.target", "kl.horizon")
    yield Formula(name="Strength of the KL", tree=strength, note=note, settings=fields)


def _estimator(kl: ResolvedKl) -> Maths:
    x = Symbol("x")
    return {
        "k1": x,
        "k2": share(Index(x, above=maths(2)), 2),
        "k3": maths(Index(Symbol("e"), above=maths("−", x)), "+", x, "−", 1),
    }[kl.estimator]


def _kl_note(kl: ResolvedKl) -> str:
    if kl.into == "reward":
        return f"The estimator {kl.estimator}, taken from the reward."
    gradient = {
        "k1": "As a loss it has no effect: its gradient has mean 0.",
        "k2": "Its gradient is that of KL(policy‖reference).",
        "k3": "Its gradient is that of KL(reference‖policy).",
    }[kl.estimator]
    return f"The estimator {kl.estimator}, added to the loss. {gradient}"


def _of_others(settings: ResolvedRewards) -> Iterator[Formula]:
    if settings.off_policy is None:
        return
    c = settings.off_policy.shaping
    yield Formula(
        name="Rows of others",
        tree=equals(LOSS, minus(ADVANTAGE, share(PI, maths(PI, "+", c)))),
        note="Given texts: no ratio, no clip.",
        settings=("off_policy.shaping",),
    )


def _aggregated(settings: ResolvedRewards) -> Formula:
    """One number for the optimizer, with what KL and entropy add."""
    inner: list[Maths] = []
    if settings.correction.method == "none":
        inner.append(LOSS)
    else:
        inner.append(maths(at("w", "t"), LOSS))
    fields = ["aggregation"]
    kl = settings.kl
    if kl is not None and kl.into == "loss":
        ratio = SEQUENCE if settings.loss == "sequence_clipped" else RATIO
        pull = maths("β", ratio, at("k", "t")) if kl.by_ratio else maths("β", at("k", "t"))
        inner += [maths("+"), pull]
        fields += ["kl.into", "kl.by_ratio"]
    if settings.entropy:
        inner += [maths("−"), maths(settings.entropy, at("H", "t"))]
        fields.append("entropy")
    body = maths(*inner) if len(inner) == 1 else bracket(*inner)
    tree, note = _mean(settings, body)
    if settings.aggregation == "constant":
        fields.append("divisor")
    if settings.weight != 1.0:
        tree, fields = maths(settings.weight, "·", tree), [*fields, "weight"]
    if settings.entropy:
        note += " H is the entropy of the next token; subtracting it keeps the entropy high."
    return Formula(name="Loss", tree=equals("L", tree), note=note, settings=tuple(fields))


def _mean(settings: ResolvedRewards, body: Maths) -> tuple[Maths, str]:
    over = maths(total("i", total("t", body)))
    rows = Symbol("rows")
    match settings.aggregation:
        case "token_mean":
            return (
                maths(share(1, Words("all tokens")), over),
                "Mean over all trained tokens of the optimizer step: long texts count more.",
            )
        case "sequence_mean":
            each = total("i", share(1, at("L", "i")), total("t", body))
            return (
                maths(share(1, rows), each),
                "Mean over texts of the mean over their tokens: each text has the same weight.",
            )
        case "sequence_sum":
            return maths(share(1, rows), over), "Mean over texts of the sum over their tokens."
        case _:
            constant: Maths = Symbol("C") if settings.divisor is None else maths(settings.divisor)
            return (
                maths(share(1, maths(rows, "·", constant)), over),
                "Sum over tokens divided by a constant, so that no length is favoured.",
            )
