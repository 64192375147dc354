"""From scores to advantages, as the credit of a learner computes them."""

from __future__ import annotations

from collections.abc import Iterator

from coloop.explain.formulas.arithmetic import arithmetic
from coloop.explain.formulas.formula import (
    ADVANTAGE,
    Formula,
    at,
    bracket,
    equals,
    share,
    times,
    total,
)
from coloop.explain.maths import Call, Index, Maths, Root, Symbol, Words, maths
from coloop.spec.algorithm import ResolvedRewards
from coloop.spec.algorithms.registry import ADVANTAGES

REWARD = at("r", "i")
_DEVIATIONS = {
    "unbiased": ("group", "The deviation is that of the rewards of one group, divided by n − 1."),
    "population": ("group", "The deviation is that of the rewards of one group, divided by n."),
    "leave_one_out": ("others", "The deviation is that of the others in the group."),
    "batch": ("batch", "The deviation is that of all rewards of the step."),
}


def reward_formulas(settings: ResolvedRewards) -> Iterator[Formula]:
    """What happens to a reward before it is compared."""
    if settings.reward_clip is not None:
        limit = settings.reward_clip
        clipped = Call("clip", (REWARD, maths("−", limit), maths(limit)))
        yield Formula(
            name="Reward, clipped", tree=maths(REWARD, "←", clipped), settings=("reward_clip",)
        )
    if settings.kl is None or settings.kl.into != "reward":
        return
    pull = maths("β", at("k", "t"))
    by_row = settings.needs_group and not settings.penalizes_after_baseline
    left = REWARD if by_row else at("r", "t")
    tree = maths(left, "←", left, "−", total("t", pull) if by_row else pull)
    where = "of a text, before texts are compared" if by_row else "of each token"
    yield Formula(
        name="KL in the reward",
        tree=tree,
        note=f"The KL penalty is subtracted from the reward {where}.",
        settings=("kl.into", "kl.coefficient"),
    )


def advantage_formulas(settings: ResolvedRewards) -> Iterator[Formula]:
    """How scores become what multiplies the gradient."""
    yield from reward_formulas(settings)
    if settings.needs_values:
        yield from _gae(settings)
    elif settings.needs_group:
        yield _compared(settings)
    elif settings.needs_greedy:
        greedy = at("r", "greedy")
        note = "Compared with the greedy answer to the same prompt."
        yield _formula(maths(_ahead(settings), "−", greedy), note)
    else:
        yield _formula(_ahead(settings), "The return from this token on.", ("gamma",))
    if settings.whiten:
        spread = Root(maths(Call("var", (Symbol("A"),)), "+", 1e-8))
        how = "n − 1" if settings.whiten_deviation == "unbiased" else "n"
        tree = maths(
            ADVANTAGE, "←", share(maths(ADVANTAGE, "−", Call("mean", (Symbol("A"),))), spread)
        )
        note = f"Mean 0 and deviation 1 over all trained tokens of the step (divided by {how})."
        yield Formula(
            name="Whitening", tree=tree, note=note, settings=("whiten", "whiten_deviation")
        )


def _formula(right: Maths, note: str, fields: tuple[str, ...] = ()) -> Formula:
    return Formula(
        name="Advantage", tree=equals(ADVANTAGE, right), note=note, settings=("advantage", *fields)
    )


def _ahead(settings: ResolvedRewards) -> Maths:
    later = at("r", "u")
    if settings.gamma == 1.0:
        return total("u ≥ t", later)
    return total("u ≥ t", Index(maths(settings.gamma), above=maths("u", "−", "t")), later)


def _compared(settings: ResolvedRewards) -> Formula:
    """One number a text, compared with the other texts of its group."""
    record = ADVANTAGES[settings.advantage]
    centred = arithmetic(record.formula) if record.formula else Words(record.name)
    note = record.note
    fields = ["advantage"]
    if settings.deviation in _DEVIATIONS:
        whose, words = _DEVIATIONS[settings.deviation]
        spread = maths(Call("std", (Symbol(whose),)), "+", settings.epsilon)
        centred, note = share(centred, spread), f"{note} {words}".lstrip()
        fields += ["deviation", "epsilon"]
    if settings.gamma != 1.0:
        left = maths("L", "−", "t")
        centred = maths(Index(maths(settings.gamma), above=left), "·", bracket(centred))
        fields.append("gamma")
    note = f"{note} The same for all tokens of a text.".lstrip()
    return Formula(
        name="Advantage", tree=equals(ADVANTAGE, centred), note=note, settings=tuple(fields)
    )


def _gae(settings: ResolvedRewards) -> Iterator[Formula]:
    value, following = at("V", "t"), at("V", "t+1")
    yield Formula(
        name="Surprise",
        tree=equals(at("δ", "t"), at("r", "t"), "+", times(settings.gamma, following), "−", value),
        note="The reward compared with the critic's estimate.",
        settings=("gamma",),
    )
    if settings.length_alpha is not None:
        adaptive = maths(1, "−", share(1, maths(settings.length_alpha, "·", "L")))
        yield Formula(
            name="Lambda",
            tree=equals("λ", adaptive),
            note="Longer texts look further ahead.",
            settings=("length_alpha",),
        )
        decay: Maths = times(settings.gamma, "λ")
        fields: tuple[str, ...] = ("advantage", "gamma")
    else:
        decay = maths(settings.gamma * settings.gae_lambda)
        fields = ("advantage", "gamma", "gae_lambda")
    following = at("A", "t+1")
    is_one = settings.length_alpha is None and settings.gamma * settings.gae_lambda == 1.0
    ahead = following if is_one else maths(decay, "·", following)
    yield Formula(
        name="Advantage",
        tree=equals(ADVANTAGE, at("δ", "t"), "+", ahead),
        note="The surprises of all later tokens, those further away with less weight."
        if not is_one
        else "The surprises of all later tokens.",
        settings=fields,
    )
