"""What can be wrong with what a node learns, how it shows in its metrics, and what to do about it.

Pure: metric names and numbers, nothing else. The thresholds are the constants of this module; what
each metric should look like is said in `spec.metrics`.
"""

from coloop.runtime.health.scorer_checks import DOUBTS
from coloop.runtime.health.symptom import Look, Symptom, above, at_least, at_most, below

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
    """Whether scores teach it: what is imitated or preferred is meant to grow certain, and to move
    away from the reference."""
    return "reward/mean" in look.now


def _is_paid_for(look: Look) -> bool:
    """Whether the mean reward has risen since the first readings."""
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

SYMPTOMS = (*OF_LEARNERS, *DOUBTS)
BY_CODE = {symptom.code: symptom for symptom in SYMPTOMS}
