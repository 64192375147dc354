"""What can be wrong with what a node learns, how it shows in its metrics, and what to do about it.

Pure: metric names and numbers, nothing else. The thresholds are the constants of this module; what
each metric should look like is said in `spec.metrics`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

# What a symptom is: how something that is wrong shows in the metrics of one node.

Metrics = Mapping[str, float]
Shows = Callable[["Look"], str | None]
"""How something shows, in words; None where it does not."""
Level = Literal["warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a symptom sees of one node at one step."""

    now: Metrics
    start: Metrics
    """The very first readings in this phase: of the weights that it began with."""
    first: Metrics
    """Medians of the first readings in this phase, where there were enough."""
    recent: Metrics
    """Medians of the last readings."""
    best: Metrics
    """The greatest of these medians in this phase."""
    reasons: Mapping[str, str]
    """Why readings are as they are, where the node knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What can be wrong; `shows` says how it shows, or nothing."""

    code: str
    level: Level
    metric: str
    """Without a reading of it nothing is said."""
    patience: int
    """Readings in a row."""
    shows: Shows
    hint: str
    about: str = ""
    """The metric that one looks at; empty: the same."""
    holds_from_the_start: bool = False
    """A run that ends before the patience does is told, where it held in every reading."""


def above(name: str, limit: float, words: str) -> Shows:
    """Shows where a reading is greater than the limit.

    Args:
        words: with a place for the reading, e.g. `{:.0%}`.
    """
    return lambda look: words.format(look.now[name]) if look.now[name] > limit else None


def below(name: str, limit: float, words: str) -> Shows:
    return lambda look: words.format(look.now[name]) if look.now[name] < limit else None


def at_least(name: str, limit: float, words: str) -> Shows:
    return lambda look: words.format(look.now[name]) if look.now[name] >= limit else None


def at_most(name: str, limit: float, words: str) -> Shows:
    return lambda look: words.format(look.now[name]) if look.now[name] <= limit else None


NO_GRADIENT = 1e-12
"""Gradient norm from here down moves no weight: Adam's own epsilon is 1e-8."""
ALL_GROUPS = 0.999
"""Share of groups without variance that counts as all of them."""
MOST_GROUPS = 0.9
"""Share of groups without variance at which dynamic sampling (DAPO, arXiv 2503.14476) throws most
of a step away."""
ALL_ROWS = 0.999
"""Share of rows that counts as all of them."""
LEFT_OF_ENTROPY = 0.05
"""Entropy below this share of its first readings, without a better reward, is a collapse
(arXiv 2505.22617: performance is bought with entropy, and ends where none is left)."""
BETTER_REWARD = 0.05
"""Rise of the mean reward, against its first readings, that pays for lost entropy and for KL."""
FAR_KL = 1.0
"""Nats a token that the KL to the reference may rise in a phase before a reward must have risen for
it. Short answers that are learned well reach half of it."""
LOST_KL = 10.0
"""Rise of the KL, in nats a token, that no reward pays for: what the policy writes has become e^10
times less likely to the reference than it was."""
MOST_CLIPPED = 0.5
"""Share of clipped tokens from which on most of an update is thrown away."""
FAR_RATIO = 100.0
"""Ratio of new to old policy, ten times where a step counts as too large."""
MISMATCH = 1e-2
"""KL between engine and trainer, ten times what rounding makes on a GPU."""
FEW_FINISHED = 0.1
"""Share of finished completions below which nearly all are cut by the limit."""


def _no_update(look: Look) -> str | None:
    if look.now["grad_norm"] > NO_GRADIENT:
        return None
    numbers = {name: look.now.get(name) for name in ("loss", "reward/mean", "reward/std")}
    known = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items() if value is not None)
    return f"its gradient is 0{f' ({known})' if known else ''}: no weight changes"


def _no_spread(look: Look) -> str | None:
    is_flat = look.now["group/zero_variance"] >= ALL_GROUPS
    if not is_flat or look.now.get("advantage/std", 0.0) > NO_GRADIENT:
        return None
    mean = look.now.get("reward/mean", 0.0)
    return f"all rewards of every group are equal (mean {mean:.4g}): no row is better than another"


def _little_spread(look: Look) -> str | None:
    share = look.now["group/zero_variance"]
    if not MOST_GROUPS <= share < ALL_GROUPS:
        return None
    return f"in {share:.0%} of the groups all rewards are equal: nothing is learned from them"


def _entropy_collapse(look: Look) -> str | None:
    first = look.first.get("entropy")
    if first is None or not _is_scored(look) or look.recent["entropy"] > LEFT_OF_ENTROPY * first:
        return None
    if _is_paid_for(look):
        return None
    return (
        f"its entropy fell from {first:.4g} to {look.recent['entropy']:.4g}, and the reward did "
        "not rise"
    )


def _kl_runaway(look: Look) -> str | None:
    start, kl = look.start["kl"], look.recent["kl"]
    rise = kl - start
    if (
        not _is_scored(look)
        or "kl" not in look.first
        or rise <= FAR_KL
        or (rise <= LOST_KL and _is_paid_for(look))
    ):
        return None
    for_what = "" if _is_paid_for(look) else ", and the reward did not rise"
    return (
        f"its distance from the reference grew from {start:.3g} to {kl:.3g} nats a token{for_what}"
    )


def _is_scored(look: Look) -> bool:
    """What is imitated or preferred is meant to grow certain and to leave the reference."""
    return "reward/mean" in look.now


def _is_paid_for(look: Look) -> bool:
    before, now = look.first.get("reward/mean"), look.recent.get("reward/mean")
    return before is not None and now is not None and now > before + BETTER_REWARD


def _mismatch(look: Look) -> str | None:
    if look.now.get("staleness"):
        return None  # texts of older weights: the policy has moved, engine and trainer may agree
    return above("mismatch_kl", MISMATCH, "engine and trainer differ by {:.3g} nats")(look)


OF_LEARNERS: tuple[Symptom, ...] = (
    Symptom(
        code="learning.no_update",
        level="error",
        metric="grad_norm",
        patience=3,
        shows=_no_update,
        hint=(
            "check samples and their rewards: if all rewards are equal, nothing can be learned; if "
            "there are none, check the scorer's rows in `coloop plan`"
        ),
        holds_from_the_start=True,
    ),
    Symptom(
        code="learning.no_rate",
        level="error",
        metric="lr",
        patience=3,
        shows=at_most("lr", 0.0, "its learning rate is 0: no weight changes"),
        hint="set `training.optimizer.lr` above 0, and check its schedule and warm-up",
        holds_from_the_start=True,
    ),
    Symptom(
        code="learning.no_spread",
        level="warning",
        metric="group/zero_variance",
        patience=3,
        shows=_no_spread,
        hint=(
            "use problems that are solved sometimes: warm up on demonstrations, make the task "
            "easier or harder, raise `rollout.temperature` or `completions_per_prompt`; and read "
            "samples to see whether the reward finds the answer"
        ),
        holds_from_the_start=True,
    ),
    Symptom(
        code="learning.little_spread",
        level="warning",
        metric="group/zero_variance",
        patience=20,
        shows=_little_spread,
        hint=(
            "put a `filter` with `nonzero_variance` and `fill` before the learner, or change the "
            "difficulty of the problems"
        ),
    ),
    Symptom(
        code="learning.left_out",
        level="warning",
        metric="rows/left_out",
        patience=3,
        shows=above(
            "rows/left_out",
            0.0,
            "{:.0%} of its rows are dropped from the update, because scores of its reference or "
            "critic are missing",
        ),
        hint=(
            "connect the rows that it learns to its reference and its critic too, and pass all of "
            "them through the same filters"
        ),
        holds_from_the_start=True,
    ),
    Symptom(
        code="learning.no_scores",
        level="error",
        metric="score/none",
        patience=3,
        shows=at_least("score/none", ALL_ROWS, "it cannot score any row: every score is None"),
        hint=(
            "compare its pattern or code with samples of this run; `on_no_match` or `on_error` "
            "sets the score of a text without a match"
        ),
        holds_from_the_start=True,
    ),
    Symptom(
        code="learning.nothing_parsed",
        level="error",
        metric="parse/none",
        patience=3,
        shows=at_least("parse/none", ALL_ROWS, "its patterns match in no row"),
        hint=(
            "compare `parse`, or `read` of a judge, with samples of this run; warm up the model "
            "that generates on the format, or set the score of a text without a match (`default`, "
            "`on_no_match`)"
        ),
        holds_from_the_start=True,
    ),
    Symptom(
        code="learning.nothing_goes_on",
        level="warning",
        metric="rows/none",
        patience=3,
        shows=at_least(
            "rows/none",
            ALL_ROWS,
            "no row is passed on: its `code` returns None, or `each` finds no element",
        ),
        hint=(
            "later nodes get no rows, and rounds that it closes end. Compare `code` with samples "
            "of this run: a row is passed on if `code` returns its columns (a dict), and dropped "
            "if it returns None, as a function without `return` does"
        ),
        holds_from_the_start=True,
    ),
    Symptom(
        code="learning.entropy_collapse",
        level="error",
        metric="entropy",
        patience=5,
        shows=_entropy_collapse,
        hint=(
            "lower the learning rate, raise `clip_high` or `algorithm.rewards.entropy`, raise "
            "`rollout.temperature`; resume from a checkpoint before the drop"
        ),
    ),
    Symptom(
        code="learning.kl_runaway",
        level="error",
        metric="kl",
        patience=3,
        shows=_kl_runaway,
        hint=(
            "raise `kl.coefficient`, lower the learning rate, and read samples: the policy may be "
            "gaming its reward; `refresh` lets a snapshot follow"
        ),
    ),
    Symptom(
        code="learning.clipped",
        level="warning",
        metric="clip_fraction",
        patience=3,
        shows=above("clip_fraction", MOST_CLIPPED, "{:.0%} of its tokens are clipped"),
        hint="lower the learning rate, or use fewer mini-batches, `epochs` and `updates` a step",
    ),
    Symptom(
        code="learning.far_ratio",
        level="warning",
        metric="ratio/max",
        patience=3,
        shows=above("ratio/max", FAR_RATIO, "its largest ratio to the old policy is {:.3g}"),
        hint="lower the learning rate, or use fewer mini-batches, `epochs` and `updates` a step",
    ),
    Symptom(
        code="learning.mismatch",
        level="warning",
        metric="mismatch_kl",
        patience=3,
        shows=_mismatch,
        hint=(
            "use the same dtype in engine and trainer and sample from the whole distribution (no "
            "`top_p`, no `top_k`); `correction` limits the effect"
        ),
    ),
    Symptom(
        code="learning.cut_texts",
        level="warning",
        metric="rollout/finished",
        patience=5,
        shows=below(
            "rollout/finished",
            FEW_FINISHED,
            "only {:.0%} of its completions end by themselves; the others are cut off at the limit",
        ),
        hint="raise `rollout.max_new_tokens`, or set a `stop`; a warm-up teaches the model to end",
    ),
)

# Whom a run should not trust: scorers that are wrong about what is true, rewards that part from it,
# tools that fail, players that have no opponent left. The truth is what an evaluation or a checker
# says beside what is learned (`truths_of`).

FALSE_POSITIVES = 0.3
"""Share of wrong texts that are called right from which on a policy learns to be wrong."""
FALSE_NEGATIVES = 0.5
"""Share of right texts that are called wrong from which on most of what is right is not learned."""
A_COIN = 0.5
"""Agreement below which a verdict turned over would be the better one."""
GAP = 0.25
"""Calibration error beyond which scores are no probabilities."""
CONSISTENT = 0.6
"""Share of pairs judged alike in both orders below which a judge looks at the position: a coin is
consistent in half of them."""
MOST_GAMES = 0.95
"""Share of games from which on a player has no opponent any more."""
MOST_CALLS = 0.9
"""Share of failed calls from which on a tool is of no use."""
BLIND = 0.0
"""Explained variance below which a critic does worse than the mean of the returns."""
LOST_TRUTH = 0.1
"""Fall of what is true, against its best, that a rising reward does not explain."""
SPREADS = 0.5
"""Rise of the mean reward, in first spreads of the rewards, that counts as rising."""
LEAST_RISE = 0.05
"""The same in rewards, where they hardly spread."""


def _dominating(look: Look) -> str | None:
    shares = {name: share for name, share in look.now.items() if name.startswith("win_rate.")}
    if not shares:
        return None
    best = max(shares, key=lambda name: shares[name])
    if shares[best] < MOST_GAMES:
        return None
    return (
        f"{best.partition('.')[2]} wins {shares[best]:.0%} of its games, so neither side learns "
        "from them"
    )


def _blind_critic(look: Look) -> str | None:
    share = look.recent["explained_variance"]
    if share >= BLIND:
        return None
    return f"it explains {share:.2f} of the variance of its targets: their mean would do better"


def _reward_hacking(look: Look) -> str | None:
    """The reward rises, and what is true falls (Goodhart's law; arXiv 2210.10760)."""
    truth, best = look.recent["truth"], look.best["truth"]
    before, reward = look.first.get("reward/mean"), look.recent.get("reward/mean")
    if before is None or reward is None or truth > best - LOST_TRUTH:
        return None
    if reward <= before + max(LEAST_RISE, SPREADS * look.first.get("reward/std", 0.0)):
        return None
    return (
        f"its reward rose from {before:.3g} to {reward:.3g} while the true score fell from "
        f"{best:.3g} to {truth:.3g}"
    )


_RELABEL = "in the samples of this run, look at the texts where scores and labels disagree"

DOUBTS: tuple[Symptom, ...] = (
    Symptom(
        code="learning.reward_hacking",
        level="error",
        metric="truth",
        about="reward/mean",
        patience=3,
        shows=_reward_hacking,
        hint=(
            "read the texts with the highest rewards: they show what is rewarded by mistake. Raise "
            "`kl.coefficient`, train the scorer on new texts of the policy, or add a checker to "
            "the rewards; resume from a checkpoint before the drop"
        ),
    ),
    Symptom(
        code="learning.false_positives",
        level="warning",
        metric="false_positive_rate",
        patience=3,
        shows=above("false_positive_rate", FALSE_POSITIVES, "it accepts {:.0%} of the wrong texts"),
        hint=f"raise `read.threshold`, or train the scorer on more wrong texts; {_RELABEL}",
    ),
    Symptom(
        code="learning.false_negatives",
        level="warning",
        metric="false_negative_rate",
        patience=3,
        shows=above("false_negative_rate", FALSE_NEGATIVES, "it rejects {:.0%} of the right texts"),
        hint=f"lower `read.threshold`, or check how answers are parsed; {_RELABEL}",
    ),
    Symptom(
        code="learning.disagreement",
        level="error",
        metric="agreement",
        patience=3,
        shows=below(
            "agreement",
            A_COIN,
            ("it agrees with the truth in {:.0%} of cases, less than a coin toss"),
        ),
        hint=(f"check that its verdict is not inverted (`values`, `labels`); {_RELABEL}"),
    ),
    Symptom(
        code="learning.miscalibrated",
        level="warning",
        metric="calibration",
        patience=3,
        shows=above(
            "calibration", GAP, ("its scores differ by {:.2f} from the share of right texts")
        ),
        hint=(
            "use its scores as a ranking, not as probabilities; or train it on soft labels "
            "(`algorithm.labels.soft`) and on texts of the current policy"
        ),
    ),
    Symptom(
        code="learning.position_bias",
        level="warning",
        metric="swap/consistent",
        patience=5,
        shows=below(
            "swap/consistent",
            CONSISTENT,
            "it judges only {:.0%} of the pairs alike in both orders: it favors a position",
        ),
        hint="train it on each pair in both orders, or judge each side alone",
    ),
    Symptom(
        code="learning.dominating",
        level="warning",
        metric="win_rate",
        patience=3,
        shows=_dominating,
        hint=(
            "let the other side learn alone for a while (a phase, `learn: {x: {every: n}}`), lower "
            "the learning rate of the stronger side, or use an earlier checkpoint as opponent"
        ),
    ),
    Symptom(
        code="learning.failing_tool",
        level="warning",
        metric="tool/errors",
        patience=5,
        shows=at_least("tool/errors", MOST_CALLS, "{:.0%} of its calls end in an error"),
        hint=(
            "read its answers in the samples of this run: either the policy calls it incorrectly "
            "(show the format in the prompt, warm up on traces) or the tool does not work"
        ),
        holds_from_the_start=True,
    ),
    Symptom(
        code="learning.uncalled_tool",
        level="warning",
        metric="tool/calls",
        patience=10,
        shows=at_most("tool/calls", 0.0, "it is never called"),
        hint=(
            "compare `call` with what the policy generates, show the format in the prompt, or warm "
            "up on texts that call it"
        ),
    ),
    Symptom(
        code="learning.blind_critic",
        level="warning",
        metric="explained_variance",
        patience=20,
        shows=_blind_critic,
        hint=(
            "let it learn alone first (a phase), raise its learning rate or its `updates`; for a "
            "critic, check that it sees the same rows as its actor"
        ),
    ),
)

SYMPTOMS = (*OF_LEARNERS, *DOUBTS)
BY_CODE = {symptom.code: symptom for symptom in SYMPTOMS}
