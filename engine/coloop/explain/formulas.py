"""The formulas of an algorithm, with its settings.

Built from the resolved settings that the recipes use (`recipes.credit`, `recipes.policy`,
`recipes.preference`, `recipes.distillation`): terms that are off are left out, and numbers are the
actual ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from coloop.explain.maths import (
    Formula,
    call,
    cases,
    fraction,
    from_python,
    log_sigmoid,
    number,
    word,
)
from coloop.spec.algorithm import (
    Algorithm,
    BradleyTerry,
    Correction,
    ImplicitPrm,
    LabelCrossEntropy,
    Outcome,
    Regression,
    ResolvedDistillation,
    ResolvedKl,
    ResolvedPreference,
    ResolvedRewards,
    Sft,
    ValueLoss,
)
from coloop.spec.algorithms.registry import ADVANTAGES

PI, OLD, REFERENCE = r"\pi_t", r"\pi_t^{\text{old}}", r"\pi_t^{\text{ref}}"
ENGINE = r"\pi_t^{\text{engine}}"
RATIO = r"\rho_t"
INFINITY = r"\infty"
_DEVIATIONS = {
    "unbiased": ("group", "The deviation is that of the rewards of one group, divided by n − 1."),
    "population": ("group", "The deviation is that of the rewards of one group, divided by n."),
    "leave_one_out": ("others", "The deviation is that of the others in the group."),
    "batch": ("batch", "The deviation is that of all rewards of the step."),
}


def reward_formulas(settings: ResolvedRewards) -> list[Formula]:
    """Formulas of an algorithm of port `rewards`, from the reward of a text to the loss of a
    step."""
    return [
        *_rewards(settings),
        *_advantages(settings),
        *_ratio(settings),
        _loss(settings),
        *_correction(settings),
        *_kl(settings),
        *_off_policy(settings),
        _aggregated(settings),
    ]


def _rewards(settings: ResolvedRewards) -> Iterator[Formula]:
    if settings.reward_clip is not None:
        limit = number(settings.reward_clip)
        clipped = call("clip", "r_i", f"-{limit}", limit)
        yield Formula("Reward, clipped", rf"r_i \leftarrow {clipped}", "", ("reward_clip",))
    if settings.kl is None or settings.kl.into != "reward":
        return
    if settings.needs_group and not settings.penalizes_after_baseline:
        latex = r"r_i \leftarrow r_i - \sum_t \beta k_t"
        where = "of a text, before texts are compared"
    else:
        latex, where = r"r_t \leftarrow r_t - \beta k_t", "of each token"
    note = f"The KL penalty is subtracted from the reward {where}."
    yield Formula("KL in the reward", latex, note, ("kl.into", "kl.coefficient"))


def _advantages(settings: ResolvedRewards) -> Iterator[Formula]:
    discount = "" if settings.gamma == 1.0 else f"{number(settings.gamma)}^{{u - t}} "
    rest = rf"\sum_{{u \ge t}} {discount}r_u"
    if settings.needs_values:
        yield from _gae(settings)
    elif settings.needs_group:
        yield _compared(settings)
    elif settings.needs_baseline:
        yield from _moving(settings)
    elif settings.needs_greedy:
        note = "Compared with the greedy answer to the same prompt."
        yield Formula("Advantage", rf"A_t = {rest} - r_{{\text{{greedy}}}}", note, ("advantage",))
    else:
        note = "The return from this token on."
        yield Formula("Advantage", f"A_t = {rest}", note, ("advantage", "gamma"))
    yield from _over_batch(settings)
    if settings.whiten:
        spread = rf"\sqrt{{{call('var', 'A')} + {number(1e-8)}}}"
        centred = f"A_t - {call('mean', 'A')}"
        latex = rf"A_t \leftarrow {fraction(centred, spread)}"
        divisor = "n − 1" if settings.whiten_deviation == "unbiased" else "n"
        note = f"Mean 0 and deviation 1 over all trained tokens of the step (divided by {divisor})."
        yield Formula("Whitening", latex, note, ("whiten", "whiten_deviation"))


def _moving(settings: ResolvedRewards) -> Iterator[Formula]:
    fields = ("advantage", "baseline_decay")
    note = f"{ADVANTAGES[settings.advantage].note} The same for all tokens of a text."
    yield Formula("Advantage", "A_t = r_i - b", note, ("advantage",))
    decay = number(settings.baseline_decay)
    rest = number(1 - settings.baseline_decay)
    note = "After each text; it starts at 0 and is kept in checkpoints."
    yield Formula("Baseline", rf"b \leftarrow {decay} \cdot b + {rest} \cdot r_i", note, fields)


def _over_batch(settings: ResolvedRewards) -> Iterator[Formula]:
    """What becomes of the advantages of several rewards."""
    if settings.combine == "sum_then_normalize":
        return
    note = "Each reward k is compared within its group before they are summed."
    yield Formula("Several rewards", r"A_t \leftarrow \sum_k w_k A_t^k", note)
    if settings.combine == "normalize_then_sum":
        spread = f"{call('std', 'A')} + {number(settings.epsilon)}"
        latex = rf"A_t \leftarrow {fraction('A_t - ' + call('mean', 'A'), spread)}"
        note = "Mean 0 and deviation 1 over the texts of the step."
        yield Formula("Over the batch", latex, note, ("epsilon",))


def _compared(settings: ResolvedRewards) -> Formula:
    record = ADVANTAGES[settings.advantage]
    latex = from_python(record.formula) if record.formula else word(record.name)
    note = record.note
    fields: tuple[str, ...] = ("advantage",)
    if settings.deviation in _DEVIATIONS:
        whose, words = _DEVIATIONS[settings.deviation]
        latex = fraction(latex, f"{call('std', word(whose))} + {number(settings.epsilon)}")
        note = f"{note} {words}".lstrip()
        fields += ("deviation", "epsilon")
    if settings.gamma != 1.0:
        latex = rf"{number(settings.gamma)}^{{L - t}} \cdot ({latex})"
        fields += ("gamma",)
    note = f"{note} The same for all tokens of a text.".lstrip()
    return Formula("Advantage", f"A_t = {latex}", note, fields)


def _gae(settings: ResolvedRewards) -> Iterator[Formula]:
    gamma = "" if settings.gamma == 1.0 else rf"{number(settings.gamma)} \cdot "
    yield Formula(
        "Surprise",
        rf"\delta_t = r_t + {gamma}V_{{t+1}} - V_t",
        "The reward compared with the critic's estimate.",
        ("gamma",),
    )
    fields: tuple[str, ...] = ("advantage", "gamma")
    decay = settings.gamma * settings.gae_lambda
    factor = "" if decay == 1.0 else rf"{number(decay)} \cdot "
    if settings.length_alpha is not None:
        adaptive = fraction("1", rf"{number(settings.length_alpha)} \cdot L")
        note = "Longer texts look further ahead."
        yield Formula("Lambda", rf"\lambda = 1 - {adaptive}", note, ("length_alpha",))
        factor = rf"{gamma}\lambda \cdot "
    else:
        fields += ("gae_lambda",)
    discounted = ", those further away with less weight" if factor else ""
    note = f"The surprises of all later tokens{discounted}."
    yield Formula("Advantage", rf"A_t = \delta_t + {factor}A_{{t+1}}", note, fields)


def _ratio(settings: ResolvedRewards) -> Iterator[Formula]:
    old, fields = (ENGINE, ("old_policy",)) if settings.old_policy == "engine" else (OLD, ())
    log_ratio = rf"\log {fraction(PI, old)}"
    by_token = ("clipped", "cispo", "sapo", "kl_cov", "clip_cov", "dppo", "vespo")
    if settings.loss in by_token or settings.ratio_penalty:
        note = "New policy against the one that wrote the token."
        if settings.old_policy == "engine":
            note += " The old probabilities are the engine's own."
        yield Formula("Ratio", f"{RATIO} = {fraction(PI, old)}", note, fields)
    if settings.loss == "dppo":
        yield _divergence(settings, old)
    if settings.loss == "vespo":
        yield from _gamma(settings)
    if settings.loss == "sequence_clipped":
        mean = r"\frac{1}{L} " if settings.reduce == "mean" else ""
        latex = "s = " + call("exp", rf"{mean}\sum_t {log_ratio}")
        note = "One ratio for all tokens of a text."
        yield Formula("Ratio of the text", latex, note, ("loss", "reduce", *fields))
    if settings.loss == "gmpo":
        low, high = settings.clip_low, settings.clip_high
        kept = call("clip", log_ratio, f"-{_bound(low, INFINITY)}", _bound(high, INFINITY))
        note = "A log ratio is clipped only in the direction of the advantage."
        latex = "s = " + call("exp", rf"\frac{{1}}{{L}} \sum_t {kept}")
        yield Formula("Ratio of the text", latex, note, ("loss", "clip_low", "clip_high"))


def _divergence(settings: ResolvedRewards, old: str) -> Formula:
    if settings.divergence == "tv":
        latex, note = f"|{PI} - {old}|", "Total variation, where only this token counts."
    else:
        rest = rf"(1 - {old}) \log {fraction(f'1 - {old}', f'1 - {PI}')}"
        latex = rf"{old} \log {fraction(old, PI)} + {rest}"
        note = "KL between two outcomes: this token, or any other."
    return Formula("Distance", f"D_t = {latex}", note, ("divergence",))


def _gamma(settings: ResolvedRewards) -> Iterator[Formula]:
    corrected = settings.correction.method != "none"
    product = rf"\prod_t {'w_t ' if corrected else ''}{RATIO}"
    note = "Of the whole text" + (", with the weights of its tokens." if corrected else ".")
    yield Formula("Ratio of the text", f"W = {product}", note, ("loss",))
    power = cases(
        (number(settings.k_positive), "where A ≥ 0"), (number(settings.k_negative), "else")
    )
    decay = cases(
        (number(settings.lambda_positive), "where A ≥ 0"),
        (number(settings.lambda_negative), "else"),
    )
    yield Formula("Power", f"k = {power}", "", ("k_positive", "k_negative"))
    yield Formula("Decay", rf"\lambda = {decay}", "", ("lambda_positive", "lambda_negative"))


def _bound(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else number(value)


def _loss(settings: ResolvedRewards) -> Formula:
    """The loss of one token, or with a sequence ratio of one text."""
    fields: tuple[str, ...] = ()
    match settings.loss:
        case "policy_gradient":
            latex, note = rf"-A_t \log {PI}", "No ratio and no clip."
        case "sequence_clipped":
            latex, _, fields = _clipped(settings, "s")
            note = (
                "The ratio of the whole text is clipped, so all of its tokens are trained or none."
            )
        case "cispo":
            low, high = _bound(settings.ratio_min, "0"), _bound(settings.ratio_max, INFINITY)
            kept = call("sg", call("clip", RATIO, low, high))
            latex = rf"-{kept} A_t \log {PI}"
            note = "The weight is clipped and has no gradient (sg); every token keeps a gradient."
            fields = ("ratio_min", "ratio_max")
        case "sapo":
            up, down = number(settings.tau_positive), number(settings.tau_negative)
            tau = cases((up, "where A > 0"), (down, "else"))
            latex = rf"-A_t \frac{{4}}{{\tau}} \sigma(\tau ({RATIO} - 1)), \tau = {tau}"
            note = "A soft gate instead of a clip; its width depends on the sign of the advantage."
            fields = ("tau_positive", "tau_negative")
        case "gmpo":
            latex, note = f"-{call('mean', 'A')} s", "The same for all tokens of a text."
        case "dppo":
            latex, note, fields = _in_trust_region(settings)
        case "vespo":
            latex = r"-\operatorname{sg}(W^k e^{\lambda (1 - W)}) " + rf"A_t \log {PI}"
            note = "A smooth weight of the whole text instead of a clip; it has no gradient (sg)."
        case "kl_cov":
            plain = f"-{RATIO} A_t"
            held = rf"{plain} + |\log {RATIO}|"
            latex = cases((held, "for the chosen tokens"), (plain, "else"))
            note = (
                f"The {settings.covariance_share:.3%} with the greatest covariance "
                "get a KL penalty."
            )
            fields = ("covariance_share",)
        case "clip_cov":
            latex, _, fields = _clipped(settings, RATIO)
            note = (
                f"{settings.covariance_share:.3%} of the tokens, drawn from those that would cost "
                "the most entropy (covariance of advantage and log-prob between 1 and 5), have "
                "loss 0."
            )
            fields += ("covariance_share",)
        case _:
            latex, note, fields = _clipped(settings, RATIO)
            if settings.dual_clip is not None and fields:
                times = "" if settings.dual_clip == 1 else rf"{number(settings.dual_clip)} \cdot "
                capped = call("min", latex, f"-{times}A_t")
                latex = cases((latex, "where A > 0"), (capped, "where A < 0"))
                note += " Dual clip bounds it below where the advantage is negative."
                fields += ("dual_clip",)
    return Formula("Loss of a token", rf"\ell_t = {latex}", note, ("loss", *fields))


def _in_trust_region(settings: ResolvedRewards) -> tuple[str, str, tuple[str, ...]]:
    weight = RATIO if settings.ratio_max is None else call("min", RATIO, number(settings.ratio_max))
    low, high = settings.divergence_low, settings.divergence_high
    taught = rf"-{call('sg', weight)} A_t \log {PI}"
    latex = cases(
        ("0", f"where A > 0, ρ > 1 and D > {high:g}"),
        ("0", f"where A < 0, ρ < 1 and D > {low:g}"),
        (taught, "else"),
    )
    note = "A token that has moved too far already is not pushed further in the same direction."
    return latex, note, ("divergence_low", "divergence_high", "ratio_max")


def _clipped(settings: ResolvedRewards, ratio: str) -> tuple[str, str, tuple[str, ...]]:
    low, high = settings.clip_low, settings.clip_high
    fields = ("clip_low", "clip_high")
    if low is None and high is None:
        return f"-{ratio} A_t", "No clip: the ratio is unbounded.", fields
    lowest = "0" if low is None else f"1 - {number(low)}"
    highest = INFINITY if high is None else f"1 + {number(high)}"
    clipped = call("clip", ratio, lowest, highest)
    latex = "-" + call("min", f"{ratio} A_t", f"{clipped} A_t")
    return latex, "Beyond the band a token has no gradient.", fields


def _correction(settings: ResolvedRewards) -> Iterator[Formula]:
    trained = PI if settings.loss == "policy_gradient" else OLD
    yield from _correction_of(settings.correction, trained)


def _correction_of(correction: Correction, trained: str) -> Iterator[Formula]:
    method = correction.method
    if method == "none":
        return
    low, high = _bound(correction.min, "0"), _bound(correction.max, INFINITY)
    ratio = fraction(trained, r"\pi_t^{\text{engine}}")
    if method == "token_tis":
        latex = f"w_t = {call('clip', ratio, low, high)}"
        note = (
            "A token whose probability differs between engine and trainer is weighted by the "
            "bounded ratio of the two."
        )
    else:
        product, whose = (r"\prod_t ", "A text") if method == "sequence_mask" else ("", "A token")
        band = rf"\text{{ where }} w_t \text{{ within }} [{low}, {high}] \text{{ else }} 0"
        latex = f"w_t = {product}{ratio} {band}"
        note = f"{whose} on which engine and trainer disagree too much is masked."
    fields = ("correction.method", "correction.min", "correction.max")
    yield Formula("Correction", latex, note, fields)


def _kl(settings: ResolvedRewards) -> Iterator[Formula]:
    kl = settings.kl
    if kl is None:
        return
    estimator = {"k1": "x", "k2": r"\frac{x^2}{2}", "k3": "e^{-x} + x - 1"}[kl.estimator]
    latex = rf"k_t = {estimator} \text{{ with }} x = \log {fraction(PI, REFERENCE)}"
    yield Formula("KL of a token", latex, _kl_note(kl), ("kl.estimator",))
    latex = rf"\beta = {number(kl.coefficient)}"
    note = "How strongly the policy is kept near its reference."
    fields: tuple[str, ...] = ("kl.coefficient",)
    if kl.target is not None:
        error = f"{fraction(word('KL'), number(kl.target))} - 1"
        change = rf"{call('clip', error, '-0.2', '0.2')} \cdot "
        share = fraction(word("rows"), number(kl.horizon))
        latex += rf" \text{{ at first, then }} \beta \leftarrow \beta (1 + {change}{share})"
        note = "It rises and falls so that the KL stays at its target."
        fields += ("kl.target", "kl.horizon")
    yield Formula("Strength of the KL", latex, note, fields)


def _kl_note(kl: ResolvedKl) -> str:
    if kl.into == "reward":
        return f"The estimator {kl.estimator}, taken from the reward."
    gradient = {
        "k1": "As a loss it has no effect: its gradient has mean 0.",
        "k2": "Its gradient is that of KL(policy‖reference).",
        "k3": "Its gradient is that of KL(reference‖policy).",
    }[kl.estimator]
    return f"The estimator {kl.estimator}, added to the loss. {gradient}"


def _off_policy(settings: ResolvedRewards) -> Iterator[Formula]:
    if settings.off_policy is not None:
        shaped = fraction(PI, f"{PI} + {number(settings.off_policy.shaping)}")
        note = "Given texts: no ratio, no clip."
        yield Formula("Rows of others", rf"\ell_t = -A_t {shaped}", note, ("off_policy.shaping",))


def _aggregated(settings: ResolvedRewards) -> Formula:
    """The loss of an optimizer step, with what KL and entropy add."""
    is_inside = settings.correction.method == "none" or settings.loss == "vespo"
    inner = r"\ell_t" if is_inside else r"w_t \ell_t"
    fields: tuple[str, ...] = ("aggregation",)
    is_sum = False
    kl = settings.kl
    if kl is not None and kl.into == "loss":
        ratio = "s" if settings.loss == "sequence_clipped" else RATIO
        inner += rf" + \beta {ratio if kl.by_ratio else ''} k_t"
        fields += ("kl.into", "kl.by_ratio")
        is_sum = True
    if settings.ratio_penalty:
        inner += rf" + {number(settings.ratio_penalty)} (\log {RATIO})^2"
        fields += ("ratio_penalty",)
        is_sum = True
    if settings.entropy:
        inner += f" - {number(settings.entropy)} H_t"
        fields += ("entropy",)
        is_sum = True
    latex, note = _mean(settings, f"({inner})" if is_sum else inner)
    if settings.aggregation == "constant":
        fields += ("divisor",)
    if settings.weight != 1.0:
        latex, fields = rf"{number(settings.weight)} \cdot {latex}", (*fields, "weight")
    if settings.entropy:
        note += " H is the entropy of the next token; subtracting it keeps the entropy high."
    return Formula("Loss", f"L = {latex}", note, fields)


def _mean(settings: ResolvedRewards, body: str) -> tuple[str, str]:
    rows, total = word("rows"), rf"\sum_i \sum_t {body}"
    match settings.aggregation:
        case "token_mean":
            return (
                f"{fraction('1', word('all tokens'))} {total}",
                "Mean over all trained tokens of the optimizer step: long texts count more.",
            )
        case "sequence_mean":
            return (
                rf"{fraction('1', rows)} \sum_i \frac{{1}}{{L_i}} \sum_t {body}",
                "Mean over texts of the mean over their tokens: each text has the same weight.",
            )
        case "sequence_sum":
            note = "Mean over texts of the sum over their tokens."
            return f"{fraction('1', rows)} {total}", note
        case _:
            divisor = rf"{rows} \cdot {_bound(settings.divisor, 'C')}"
            note = "Sum over tokens divided by a constant, so that no length is favoured."
            return f"{fraction('1', divisor)} {total}", note


# Losses of preference pairs, scorers, judges, critics and imitation.

MEAN_LOG_PROB = r"\frac{1}{L} \sum_t \log \pi_t"
_BY_SIDE = ("kto", "nca", "bco", "sppo", "apo", "aot")
"""Losses that treat each side separately."""


def pair_formulas(settings: ResolvedPreference) -> list[Formula]:
    """Formulas of a preference loss, from the log-probs of a side to an optimizer step."""
    latex, note = _pair(settings)
    fields = ["loss", "beta"]
    if settings.label_smoothing:
        fields.append("label_smoothing")
    if settings.loss == "simpo":
        fields.append("gamma")
    return [
        _side(settings),
        *_before_pair(settings),
        Formula("Loss of a pair", rf"\ell = {latex}", note, tuple(fields)),
        _mean_of_pairs(settings),
    ]


def _side(settings: ResolvedPreference) -> Formula:
    has_reference, is_sum = settings.needs_reference, settings.reduce == "sum"
    of = r"\frac{\pi_t}{\pi_t^{\text{ref}}}" if has_reference else r"\pi_t"
    mean = "" if is_sum else r"\frac{1}{L} "
    against = "against the reference" if has_reference else "by itself, no reference"
    how = "summed over its tokens" if is_sum else "mean over its tokens"
    note = f"How likely a side is, {against}, {how}: a of the chosen side, b of the rejected one."
    return Formula("A side", rf"a = {mean}\sum_t \log {of}", note, ("reduce",))


def _before_pair(settings: ResolvedPreference) -> Iterator[Formula]:
    if settings.loss not in (*_BY_SIDE, "orpo"):
        yield Formula("Lead", "z = a - b", "Of chosen over rejected.")
    if settings.loss == "kto":
        note = "Over answers paired with the prompts of other pairs: how far the policy has moved."
        yield Formula("Divergence", f"z_0 = {call('max', '0', call('mean', 'a'))}", note)
    if settings.loss == "bco":
        beta = number(settings.beta)
        mean = call("mean", f"{beta} a", f"{beta} b")
        yield Formula("Shift", rf"\delta = {mean}", "Over all sides of the batch.")


def _pair(settings: ResolvedPreference) -> tuple[str, str]:
    beta, smooth = number(settings.beta), settings.label_smoothing
    lead, back = rf"{beta} \cdot z", rf"-{beta} \cdot z"
    a, b, half = rf"{beta} \cdot a", rf"{beta} \cdot b", fraction("1", rf"2 \cdot {beta}")
    match settings.loss:
        case "sigmoid":
            note = "Chosen should lead; the larger the lead, the smaller the gradient."
            return _smoothed(lead, back, smooth), note
        case "hinge":
            return call("max", "0", f"1 - {lead}"), "No gradient beyond a lead of 1/β."
        case "ipo":
            return f"(z - {half})^2", "The lead is pulled towards a fixed size."
        case "robust":
            right = f"-{number(1 - smooth)} {log_sigmoid(lead)}"
            top = f"{right} + {number(smooth)} {log_sigmoid(back)}"
            return fraction(top, number(1 - 2 * smooth)), "Unbiased where some labels are wrong."
        case "exo":
            sides = ((lead, 1 - (smooth or 1e-3)), (back, smooth or 1e-3))
            terms = (
                rf"\sigma({side}) ({log_sigmoid(side)} - \log {number(kept)})"
                for side, kept in sides
            )
            return " + ".join(terms), "The reverse divergence from the labels."
        case "discopop":
            gate = rf"m = \sigma({fraction(lead, '0.05')})"
            mixed = rf"-(1 - m) \cdot {log_sigmoid(lead)} + m e^{{{back}}}"
            return rf"{mixed} \text{{ with }} {gate}", "Between logistic and exponential."
        case "simpo":
            gamma = number(settings.gamma)
            latex = _smoothed(f"{lead} - {gamma}", f"{gamma} - {lead}", smooth)
            return latex, "Chosen should lead by a margin."
        case "orpo":
            odds = r"\log \operatorname{odds}(a) - \log \operatorname{odds}(b)"
            note = "Imitation of the chosen side, and better odds than the rejected one."
            return rf"-{MEAN_LOG_PROB} - {beta} {log_sigmoid(odds)}", note
        case "kto":
            good, bad = rf"\sigma({beta} (a - z_0))", rf"\sigma({beta} (z_0 - b))"
            latex = f"{fraction(f'1 - {good}', '2')} + {fraction(f'1 - {bad}', '2')}"
            return latex, "Each side for itself: desirable up, undesirable down."
        case "nca":
            held = rf"\frac{{1}}{{2}} {log_sigmoid(f'-{a}')} - \frac{{1}}{{2}} "
            latex = f"-{log_sigmoid(a)} - {held}{log_sigmoid(f'-{b}')}"
            return latex, "Raises chosen; both stay near the reference."
        case "bco":
            up, down = log_sigmoid(rf"{a} - \delta"), log_sigmoid(rf"-({b} - \delta)")
            return f"-{up} - {down}", "Each side against the mean of all sides."
        case "sppo":
            return f"(a - {half})^2 + (b + {half})^2", "Both sides are drawn to fixed sizes."
        case "apo":
            return rf"1 - \sigma({a}) + \sigma({b})", "Chosen up and rejected down."
        case _:
            rank = rf"{beta} \cdot (a_k - b_k)"
            note = "Sides are sorted over the batch; the k-th chosen meets the k-th rejected."
            return _smoothed(rank, f"-{rank}", smooth), note


def _smoothed(lead: str, back: str, wrong: float) -> str:
    """−log σ(lead); with label smoothing, a share `wrong` of −log σ(back)."""
    if not wrong:
        return f"-{log_sigmoid(lead)}"
    return f"-{number(1 - wrong)} {log_sigmoid(lead)} - {number(wrong)} {log_sigmoid(back)}"


def _mean_of_pairs(settings: ResolvedPreference) -> Formula:
    latex, note = call("mean", r"\ell"), "Mean over the pairs of the optimizer step."
    fields: tuple[str, ...] = ()
    if settings.sft:
        rest = rf"{number(1 - settings.sft)} \cdot \ell"
        latex = call("mean", rf"-{number(settings.sft)} \cdot {MEAN_LOG_PROB} + {rest}")
        note = "With a share of imitation of the chosen side. Mean over pairs."
        fields = ("sft",)
    return _weighted(latex, settings.weight, note, fields)


TEACHER = r"q_t"


def distillation_formulas(settings: ResolvedDistillation) -> list[Formula]:
    """Formulas of a distillation, from what a teacher says to an optimizer step."""
    mean = call("mean", r"\ell_t")
    note = "Mean over all trained tokens of the optimizer step. Of several teachers, "
    note += "the losses are summed by their weights."
    return [*_distilled(settings), _weighted(mean, settings.weight, note)]


def _distilled(settings: ResolvedDistillation) -> Iterator[Formula]:
    fields = ("support", "divergence", *(("clip",) if settings.clip is not None else ()))
    if settings.support == "sampled":
        away = rf"\log {fraction(TEACHER, PI)}"
        if settings.clip is not None:
            limit = number(settings.clip)
            away = call("clip", away, f"-{limit}", limit)
        note = "Of the sampled token: q is the teacher's probability."
        yield Formula("Advantage", f"A_t = {away}", note, fields)
        yield Formula("Ratio", rf"{RATIO} = {fraction(PI, OLD)}", "1 in the first optimizer step.")
        yield from _correction_of(settings.correction, OLD)
        weight = "" if settings.correction.method == "none" else "w_t "
        latex = rf"\ell_t = -{weight}{RATIO} \operatorname{{sg}}(A_t)"
        yield Formula("Loss of a token", latex, "Its gradient is that of the reverse KL.")
        return
    where = "w" if settings.support == "full" else rf"w \in \text{{top }} {settings.k}"
    if settings.own_temperature is not None:
        note = f"Both distributions are at the temperature {settings.own_temperature:g}."
        yield Formula("Temperature", rf"T = {number(settings.own_temperature)}", note)
    p, q, m = r"p_w", r"q_w", r"m_w"
    if settings.divergence == "jsd":
        beta, rest = number(settings.beta), number(1 - settings.beta)
        latex = f"{m} = {beta} {q} + {rest} {p}"
        yield Formula("Mixture", latex, "Between teacher q and policy p.", ("beta",))
        latex = (
            rf"{beta} \sum_{{{where}}} {q} \log {fraction(q, m)} + {rest} \sum_{{{where}}} {p} "
            rf"\log {fraction(p, m)}"
        )
    else:
        first, second = (p, q) if settings.divergence == "reverse" else (q, p)
        latex = rf"\sum_{{{where}}} {first} \log {fraction(first, second)}"
    note = "p is the policy's, q the teacher's probability of word w at this place."
    if settings.support == "top_k":
        fields, note = (*fields, "k", "tail"), f"{note} {_TAILS[settings.tail]}"
    if settings.clip is not None:
        latex = call("min", latex, number(settings.clip))
    yield Formula("Loss of a token", rf"\ell_t = {latex}", note, fields)


_TAILS = {
    "bucket": "All words that are not among the teacher's likely ones count as one more word.",
    "renormalize": "The probabilities of these words are scaled to a sum of 1.",
    "drop": "What both give to other words is left out.",
}


def _weighted(latex: str, weight: float, note: str, fields: tuple[str, ...] = ()) -> Formula:
    if weight != 1.0:
        latex, fields = rf"{number(weight)} \cdot {latex}", (*fields, "weight")
    return Formula("Loss", f"L = {latex}", note, fields)


def supervised_formulas(entry: Algorithm) -> list[Formula]:
    """Formulas of all other losses."""
    match entry:
        case BradleyTerry():
            steps = _bradley_terry(entry)
        case LabelCrossEntropy():
            steps = [_label_words(entry)]
        case Regression():
            steps = [Formula("Loss of a label", r"\ell = (s - y)^2", "Prediction against label.")]
        case Outcome():
            steps = [_outcome(entry.soft)]
        case ImplicitPrm():
            ratio = r"\frac{\pi_t}{\pi_t^{\text{prior}}}"
            latex = rf"s = {number(entry.beta)} \cdot \sum_t \log {ratio}"
            note = "Each term of the sum is the reward of its token."
            steps = [Formula("Score", latex, note, ("beta",)), _outcome(entry.soft)]
        case Sft():
            steps = [_imitation(entry)]
        case ValueLoss():
            steps = [_value(entry)]
        case _:
            raise ValueError(f"no formula of {entry.name}")
    by_token = isinstance(entry, Sft | ValueLoss)
    note = f"Mean over all {'trained tokens' if by_token else 'rows'} of the optimizer step."
    mean = call("mean", r"\ell_t" if by_token else r"\ell")
    return [*steps, _weighted(mean, entry.weight, note)]


def _bradley_terry(entry: BradleyTerry) -> list[Formula]:
    chosen, rejected = r"s_{\text{chosen}}", r"s_{\text{rejected}}"
    lead = Formula("Lead", f"z = {chosen} - {rejected}")
    if entry.margin:
        note = f"m is the pair's column `{entry.margin}`."
        lead = Formula("Lead", f"{lead.latex} - m", note, ("margin",))
    note, fields = "Chosen is to score higher than rejected.", []
    latex = _smoothed("z", "-z", entry.label_smoothing)
    if entry.soft:
        latex = f"-p {log_sigmoid('z')} - (1 - p) {log_sigmoid('-z')}"
        note += " p is the pair's probability."
        fields.append("soft")
    elif entry.label_smoothing:
        fields.append("label_smoothing")
    if entry.center:
        latex += f" + {number(entry.center)} ({chosen} + {rejected})^2"
        note += " The last term keeps scores near 0."
        fields.append("center")
    return [lead, Formula("Loss of a pair", rf"\ell = {latex}", note, tuple(fields))]


def _label_words(entry: LabelCrossEntropy) -> Formula:
    note = "Over the label words c only: the model's prediction against the correct label."
    wanted, fields = "y_c", []
    if entry.label_smoothing:
        right, wrong = number(1 - entry.label_smoothing), number(entry.label_smoothing)
        note += (
            f" The correct label has the target {1 - entry.label_smoothing:g}, the others share "
        )
        note += f"{entry.label_smoothing:g}."
        wanted = rf"({right} y_c + {wrong} \dots)"
        fields.append("label_smoothing")
    if entry.soft:
        note += " Labels are probabilities."
        fields.append("soft")
    latex = rf"\ell = -\sum_c {wanted} \log p_c"
    return Formula("Loss of a label", latex, note, tuple(fields))


def _outcome(is_soft: bool) -> Formula:
    latex = rf"\ell = -y {log_sigmoid('s')} - (1 - y) {log_sigmoid('-s')}"
    hard = "A label of 0.5 or more counts as 1, else as 0."
    note = "Labels are probabilities." if is_soft else hard
    return Formula("Loss of a label", latex, note, ("soft",))


def _imitation(entry: Sft) -> Formula:
    note = "The tokens of the target only."
    if entry.mask:
        note += f" Text inside {', '.join(f'`{tag}`' for tag in entry.mask)} is not trained."
    fields = ("mask",) if entry.mask else ()
    return Formula("Loss of a token", r"\ell_t = -\log \pi_t", note, fields)


def _value(entry: ValueLoss) -> Formula:
    latex = "(V_t - R_t)^2"
    note = "The critic's value against the return from this token on."
    fields: tuple[str, ...] = ()
    if entry.clip is not None:
        old, clip = r"V_t^{\text{old}}", number(entry.clip)
        kept = call("clip", "V_t", f"{old} - {clip}", f"{old} + {clip}")
        latex = call("max", latex, f"({kept} - R_t)^2")
        note += " A move beyond the clip has no gradient."
        fields = ("clip",)
    if entry.gae_lambda is not None:
        latex += rf" \text{{ returns with }} \lambda = {number(entry.gae_lambda)}"
        fields += ("gae_lambda",)
    return Formula("Loss of a token", rf"\ell_t = \frac{{1}}{{2}} {latex}", note, fields)
