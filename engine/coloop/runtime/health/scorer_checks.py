"""Whom a run should not trust: scorers that are wrong about what is true, rewards that part from
it, tools that fail, players that have no opponent left.

Pure, as `symptoms`; the truth is what an evaluation or a checker says beside what is learned
(`truths`).
"""

from coloop.runtime.health.symptom import Look, Symptom, above, at_least, at_most, below

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
