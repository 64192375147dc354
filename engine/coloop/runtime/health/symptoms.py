"""What can be wrong with what a node learns: how it shows in its metrics, and what to do about it.

`symptoms.yaml` has all alerts with their texts, and the limits of single metrics. Alerts that need
more than one limit have a function here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any, Literal

from coloop.spec.base import load_yaml

Metrics = Mapping[str, float]
Level = Literal["warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    now: Metrics
    start: Metrics
    """The very first readings in this phase, of the weights that it began with."""
    first: Metrics
    """Medians of the first readings in this phase, if there were enough."""
    recent: Metrics
    """Medians of the last readings."""
    best: Metrics
    """The greatest of the `recent` medians in this phase."""
    reasons: Mapping[str, str]
    """Why readings are as they are, if the node knows."""


Words = Callable[[float, Look], str | None]
"""Describes the symptom from the value of its metric; None if the metrics do not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A problem that metrics can show."""

    code: str
    metric: str
    """The symptom is not examined without a reading of it."""
    words: Words
    hint: str
    level: Level = "warning"
    patience: int = 3
    """Readings in a row that raise the alert."""
    about: str = ""
    """The metric to look at; empty: `metric`."""
    holds_from_the_start: bool = False
    """Also raised at the end of a shorter run, if it held in every reading."""

    def shows(self, look: Look) -> str | None:
        return self.words(look.now[self.metric], look)


def _threshold(holds: Callable[[float, float], bool]) -> Callable[[float, str], Words]:
    """A comparison of a reading with a limit; its words have a placeholder, e.g. `{:.0%}`."""
    return lambda limit, words: (
        lambda value, look: words.format(value) if holds(value, limit) else None
    )


LIMITS: Mapping[str, Callable[[float, str], Words]] = {
    "above": _threshold(gt),
    "below": _threshold(lt),
    "at_least": _threshold(ge),
    "at_most": _threshold(le),
}

ALL = 0.999
NO_GRADIENT = 1e-12
"""A gradient norm up to this moves no weight: the epsilon of Adam is 1e-8."""
MOST_GROUPS = 0.9
"""Share of groups without variance at which dynamic sampling (DAPO, arXiv 2503.14476) discards most
of a step."""
LEFT_OF_ENTROPY = 0.05
"""Entropy below this share of its first readings, without a better reward, is a collapse
(arXiv 2505.22617: performance is traded for entropy, and ends when none is left)."""
BETTER_REWARD = 0.05
"""Rise of the mean reward that justifies a loss of entropy and a rise of the KL."""
FAR_KL = 1.0
"""Nats per token that the KL to the reference may rise in a phase without a better reward. Short
answers that are learned well reach half of it."""
LOST_KL = 10.0
"""Rise of the KL, in nats per token, that no reward justifies: completions are e^10 times less
likely under the reference than at the start."""
LOST_TRUTH = 0.1
"""Fall of the ground truth from its best that, with a rising reward, is reward hacking."""
SPREADS = 0.5
"""Rise of the mean reward, in standard deviations of the first rewards, that counts as rising."""
LEAST_RISE = 0.05
"""The least such rise, for rewards that hardly vary."""


def _no_update(norm: float, look: Look) -> str | None:
    if norm > NO_GRADIENT:
        return None
    numbers = {name: look.now.get(name) for name in ("loss", "reward/mean", "reward/std")}
    known = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items() if value is not None)
    return f"its gradient is 0{f' ({known})' if known else ''}: no weight changes"


def _no_spread(share: float, look: Look) -> str | None:
    if share < ALL or look.now.get("advantage/std", 0.0) > NO_GRADIENT:
        return None
    mean = look.now.get("reward/mean", 0.0)
    return f"all rewards of every group are equal (mean {mean:.4g}): no row is better than another"


def _little_spread(share: float, look: Look) -> str | None:
    if not MOST_GROUPS <= share < ALL:
        return None
    return f"in {share:.0%} of the groups all rewards are equal: nothing is learned from them"


def _entropy_collapse(entropy: float, look: Look) -> str | None:
    first, recent = look.first.get("entropy"), look.recent["entropy"]
    if first is None or not _has_reward(look) or recent > LEFT_OF_ENTROPY * first:
        return None
    if _reward_rose(look):
        return None
    return f"its entropy fell from {first:.4g} to {recent:.4g}, and the reward did not rise"


def _kl_runaway(kl: float, look: Look) -> str | None:
    start, recent = look.start["kl"], look.recent["kl"]
    most = LOST_KL if _reward_rose(look) else FAR_KL
    if not _has_reward(look) or "kl" not in look.first or recent - start <= most:
        return None
    why = "" if _reward_rose(look) else ", and the reward did not rise"
    return (
        f"its distance from the reference grew from {start:.3g} to {recent:.3g} nats a token{why}"
    )


def _has_reward(look: Look) -> bool:
    """SFT and preference learning may well end in low entropy, far from the reference."""
    return "reward/mean" in look.now


def _reward_rose(look: Look) -> bool:
    first, recent = look.first.get("reward/mean"), look.recent.get("reward/mean")
    return first is not None and recent is not None and recent > first + BETTER_REWARD


def _mismatch(kl: float, look: Look) -> str | None:
    if look.now.get("staleness"):
        return None  # of completions of older weights, a difference is expected
    # ten times the rounding on a GPU
    return LIMITS["above"](1e-2, "engine and trainer differ by {:.3g} nats")(kl, look)


def _dominating(rate: float, look: Look) -> str | None:
    shares = {name: share for name, share in look.now.items() if name.startswith("win_rate.")}
    best = max(shares, key=lambda name: shares[name], default=None)
    if best is None or shares[best] < 0.95:
        return None
    player = best.partition(".")[2]
    return f"{player} wins {shares[best]:.0%} of its games, so neither side learns from them"


def _blind_critic(now: float, look: Look) -> str | None:
    share = look.recent["explained_variance"]
    words = "it explains {:.2f} of the variance of its targets: their mean would do better"
    return LIMITS["below"](0.0, words)(share, look)


def _reward_hacking(now: float, look: Look) -> str | None:
    """The reward rises and the ground truth falls (Goodhart's law; arXiv 2210.10760)."""
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


SPECIAL: Mapping[str, Words] = {
    "learning.no_update": _no_update,
    "learning.no_spread": _no_spread,
    "learning.little_spread": _little_spread,
    "learning.entropy_collapse": _entropy_collapse,
    "learning.kl_runaway": _kl_runaway,
    "learning.mismatch": _mismatch,
    "learning.reward_hacking": _reward_hacking,
    "learning.dominating": _dominating,
    "learning.blind_critic": _blind_critic,
}
"""Symptoms that are more than a limit of one metric."""


def _symptom(code: str, section: Mapping[str, Any]) -> Symptom:
    names = {field.name for field in fields(Symptom)} - {"words"}
    settings = {name: value for name, value in section.items() if name in names}
    words = SPECIAL.get(code)
    if words is None:
        [limit] = section.keys() & LIMITS.keys()
        words = LIMITS[limit](section[limit], section["words"])
    return Symptom(code=code, words=words, **settings)


SYMPTOMS: tuple[Symptom, ...] = tuple(
    _symptom(code, section)
    for code, section in load_yaml(Path(__file__).with_suffix(".yaml")).items()
)
BY_CODE = {symptom.code: symptom for symptom in SYMPTOMS}
