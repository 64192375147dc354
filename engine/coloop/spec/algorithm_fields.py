"""What a learner does with what arrives at a teaching port: the `algorithm` section.

A section maps teaching ports to algorithms, each with a `name`; a port may have several with
weights. Where one teaching port is in use the short form `algorithm: {name: grpo}` will do. A
field that is not written takes the value of the named preset (`algorithm_presets`), so absence
and `null` differ. Formulas live in the recipes; this module only says what can be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from coloop.spec.algorithms.registry import ADVANTAGES, PRESETS, names_with
from coloop.spec.base import Flag, Name, Number, OneOrMany, Section, Text, Whole, problem, setting

PolicyLoss = Literal[
    "clipped", "policy_gradient", "sequence_clipped", "cispo", "sapo", "gmpo", "clip_cov", "kl_cov"
]
Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum", "constant"]
Estimator = Literal["k1", "k2", "k3"]
PreferenceLoss = Literal[
    "sigmoid",
    "hinge",
    "ipo",
    "robust",
    "exo",
    "nca",
    "bco",
    "sppo",
    "aot",
    "apo",
    "discopop",
]

REWARDS_NAMES: tuple[str, ...] = names_with("rewards")
PREFERENCE_NAMES: tuple[str, ...] = names_with("preference")

if TYPE_CHECKING:
    Advantage = str
    RewardsName = str
    PreferenceName = str
else:
    Advantage = Literal[tuple(ADVANTAGES)]
    RewardsName = Literal[REWARDS_NAMES]
    PreferenceName = Literal[PREFERENCE_NAMES]


class Kl(Section, title="KL"):
    """A pull towards the reference."""

    coefficient: Number = setting(0.001, ge=0, le=100, hot=True)
    """Strength of the pull."""
    estimator: Estimator | None = setting(None, level="advanced")
    """k1 is x = log policy - log reference, k2 is x^2/2, k3 is e^-x + x - 1.

    Null: k2 in the loss, k1 in the reward."""
    into: Literal["loss", "reward"] = setting("loss", level="advanced")
    """Added to the loss, or taken from the token rewards before the advantage."""
    by_ratio: Flag = setting(False, level="expert", hot=True)
    """In the loss: the term times the policy's ratio, so that its gradient is that of the KL."""
    target: Number | None = setting(None, gt=0, level="expert", hot=True)
    """Adapt the coefficient to keep the KL here; null: constant."""
    horizon: Whole = setting(10_000, ge=1, level="expert", unit="rows")
    """How slowly the coefficient adapts."""


class Correction(Section):
    """Weights for rows whose engine and trainer disagree: w = trainer / engine."""

    method: Literal["token_tis", "icepop", "sequence_mask", "none"] = setting("token_tis")
    """`token_tis` clamps w, `icepop` zeroes it outside, `sequence_mask` drops the row."""
    min: Number | None = setting(None, ge=0, level="advanced")
    """Least weight; null: no bound."""
    max: Number | None = setting(None, gt=0, level="advanced")
    """Greatest weight; null: 2 for `token_tis`, 5 for `icepop`, 3 for `sequence_mask`."""

    @property
    def is_empty_band(self) -> bool:
        """Whether no weight fits between the bounds."""
        return self.min is not None and self.max is not None and self.min >= self.max


class OffPolicy(Section):
    """Learn from rows that others wrote."""

    shaping: Number = setting(0.1, gt=0, hot=True)
    """c in the weight p / (p + c); no ratio, no clip."""
    prompt: Literal["own", "as_written"] = setting("own")
    """Learn them as completions of the own prompt row, or of the prompt they were written for."""


class RewardsAlgorithm(Section):
    """Learn from scores of own rollouts."""

    unset_is_preset: ClassVar[bool] = True

    name: RewardsName = setting(title="Algorithm name", choices="algorithms", short="{}")
    """A preset of advantage, loss and aggregation; each may be set apart."""
    advantage: Advantage | None = setting(None, level="advanced")
    """How scores become advantages."""
    loss: PolicyLoss | None = setting(None, level="advanced")
    """The policy loss of a token."""
    aggregation: Aggregation | None = setting(None, level="advanced")
    """How token losses become one number; the divisor is taken over the whole optimizer step."""
    divisor: Whole | None = setting(None, ge=1, level="expert", unit="tokens")
    """Tokens a row that `constant` divides by; null: the rollout's `max_new_tokens`."""
    clip_low: Number | None = setting(None, ge=0, lt=1, level="advanced", hot=True)
    """The ratio is clipped below at 1 - this; null: no clip."""
    clip_high: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """The ratio is clipped above at 1 + this; null: no clip."""
    dual_clip: Number | None = setting(None, gt=1, level="advanced", hot=True)
    """Cap the loss at this times the advantage where it is negative; null: off."""
    ratio_min: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """CISPO: least ratio, in absolute terms."""
    ratio_max: Number | None = setting(None, gt=0, level="advanced", hot=True)
    """CISPO: greatest ratio, in absolute terms."""
    reduce: Literal["mean", "sum"] | None = setting(None, level="expert")
    """`sequence_clipped`: mean (GSPO) or sum (the whole text's) of a sequence's log ratios."""
    epsilon: Number | None = setting(None, ge=0, level="expert")
    """Added to the standard deviation."""
    deviation: Literal["unbiased", "population", "leave_one_out", "batch", "none"] | None = setting(
        None, level="expert"
    )
    """Which deviation scales advantages: of the group, of the others in it, of the whole batch."""
    whiten: Flag | None = setting(None, level="advanced")
    """Bring advantages to mean 0 and deviation 1 over all trained tokens."""
    whiten_deviation: Literal["unbiased", "population"] | None = setting(None, level="expert")
    """Which deviation whitening divides by."""
    gamma: Number | None = setting(None, ge=0, le=1, level="advanced")
    """Discount from token to token."""
    gae_lambda: Number | None = setting(None, ge=0, le=1, level="advanced")
    """GAE: how far advantages look ahead; 1: to the end."""
    length_alpha: Number | None = setting(None, ge=0, level="advanced")
    """VAPO: lambda = 1 - 1 / (alpha * length); null: `gae_lambda`."""
    reward_clip: Number | None = setting(None, gt=0, level="advanced")
    """Scores are clipped to plus or minus this; null: no clip."""
    entropy: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """Bonus on the entropy of the policy."""
    kl: Kl | None = setting(None)
    """A pull towards the reference at port `reference`; null: none."""
    correction: Correction | None = setting(None, level="advanced")
    """Weights where engine and trainer disagree; not written: token TIS with cap 2."""
    off_policy: OffPolicy | None = setting(None, level="advanced")
    """Take rows that others wrote; null: they are ignored."""
    tau_positive: Number | None = setting(None, gt=0, level="expert")
    """SAPO: temperature where the advantage is positive."""
    tau_negative: Number | None = setting(None, gt=0, level="expert")
    """SAPO: temperature where the advantage is negative."""
    covariance_share: Number | None = setting(None, gt=0, le=1, level="expert")
    """Clip-Cov and KL-Cov: share of tokens that are dropped or held back."""
    allow_group_of_one: Flag = setting(False, level="expert")
    """Accept groups of one row where the baseline needs more: their advantage is 0."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""

    @model_validator(mode="after")
    def _settings_fit_together(self) -> Self:
        loss = self.loss or PRESETS[self.name].get("loss")
        if loss == "sequence_clipped" and self.aggregation == "token_mean":
            raise problem(
                "conflict", "a ratio of sequences needs `sequence_mean`", field="aggregation"
            )
        if self.kl is not None and self.kl.by_ratio and self._kl_into() == "reward":
            raise problem(
                "conflict", "a reward has no ratio: `by_ratio` needs `into: loss`", field="kl"
            )
        if self.correction is not None and self.correction.is_empty_band:
            raise problem("bad_value", "`max` must be greater than `min`", field="correction")
        return self

    def _kl_into(self) -> str:
        assert self.kl is not None
        preset = PRESETS[self.name].get("kl") or {}
        written = "into" in self.kl.model_fields_set
        return self.kl.into if written else preset.get("into", self.kl.into)


class PreferenceAlgorithm(Section):
    """Learn from pairs: chosen more likely, rejected less."""

    unset_is_preset: ClassVar[bool] = True

    name: PreferenceName = setting(title="Algorithm name", choices="algorithms", short="{}")
    """A preset of loss, beta and reduction."""
    beta: Number | None = setting(None, gt=0, hot=True)
    """How strongly the policy is held to the reference."""
    loss: PreferenceLoss | None = setting(None, level="advanced")
    """The loss of the margin z between chosen and rejected."""
    label_smoothing: Number | None = setting(None, ge=0, lt=0.5, level="advanced")
    """Share of pairs taken to be labelled the wrong way round."""
    reduce: Literal["sum", "mean"] | None = setting(None, level="advanced")
    """Sum or mean of a side's token log-probs."""
    sft: Number | None = setting(None, ge=0, le=1, level="advanced", hot=True)
    """Share a of imitation of the chosen side: a * sft + (1 - a) * loss."""
    gamma: Number | None = setting(None, ge=0, level="advanced")
    """SimPO: margin that the chosen side must lead by."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""


class BradleyTerry(Section):
    """A scorer learns that chosen scores higher than rejected."""

    name: Literal["bradley_terry"] = setting(
        title="Algorithm name", choices="algorithms", short="{}"
    )
    """Loss: -log sigmoid(chosen - rejected - margin)."""
    margin: Name | None = setting(None, level="advanced", widget="column")
    """Column with the margin of a pair; null: none."""
    center: Number | None = setting(None, ge=0, level="advanced")
    """Pull of the mean score towards 0; null: off."""
    soft: Flag = setting(False, level="advanced")
    """Read the pair's `probability` as a soft label."""
    label_smoothing: Number = setting(0.0, ge=0, lt=0.5, level="advanced")
    """Share of pairs taken to be labelled the wrong way round."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""


class LabelCrossEntropy(Section):
    """A language model learns which label word to say."""

    name: Literal["label_ce"] = setting(title="Algorithm name", choices="algorithms", short="{}")
    """Cross-entropy restricted to the label words of `read.labels`."""
    label_smoothing: Number = setting(0.0, ge=0, lt=0.5, level="advanced")
    """Share of labels taken to be wrong."""
    soft: Flag = setting(False, level="advanced")
    """Labels between 0 and 1 are probabilities."""
    labels: tuple[Text, ...] | None = setting(None, level="advanced")
    """Label words; null: those of `read`."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""


class Regression(Section):
    """A scorer learns numbers."""

    name: Literal["regression"] = setting(title="Algorithm name", choices="algorithms", short="{}")
    """Mean squared error to the labels."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""


class Outcome(Section):
    """A scorer learns right from wrong."""

    name: Literal["outcome"] = setting(title="Algorithm name", choices="algorithms", short="{}")
    """Binary cross-entropy of the score, whole or step by step."""
    soft: Flag = setting(False, level="advanced")
    """Labels between 0 and 1 are probabilities; else they are rounded."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""


class ImplicitPrm(Section, title="Implicit PRM"):
    """A language model learns outcomes and is read as a reward of each token."""

    name: Literal["implicit_prm"] = setting(
        title="Algorithm name", choices="algorithms", short="{}"
    )
    """Binary cross-entropy of sigmoid(beta * sum(log policy - log prior))."""
    beta: Number = setting(0.05, gt=0, hot=True)
    """Scale of the log ratio."""
    soft: Flag = setting(False, level="advanced")
    """Labels between 0 and 1 are probabilities."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""


class Sft(Section, title="SFT"):
    """Imitate demonstrations."""

    name: Literal["sft"] = setting(title="Algorithm name", choices="algorithms", short="{}")
    """Cross-entropy on the tokens to imitate: `target` after `prompt`, or of a `target` that is a
    chat what the assistant says in it."""
    mask: tuple[Name, ...] = setting((), level="advanced")
    """Tags whose content is not trained."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""


class ValueLoss(Section):
    """A critic learns returns."""

    name: Literal["value"] = setting(title="Algorithm name", choices="algorithms", short="{}")
    """Half the squared error to the returns, clipped around the old value."""
    clip: Number | None = setting(0.5, gt=0, level="advanced")
    """Greatest move of a value that counts; null: no clip."""
    gae_lambda: Number | None = setting(None, ge=0, le=1, level="advanced")
    """Lambda of the returns it learns; null: the actor's."""
    weight: Number = setting(1.0, ge=0, level="advanced", hot=True)
    """Weight of this loss among the learner's."""


PairsAlgorithm = Annotated[
    PreferenceAlgorithm | BradleyTerry | LabelCrossEntropy, Field(discriminator="name")
]
ScorerPairs = Annotated[BradleyTerry | LabelCrossEntropy, Field(discriminator="name")]
LabelsAlgorithm = Annotated[
    Regression | Outcome | ImplicitPrm | LabelCrossEntropy, Field(discriminator="name")
]
Algorithm = (
    RewardsAlgorithm
    | PreferenceAlgorithm
    | BradleyTerry
    | LabelCrossEntropy
    | Regression
    | Outcome
    | ImplicitPrm
    | Sft
    | ValueLoss
)


class ActorAlgorithms(Section, title="one for each port"):
    """What an actor does with each of its teaching ports."""

    rewards: OneOrMany[RewardsAlgorithm] | None = setting(None)
    """Learn from scores of own rollouts."""
    demonstrations: OneOrMany[Sft] | None = setting(None)
    """Learn from examples."""
    pairs: OneOrMany[PreferenceAlgorithm] | None = setting(None)
    """Learn from preferences."""


class CriticAlgorithms(Section, title="one for each port"):
    """What a critic does with each of its teaching ports."""

    returns: OneOrMany[ValueLoss] | None = setting(None)
    """Learn the returns of its actor."""
    labels: OneOrMany[LabelsAlgorithm] | None = setting(None)
    """Learn numbers directly."""


class RewardAlgorithms(Section, title="one for each port"):
    """What a reward model does with each of its teaching ports."""

    pairs: OneOrMany[ScorerPairs] | None = setting(None)
    """Learn from preferences."""
    labels: OneOrMany[LabelsAlgorithm] | None = setting(None)
    """Learn from numbers."""


class VerifierAlgorithms(Section, title="one for each port"):
    """What a verifier does with each of its teaching ports."""

    labels: OneOrMany[LabelsAlgorithm] | None = setting(None)
    """Learn the truth of what it judged."""
    rewards: OneOrMany[RewardsAlgorithm] | None = setting(None)
    """Learn from scores of the verdicts it wrote."""
    demonstrations: OneOrMany[Sft] | None = setting(None)
    """Learn from examples of verdicts."""
    pairs: OneOrMany[PairsAlgorithm] | None = setting(None)
    """Learn from preferences."""


def _short_or_by_port(value: Any) -> str:
    if isinstance(value, dict):
        return "<short>" if "name" in value else "<by_port>"
    return "<short>" if hasattr(value, "name") else "<by_port>"


_ActorShort = Annotated[RewardsAlgorithm | Sft | PreferenceAlgorithm, Field(discriminator="name")]
_CriticShort = Annotated[
    ValueLoss | Regression | Outcome | ImplicitPrm | LabelCrossEntropy, Field(discriminator="name")
]
_RewardShort = Annotated[
    BradleyTerry | LabelCrossEntropy | Regression | Outcome | ImplicitPrm,
    Field(discriminator="name"),
]
_VerifierShort = Annotated[
    RewardsAlgorithm
    | Sft
    | PreferenceAlgorithm
    | BradleyTerry
    | LabelCrossEntropy
    | Regression
    | Outcome
    | ImplicitPrm,
    Field(discriminator="name"),
]

_ONE = Field(title="one algorithm")

ActorAlgorithm = Annotated[
    Annotated[_ActorShort, Tag("<short>"), _ONE] | Annotated[ActorAlgorithms, Tag("<by_port>")],
    Discriminator(_short_or_by_port),
]
CriticAlgorithm = Annotated[
    Annotated[_CriticShort, Tag("<short>"), _ONE] | Annotated[CriticAlgorithms, Tag("<by_port>")],
    Discriminator(_short_or_by_port),
]
RewardAlgorithm = Annotated[
    Annotated[_RewardShort, Tag("<short>"), _ONE] | Annotated[RewardAlgorithms, Tag("<by_port>")],
    Discriminator(_short_or_by_port),
]
VerifierAlgorithm = Annotated[
    Annotated[_VerifierShort, Tag("<short>"), _ONE]
    | Annotated[VerifierAlgorithms, Tag("<by_port>")],
    Discriminator(_short_or_by_port),
]

PORTS_OF: dict[type[Section], tuple[str, ...]] = {
    RewardsAlgorithm: ("rewards",),
    PreferenceAlgorithm: ("pairs",),
    BradleyTerry: ("pairs",),
    LabelCrossEntropy: ("pairs", "labels"),
    Regression: ("labels",),
    Outcome: ("labels",),
    ImplicitPrm: ("labels",),
    Sft: ("demonstrations",),
    ValueLoss: ("returns",),
}
"""Which teaching ports an algorithm may serve."""
