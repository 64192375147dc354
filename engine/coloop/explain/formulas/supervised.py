"""Losses of preference pairs (`recipes.preference`), scorers, judges, critics and imitation."""

from __future__ import annotations

from collections.abc import Iterator

from coloop.explain.maths import Formula, call, fraction, log_sigmoid, number
from coloop.spec.algorithm import (
    Algorithm,
    BradleyTerry,
    ImplicitPrm,
    LabelCrossEntropy,
    Outcome,
    Regression,
    ResolvedPreference,
    Sft,
    ValueLoss,
)

MEAN_LOG_PROB = r"\frac{1}{L} \sum_t \log \pi_t"
_BY_SIDE = ("kto", "nca", "bco", "sppo", "apo", "aot")
"""Losses that look at each side alone."""


def pair_formulas(settings: ResolvedPreference) -> list[Formula]:
    """Of a preference loss, from the log-probs of a side to the loss of an optimizer step."""
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
    """−log σ(lead); with label smoothing, a part `wrong` of it the other way round."""
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


def _weighted(latex: str, weight: float, note: str, fields: tuple[str, ...] = ()) -> Formula:
    if weight != 1.0:
        latex, fields = rf"{number(weight)} \cdot {latex}", (*fields, "weight")
    return Formula("Loss", f"L = {latex}", note, fields)


def formulas(entry: Algorithm) -> list[Formula]:
    """Of every other loss, with its mean."""
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
