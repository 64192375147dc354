"""The `algorithm` section: what a learner does with what arrives at a teaching port.

A section maps teaching ports to algorithms, each with a `name`; a port may have several with
weights. Where one teaching port is in use the short form `algorithm: {name: grpo}` will do. A
field that is not written takes the value of the named preset, so absence and `null` differ.

`resolve_*` turn a section into a frozen value with every field filled; recipes read nothing else.
Names and numbers are in `algorithms`, formulas in the recipes.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import Discriminator, Field, Tag, model_validator

from coloop.spec.algorithms.registry import (
    ADVANTAGES,
    AFTER_BASELINE,
    ALGORITHMS,
    DISTILLATION_BASE,
    PREFERENCE_BASE,
    PRESETS,
    REWARDS_BASE,
    advantages_that_need,
    family_of,
    names_with,
)
from coloop.spec.base import (
    Flag,
    Name,
    NodeId,
    Number,
    OneOrMany,
    Section,
    Text,
    Whole,
    as_tuple,
    problem,
    setting,
)
from coloop.spec.lean import record

if TYPE_CHECKING:
    from coloop.spec.graph import Edge, LoopSpec

PolicyLoss = Literal[
    "clipped",
    "policy_gradient",
    "sequence_clipped",
    "cispo",
    "sapo",
    "gmpo",
    "dppo",
    "vespo",
    "clip_cov",
    "kl_cov",
]
Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum", "constant"]
Estimator = Literal["k1", "k2", "k3"]
PreferenceLoss = Literal[
    "sigmoid", "hinge", "ipo", "robust", "exo", "nca", "bco", "sppo", "aot", "apo", "discopop"
]

Support = Literal["sampled", "top_k", "full"]
Divergence = Literal["reverse", "forward", "jsd"]
Tail = Literal["bucket", "renormalize", "drop"]
WordsDtype = Literal["float32", "float16"]

REWARDS_NAMES: tuple[str, ...] = names_with("rewards")
PREFERENCE_NAMES: tuple[str, ...] = names_with("preference")
DISTILLATION_NAMES: tuple[str, ...] = names_with("distillation")

if TYPE_CHECKING:
    Advantage = str
    RewardsName = str
    PreferenceName = str
    DistillationName = str
else:
    Advantage = Literal[tuple(ADVANTAGES)]
    RewardsName = Literal[REWARDS_NAMES]
    PreferenceName = Literal[PREFERENCE_NAMES]
    DistillationName = Literal[DISTILLATION_NAMES]


Weight = Annotated[
    Number,
    setting(
        ge=0,
        level="advanced",
        hot=True,
        description="Weight of this loss relative to the learner's other losses.",
    ),
]


_algorithm_name = partial(setting, title="Algorithm name", choices="algorithms", short="{}")


class Kl(Section, title="KL"):
    """A KL penalty towards the reference."""

    coefficient: Number = setting(0.001, ge=0, le=100, hot=True)
    """Strength of the penalty."""
    estimator: Estimator | None = setting(None, level="advanced")
    """k1 is x = log policy - log reference, k2 is x^2/2, k3 is e^-x + x - 1.

    Null: k2 in the loss, k1 in the reward."""
    into: Literal["loss", "reward"] = setting("loss", level="advanced")
    """Add it to the loss, or subtract it from the token rewards before advantages are computed."""
    by_ratio: Flag = setting(False, level="expert", hot=True)
    """In the loss: the term times the policy's ratio, so that its gradient is that of the KL."""
    target: Number | None = setting(None, gt=0, level="expert", hot=True)
    """Target KL to which the coefficient is adapted; null: constant coefficient."""
    horizon: Whole = setting(10_000, ge=1, level="expert", unit="rows")
    """How slowly the coefficient adapts."""
    reference: NodeId | None = setting(None, level="advanced", widget="node")
    """The node at port `reference` to which the KL is measured; needed where several are connected.
    The others are teachers."""


class Correction(Section):
    """Importance weights for a mismatch between engine and trainer: w = trainer / engine."""

    method: Literal["token_tis", "icepop", "sequence_mask", "none"] = setting("token_tis")
    """`token_tis` clamps w, `icepop` sets it to 0 outside the bounds, `sequence_mask` drops the
    row."""
    min: Number | None = setting(None, ge=0, level="advanced")
    """Minimum weight; null: no bound."""
    max: Number | None = setting(None, gt=0, level="advanced")
    """Maximum weight; null: 2 for `token_tis`, 5 for `icepop`, 3 for `sequence_mask`."""

    @property
    def is_empty_band(self) -> bool:
        """Whether no weight fits between the bounds."""
        return self.min is not None and self.max is not None and self.min >= self.max


class OffPolicy(Section):
    """Learn from rows that other nodes generated."""

    shaping: Number = setting(0.1, gt=0, hot=True)
    """c in the weight p / (p + c); no ratio, no clip."""
    prompt: Literal["own", "as_written"] = setting("own")
    """Learn them as completions of the learner's own prompt row, or of the prompt they were
    generated for."""


class RewardsAlgorithm(Section):
    """Learn from scores of its own rollouts."""

    unset_is_preset: ClassVar[bool] = True

    name: RewardsName = _algorithm_name()
    """A preset of advantage, loss and aggregation; each can be set separately."""
    advantage: Advantage | None = setting(None, level="advanced")
    """How scores become advantages."""
    loss: PolicyLoss | None = setting(None, level="advanced")
    """The policy loss of a token."""
    aggregation: Aggregation | None = setting(None, level="advanced")
    """How token losses become one number; the divisor is taken over the whole optimizer step."""
    divisor: Whole | None = setting(None, ge=1, level="expert", unit="tokens")
    """Tokens per row that `constant` divides by; null: the rollout's `max_new_tokens`."""
    clip_low: Number | None = setting(None, ge=0, lt=1, level="advanced", hot=True)
    """The ratio is clipped below at 1 - this; null: no clip."""
    clip_high: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """The ratio is clipped above at 1 + this; null: no clip."""
    dual_clip: Number | None = setting(None, gt=1, level="advanced", hot=True)
    """Cap the loss at this times the advantage where it is negative; null: off."""
    ratio_min: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """CISPO: minimum ratio itself, not its distance from 1."""
    ratio_max: Number | None = setting(None, gt=0, level="advanced", hot=True)
    """CISPO and DPPO: maximum ratio itself, not its distance from 1."""
    divergence: Literal["tv", "kl"] | None = setting(None, level="advanced")
    """DPPO: total variation or KL between the new and the old probability of a token."""
    divergence_low: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """DPPO: a token that has become less probable by more than this is not pushed down further."""
    divergence_high: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """DPPO: a token that has become more probable by more than this is not pushed up further."""
    old_policy: Literal["trainer", "engine"] | None = setting(None, level="expert")
    """Whose log-probs the ratio compares with: the trainer's before the update, or those of the
    engine that generated the text; then no `correction` is applied."""
    ratio_penalty: Number | None = setting(None, ge=0, level="expert", hot=True)
    """Weight of (log ratio)^2 in the loss, which keeps the policy near the old one; null: none."""
    reduce: Literal["mean", "sum"] | None = setting(None, level="expert")
    """`sequence_clipped`: mean (GSPO) or sum (the whole text's) of a sequence's log ratios."""
    epsilon: Number | None = setting(None, ge=0, level="expert")
    """Added to the standard deviation."""
    deviation: Literal["unbiased", "population", "leave_one_out", "batch", "none"] | None = setting(
        None, level="expert"
    )
    """Which standard deviation scales advantages: that of the group, of the others in it, or of the
    whole batch."""
    whiten: Flag | None = setting(None, level="advanced")
    """Normalize advantages to mean 0 and standard deviation 1 over all trained tokens."""
    whiten_deviation: Literal["unbiased", "population"] | None = setting(None, level="expert")
    """Which deviation whitening divides by."""
    gamma: Number | None = setting(None, ge=0, le=1, level="advanced")
    """Discount from token to token."""
    gae_lambda: Number | None = setting(None, ge=0, le=1, level="advanced")
    """GAE: how far advantages look ahead; 1: to the end."""
    baseline_decay: Number | None = setting(None, ge=0, lt=1, level="advanced")
    """RAE: share of the old baseline that is kept with each text (moving average)."""
    length_alpha: Number | None = setting(None, ge=0, level="advanced")
    """VAPO: lambda = 1 - 1 / (alpha * length); null: `gae_lambda`."""
    reward_clip: Number | None = setting(None, gt=0, level="advanced")
    """Scores are clipped to plus or minus this; null: no clip."""
    entropy: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """Bonus on the entropy of the policy."""
    kl: Kl | None = setting(None)
    """KL penalty towards the reference at port `reference`; null: none."""
    correction: Correction | None = setting(None, level="advanced")
    """Importance weights for a mismatch between engine and trainer; if omitted: token TIS with a
    cap of 2."""
    off_policy: OffPolicy | None = setting(None, level="advanced")
    """Use rows that other nodes generated; null: they are ignored."""
    tau_positive: Number | None = setting(None, gt=0, level="expert")
    """SAPO: temperature where the advantage is positive."""
    tau_negative: Number | None = setting(None, gt=0, level="expert")
    """SAPO: temperature where the advantage is negative."""
    k_positive: Number | None = setting(None, ge=0, level="expert")
    """VESPO: power of the text's ratio in its weight, where the advantage is not negative."""
    k_negative: Number | None = setting(None, ge=0, level="expert")
    """VESPO: power of the text's ratio in its weight, where the advantage is negative."""
    lambda_positive: Number | None = setting(None, gt=0, level="expert")
    """VESPO: decay of the weight with the text's ratio, where the advantage is not negative."""
    lambda_negative: Number | None = setting(None, gt=0, level="expert")
    """VESPO: decay of the weight with the text's ratio, where the advantage is negative."""
    covariance_share: Number | None = setting(None, gt=0, le=1, level="expert")
    """Clip-Cov and KL-Cov: share of tokens that are dropped or held back."""
    allow_group_of_one: Flag = setting(False, level="expert")
    """Accept groups of one row where the baseline needs more: their advantage is 0."""
    weight: Weight = 1.0

    @model_validator(mode="after")
    def _settings_fit_together(self) -> Self:
        loss = self.loss or PRESETS[self.name].get("loss")
        usual = PRESETS[self.name].get("aggregation")
        if loss == "sequence_clipped" and usual != self.aggregation == "token_mean":
            raise problem(
                "conflict", "a ratio of sequences needs `sequence_mean`", field="aggregation"
            )
        if self.kl is not None and self.kl.by_ratio and self._kl_into() == "reward":
            raise problem(
                "conflict", "a reward has no ratio: `by_ratio` needs `into: loss`", field="kl"
            )
        if self.correction is not None and self.correction.is_empty_band:
            raise problem("bad_value", "`max` must be greater than `min`", field="correction")
        self._correction_fits(loss)
        return self

    def _correction_fits(self, loss: str | None) -> None:
        """Raises if the importance weights of the correction cannot be combined with the loss."""
        method = _method_of(self.correction, PRESETS[self.name].get("correction"))
        if self.correction is not None and method != "none" and _compares_engine(self):
            raise problem(
                "conflict",
                "a ratio to the engine's log-probs is its own correction: remove `correction`, or "
                "set `old_policy: trainer`",
                field="correction",
            )
        if loss == "vespo" and method == "sequence_mask":
            raise problem(
                "conflict",
                "`vespo` multiplies the weights of a text's tokens: use `token_tis`, `icepop` or "
                "`none`",
                field="correction",
            )

    def _kl_into(self) -> str:
        assert self.kl is not None
        preset = PRESETS[self.name].get("kl") or {}
        written = "into" in self.kl.model_fields_set
        return self.kl.into if written else preset.get("into", self.kl.into)


def _compares_engine(entry: RewardsAlgorithm) -> bool:
    """Whether the ratio of an algorithm is to the engine's log-probs."""
    return (entry.old_policy or PRESETS[entry.name].get("old_policy")) == "engine"


def _method_of(section: Correction | None, preset: Mapping[str, Any] | None) -> str:
    """The method of a written correction, else of the preset's, else of the base."""
    if section is not None and "method" in section.model_fields_set:
        return section.method
    base: str = (preset or REWARDS_BASE["correction"])["method"]
    return base


class PreferenceAlgorithm(Section):
    """Learn from pairs: make the chosen side more likely, the rejected one less."""

    unset_is_preset: ClassVar[bool] = True

    name: PreferenceName = _algorithm_name()
    """A preset of loss, beta and reduction."""
    beta: Number | None = setting(None, gt=0, hot=True)
    """How strongly the policy is kept near the reference."""
    loss: PreferenceLoss | None = setting(None, level="advanced")
    """The loss of the margin z between chosen and rejected."""
    label_smoothing: Number | None = setting(None, ge=0, lt=0.5, level="advanced")
    """Assumed share of pairs with swapped labels."""
    reduce: Literal["sum", "mean"] | None = setting(None, level="advanced")
    """Sum or mean of a side's token log-probs."""
    sft: Number | None = setting(None, ge=0, le=1, level="advanced", hot=True)
    """Share a of SFT on the chosen side: a * sft + (1 - a) * loss."""
    gamma: Number | None = setting(None, ge=0, level="advanced")
    """SimPO: margin by which the chosen side must lead."""
    weight: Weight = 1.0


class DistillationAlgorithm(Section, title="Distillation"):
    """Learn from what teachers say of the tokens of texts, at port `reference`."""

    unset_is_preset: ClassVar[bool] = True

    name: DistillationName = _algorithm_name()
    """A preset of support, divergence and their settings; each can be set separately."""
    support: Support | None = setting(None)
    """Where policy p and teacher q are compared: at the token that was sampled, at the teacher's k
    most likely tokens, or over the whole vocabulary."""
    divergence: Divergence | None = setting(None)
    """Reverse: KL(p, q), forward: KL(q, p), jsd: between them by `beta`. At sampled tokens only
    `reverse` can be measured."""
    beta: Number | None = setting(None, gt=0, lt=1, level="advanced", hot=True)
    """jsd: beta KL(q, m) + (1 - beta) KL(p, m), where m = beta q + (1 - beta) p."""
    k: Whole | None = setting(None, ge=1, le=65_536, unit="tokens")
    """`top_k`: how many tokens a teacher reports at each position."""
    tail: Tail | None = setting(None, level="advanced")
    """`top_k`: the probability of all other tokens counts as that of one more token, or those of
    the k tokens are scaled to a sum of 1, or it is dropped."""
    temperature: Number | None = setting(None, gt=0, le=100, level="advanced")
    """`top_k` and `full`: temperature of both distributions; null: that of sampling."""
    clip: Number | None = setting(None, gt=0, level="advanced", hot=True)
    """The divergence of a token counts at most this much; null: no bound."""
    correction: Correction | None = setting(None, level="advanced")
    """`sampled`: importance weights for a mismatch between engine and trainer; if omitted: token
    TIS with a cap of 2."""
    dtype: WordsDtype | None = setting(None, level="expert")
    """`full`: type in which a teacher's log-probs are sent."""
    weight: Weight = 1.0

    @model_validator(mode="after")
    def _settings_fit_together(self) -> Self:
        preset = {**DISTILLATION_BASE, **PRESETS[self.name]}
        support = self.support or preset["support"]
        divergence = self.divergence or preset["divergence"]
        if support == "sampled" and divergence != "reverse":
            raise problem(
                "conflict",
                f"`divergence: {divergence}` needs more of a teacher than log-probs of the sampled "
                "tokens: set `support` to `top_k` or `full`",
                field="divergence" if self.divergence else "support",
            )
        if self.correction is not None and self.correction.is_empty_band:
            raise problem("bad_value", "`max` must be greater than `min`", field="correction")
        return self


class BradleyTerry(Section):
    """Trains a scorer to score the chosen side higher than the rejected one."""

    name: Literal["bradley_terry"] = _algorithm_name()
    """Loss: -log sigmoid(chosen - rejected - margin)."""
    margin: Name | None = setting(None, level="advanced", widget="column")
    """Column with the margin of a pair; null: none."""
    center: Number | None = setting(None, ge=0, level="advanced")
    """Strength of the term that keeps the mean score near 0; null: off."""
    soft: Flag = setting(False, level="advanced")
    """Read the pair's `probability` as a soft label."""
    label_smoothing: Number = setting(0.0, ge=0, lt=0.5, level="advanced")
    """Assumed share of pairs with swapped labels."""
    weight: Weight = 1.0


class LabelCrossEntropy(Section):
    """Trains a language model to output the right label word."""

    name: Literal["label_ce"] = _algorithm_name()
    """Cross-entropy restricted to the label words of `read.labels`."""
    label_smoothing: Number = setting(0.0, ge=0, lt=0.5, level="advanced")
    """Assumed share of wrong labels."""
    soft: Flag = setting(False, level="advanced")
    """Labels between 0 and 1 are probabilities."""
    labels: tuple[Text, ...] | None = setting(None, level="advanced")
    """Label words; null: those of `read`."""
    weight: Weight = 1.0


class Regression(Section):
    """Trains a scorer on numeric labels."""

    name: Literal["regression"] = _algorithm_name()
    """Mean squared error to the labels."""
    weight: Weight = 1.0


class Outcome(Section):
    """Trains a scorer to tell right from wrong."""

    name: Literal["outcome"] = _algorithm_name()
    """Binary cross-entropy of the score, whole or step by step."""
    soft: Flag = setting(False, level="advanced")
    """Labels between 0 and 1 are probabilities; else they are rounded."""
    weight: Weight = 1.0


class ImplicitPrm(Section, title="Implicit PRM"):
    """A language model that learns from outcomes and gives a reward for each token."""

    name: Literal["implicit_prm"] = _algorithm_name()
    """Binary cross-entropy of sigmoid(beta * sum(log policy - log prior))."""
    beta: Number = setting(0.05, gt=0, hot=True)
    """Scale of the log ratio."""
    soft: Flag = setting(False, level="advanced")
    """Labels between 0 and 1 are probabilities."""
    weight: Weight = 1.0


class Sft(Section, title="SFT"):
    """Supervised fine-tuning on demonstrations."""

    name: Literal["sft"] = _algorithm_name()
    """Cross-entropy on `target` after `prompt`; if that is a chat, on its assistant messages."""
    mask: tuple[Name, ...] = setting((), level="advanced")
    """Tags whose content is not trained on."""
    weight: Weight = 1.0


class ValueLoss(Section):
    """Trains a critic on returns."""

    name: Literal["value"] = _algorithm_name()
    """Half the squared error to the returns, clipped around the old value."""
    clip: Number | None = setting(0.5, gt=0, level="advanced")
    """Maximum change of a value that counts; null: no clipping."""
    gae_lambda: Number | None = setting(None, ge=0, le=1, level="advanced")
    """Lambda of the returns it learns; null: the actor's."""
    weight: Weight = 1.0


_Pairs = PreferenceAlgorithm | BradleyTerry | LabelCrossEntropy
_Labels = Regression | Outcome | ImplicitPrm | LabelCrossEntropy
PairsAlgorithm = Annotated[_Pairs, Field(discriminator="name")]
ScorerPairs = Annotated[BradleyTerry | LabelCrossEntropy, Field(discriminator="name")]
LabelsAlgorithm = Annotated[_Labels, Field(discriminator="name")]
Algorithm = RewardsAlgorithm | DistillationAlgorithm | _Pairs | _Labels | Sft | ValueLoss


class ActorAlgorithms(Section, title="one for each port"):
    """What an actor does with each of its teaching ports."""

    rewards: OneOrMany[RewardsAlgorithm] | None = setting(None)
    """Learn from scores of its own rollouts."""
    demonstrations: OneOrMany[Sft] | None = setting(None)
    """Learn from examples."""
    pairs: OneOrMany[PreferenceAlgorithm] | None = setting(None)
    """Learn from preferences."""
    reference: OneOrMany[DistillationAlgorithm] | None = setting(None)
    """Learn from teachers; without it, the port serves KL and preference losses."""


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
    """Learn from ground-truth labels of what it judged."""
    rewards: OneOrMany[RewardsAlgorithm] | None = setting(None)
    """Learn from scores of the verdicts it generated."""
    demonstrations: OneOrMany[Sft] | None = setting(None)
    """Learn from examples of verdicts."""
    pairs: OneOrMany[PairsAlgorithm] | None = setting(None)
    """Learn from preferences."""


def _short_or_by_port(value: Any) -> str:
    if isinstance(value, dict):
        return "<short>" if "name" in value else "<by_port>"
    return "<short>" if hasattr(value, "name") else "<by_port>"


ShortForm = TypeVar("ShortForm")
ByPort = TypeVar("ByPort")
_ShortOrByPort = Annotated[
    Annotated[ShortForm, Field(discriminator="name"), Tag("<short>"), Field(title="one algorithm")]
    | Annotated[ByPort, Tag("<by_port>")],
    Discriminator(_short_or_by_port),
]

ActorAlgorithm = _ShortOrByPort[
    RewardsAlgorithm | Sft | PreferenceAlgorithm | DistillationAlgorithm, ActorAlgorithms
]
CriticAlgorithm = _ShortOrByPort[ValueLoss | _Labels, CriticAlgorithms]
RewardAlgorithm = _ShortOrByPort[BradleyTerry | LabelCrossEntropy | _Labels, RewardAlgorithms]
VerifierAlgorithm = _ShortOrByPort[RewardsAlgorithm | Sft | _Pairs | _Labels, VerifierAlgorithms]

PORTS_OF: dict[type[Section], tuple[str, ...]] = {
    RewardsAlgorithm: ("rewards",),
    PreferenceAlgorithm: ("pairs",),
    DistillationAlgorithm: ("reference",),
    BradleyTerry: ("pairs",),
    LabelCrossEntropy: ("pairs", "labels"),
    Regression: ("labels",),
    Outcome: ("labels",),
    ImplicitPrm: ("labels",),
    Sft: ("demonstrations",),
    ValueLoss: ("returns",),
}
"""Which teaching ports an algorithm may serve."""

NEEDS_GROUP = advantages_that_need("group")
_NULL_COUNTS = frozenset(
    {
        *("clip_low", "clip_high", "dual_clip", "ratio_min", "ratio_max"),
        *("length_alpha", "reward_clip", "entropy", "ratio_penalty", "clip", "temperature"),
    }
)
"""Fields in which `null` says "none"; in the others it says "the preset's"."""
SMOOTHED_LOSSES = frozenset({"sigmoid", "robust", "exo", "aot", "simpo"})
"""Losses of pairs that read `label_smoothing`."""
SOFT_LOSSES = frozenset({"sigmoid", "hinge", "ipo"})
"""Losses of the margin alone, which are defined for pairs with a probability between 0 and 1."""
_CORRECTION_MAX = {"token_tis": 2.0, "icepop": 5.0, "sequence_mask": 3.0, "none": None}


class ResolvedKl(Kl):
    """A KL penalty with its estimator."""

    estimator: Estimator


@record
class ResolvedRewards:
    """An algorithm of port `rewards` with every field filled, under the names of the language."""

    name: str
    family: str
    advantage: str
    loss: str
    aggregation: str
    divisor: int | None
    clip_low: float | None
    clip_high: float | None
    dual_clip: float | None
    ratio_min: float | None
    ratio_max: float | None
    divergence: str
    divergence_low: float
    divergence_high: float
    old_policy: str
    ratio_penalty: float | None
    reduce: str
    epsilon: float
    deviation: str
    whiten: bool
    whiten_deviation: str
    gamma: float
    gae_lambda: float
    baseline_decay: float
    length_alpha: float | None
    reward_clip: float | None
    penalizes_after_baseline: bool
    """KL in the reward is taken from each token, and rewards are clipped, after the baseline."""
    entropy: float | None
    kl: ResolvedKl | None
    correction: Correction
    off_policy: OffPolicy | None
    tau_positive: float
    tau_negative: float
    k_positive: float
    k_negative: float
    lambda_positive: float
    lambda_negative: float
    covariance_share: float
    combine: str
    """How several rewards become one, where `credit.combine` is null."""
    allow_group_of_one: bool
    weight: float

    @property
    def port(self) -> str:
        return "rewards"

    @property
    def needs_reference(self) -> bool:
        return self.kl is not None

    @property
    def needs_values(self) -> bool:
        return ADVANTAGES[self.advantage].needs == "values"

    @property
    def needs_greedy(self) -> bool:
        """Whether it needs one greedy row for each prompt."""
        return ADVANTAGES[self.advantage].needs == "greedy"

    @property
    def needs_baseline(self) -> bool:
        """Whether it compares rewards with a moving average of earlier ones."""
        return ADVANTAGES[self.advantage].needs == "baseline"

    @property
    def needs_group(self) -> bool:
        """Whether a group of one row teaches it nothing."""
        return self.advantage in NEEDS_GROUP


@record
class ResolvedPreference:
    """A preference algorithm of port `pairs` with every field filled."""

    name: str
    family: str
    beta: float
    loss: str
    label_smoothing: float
    reduce: str
    sft: float
    gamma: float
    weight: float

    @property
    def port(self) -> str:
        return "pairs"

    @property
    def needs_reference(self) -> bool:
        return ALGORITHMS[self.family].needs_reference


@record
class ResolvedDistillation:
    """A distillation algorithm of port `reference` with every field filled."""

    name: str
    family: str
    support: str
    divergence: str
    beta: float
    k: int
    tail: str
    temperature: float | None
    clip: float | None
    correction: Correction
    dtype: str
    weight: float

    @property
    def port(self) -> str:
        return "reference"

    @property
    def own_temperature(self) -> float | None:
        """Temperature of both distributions; None: that at which each row was sampled."""
        return None if self.support == "sampled" else self.temperature

    @property
    def words(self) -> int | None:
        """Words that a teacher reports at each token; 0: only the token, None: all."""
        return 0 if self.support == "sampled" else self.k if self.support == "top_k" else None


def resolve_rewards_algorithm(
    entry: RewardsAlgorithm, *, max_new_tokens: int | None = None
) -> ResolvedRewards:
    """Fill every field of a `rewards` algorithm; `max_new_tokens` is the default divisor."""
    preset = {**REWARDS_BASE, **PRESETS[entry.name]}
    values = {**preset, **_written(entry, except_for=("name", "kl", "correction", "off_policy"))}
    kl, off_policy = _merged(entry, "kl", preset), _merged(entry, "off_policy", preset)
    correction = _merged(entry, "correction", preset) or {"method": "none"}
    if _compares_engine(entry):
        correction = {"method": "none"}
    values |= {
        "divisor": values["divisor"] or max_new_tokens,
        "deviation": values["deviation"] or deviation_of(values["advantage"]),
        "kl": None if kl is None else _resolve_kl(kl),
        "correction": _resolve_correction(correction),
        "off_policy": None if off_policy is None else OffPolicy(**off_policy),
        "penalizes_after_baseline": entry.name in AFTER_BASELINE,
        "allow_group_of_one": entry.allow_group_of_one,
        "weight": entry.weight,
    }
    del values["kl_form"]
    return ResolvedRewards(name=entry.name, family=family_of(entry.name), **values)


def resolve_pairs_algorithm(
    entry: PreferenceAlgorithm | BradleyTerry | LabelCrossEntropy,
) -> ResolvedPreference | BradleyTerry | LabelCrossEntropy:
    """Fill every field of a `pairs` algorithm; those of scorers are already complete."""
    if not isinstance(entry, PreferenceAlgorithm):
        return entry
    values = {**PREFERENCE_BASE, **PRESETS[entry.name]}
    values |= _written(entry, except_for=("name",))
    values["weight"] = entry.weight
    return ResolvedPreference(name=entry.name, family=family_of(entry.name), **values)


def resolve_distillation(entry: DistillationAlgorithm) -> ResolvedDistillation:
    """Fill every field of a distillation algorithm."""
    preset = {**DISTILLATION_BASE, **PRESETS[entry.name]}
    values = {**preset, **_written(entry, except_for=("name", "correction"))}
    correction = _merged(entry, "correction", preset) or {"method": "none"}
    values |= {"correction": _resolve_correction(correction), "weight": entry.weight}
    return ResolvedDistillation(name=entry.name, family=family_of(entry.name), **values)


def resolve_algorithm(entry: Algorithm, *, max_new_tokens: int | None = None) -> Any:
    """Fill every field of an algorithm; those without presets are already complete."""
    match entry:
        case RewardsAlgorithm():
            return resolve_rewards_algorithm(entry, max_new_tokens=max_new_tokens)
        case PreferenceAlgorithm():
            return resolve_pairs_algorithm(entry)
        case DistillationAlgorithm():
            return resolve_distillation(entry)
    return entry


def reads(entry: Algorithm) -> frozenset[str]:
    """The serving ports that an algorithm reads: `reference`, `values`, `prior`."""
    full = resolve_algorithm(entry)
    needed = {
        "reference": getattr(full, "needs_reference", False),
        "values": getattr(full, "needs_values", False),
        "prior": isinstance(entry, ImplicitPrm),
    }
    return frozenset(port for port, is_needed in needed.items() if is_needed)


def reference_edges(spec: "LoopSpec", node: str, port: str) -> "tuple[Edge, ...]":
    """Edges at port `reference` that the algorithms of a teaching port read: at `reference` its
    teachers; at `rewards` what `kl.reference` names, without a name those that teach nothing; at
    others those that score pairs, if some teach."""
    graph = spec.graph
    edges = graph.edges_into(node, "reference")
    if not graph.is_taught_at(node, "reference"):
        named = kl_references(spec.nodes[node]) if port == "rewards" else frozenset()
        return tuple(edge for edge in edges if not named or edge.source.node in named)
    if port == "reference":
        return tuple(edge for edge in edges if graph.teaches(edge))
    if port == "rewards":
        return tuple(edge for edge in edges if not graph.teaches(edge))
    return tuple(edge for edge in edges if graph.edges_into(edge.source.node, "pairs"))


def distillations(spec: "LoopSpec", node: str) -> tuple[ResolvedDistillation, ...]:
    """What a node does with what teachers say, with every field filled."""
    entries = node_algorithms(spec, node).get("reference", ())
    full = map(resolve_algorithm, entries)
    return tuple(one for one in full if isinstance(one, ResolvedDistillation))


def taught_students(spec: "LoopSpec", reference: str) -> tuple[ResolvedDistillation, ...]:
    """What learners of a reference do with what it says as a teacher."""
    edges = spec.graph.edges_out_of(reference, "log_probs")
    students = dict.fromkeys(edge.target.node for edge in edges if spec.graph.teaches(edge))
    return tuple(full for student in students for full in distillations(spec, student))


def measures_others(entry: Algorithm) -> bool:
    """Whether a `pairs` algorithm scores answers under the prompts of other pairs."""
    return isinstance(entry, PreferenceAlgorithm) and resolve_algorithm(entry).loss == "kto"


def has_entry(node: object, port: str) -> bool:
    """Whether the `algorithm` section of a node says what it does with a teaching port."""
    section: Any = getattr(node, "algorithm", None)
    if type(section) in PORTS_OF:
        return port in PORTS_OF[type(section)]
    return bool(getattr(section, port, None))


def kl_references(node: object) -> frozenset[str]:
    """Nodes that the KL terms of a node's algorithms name as their reference."""
    section = getattr(node, "algorithm", None)
    entries = (section,) if type(section) in PORTS_OF else getattr(section, "rewards", None)
    kls = (getattr(entry, "kl", None) for entry in as_tuple(entries or ()))
    return frozenset(kl.reference for kl in kls if kl is not None and kl.reference is not None)


def node_algorithms(spec: "LoopSpec", node: str) -> dict[str, tuple[Algorithm, ...]]:
    """What a node does with each of its teaching ports, the short form resolved.

    The short form serves every connected teaching port that its algorithm may serve; where none is
    connected, the first that it may serve.
    """
    section = getattr(spec.nodes[node], "algorithm", None)
    if section is None:
        return {}
    if type(section) in PORTS_OF:
        allowed = PORTS_OF[type(section)]
        connected = [port for port in spec.graph.teaching_ports(node) if port in allowed]
        return dict.fromkeys(connected or allowed[:1], (section,))
    named = {port: as_tuple(getattr(section, port)) for port in type(section).model_fields}
    return {port: entries for port, entries in named.items() if entries}


def algorithm_paths(spec: "LoopSpec", node: str) -> Iterator[tuple[str, str, Algorithm]]:
    """Each algorithm of a node: its teaching port, where it is written, and the algorithm."""
    section = getattr(spec.nodes[node], "algorithm", None)
    for port, entries in node_algorithms(spec, node).items():
        at = f"nodes.{node}.algorithm" + ("" if type(section) in PORTS_OF else f".{port}")
        is_listed = isinstance(getattr(section, port, None), tuple)
        for number, entry in enumerate(entries):
            yield port, f"{at}.{number}" if is_listed else at, entry


def off_policy_of(spec: "LoopSpec", node: str) -> OffPolicy | None:
    """The `off_policy` section of a node's first algorithm that has one."""
    entries = node_algorithms(spec, node).get("rewards", ())
    sections = (resolve_algorithm(entry).off_policy for entry in entries)
    return next((section for section in sections if section is not None), None)


def compares_groups(spec: "LoopSpec", node: str) -> bool:
    """Whether a node learns from rewards by comparing rows that were written for one prompt."""
    group_by = getattr(getattr(spec.nodes[node], "credit", None), "group_by", None)
    if group_by is not None and "prompt" not in group_by:
        return False
    entries = node_algorithms(spec, node).get("rewards", ())
    return any(resolve_algorithm(entry).needs_group for entry in entries)


def lambda_of(spec: "LoopSpec", critic: str) -> float | None:
    """`gae_lambda` of a critic's returns; None: that of its actor's advantages."""
    entries = node_algorithms(spec, critic).get("returns", ())
    return next((entry.gae_lambda for entry in entries if isinstance(entry, ValueLoss)), None)


def asks_of_others(spec: "LoopSpec", reference: str) -> bool:
    """Whether a learner scores answers of this reference under the prompts of other pairs."""
    learners = {edge.target.node for edge in spec.graph.edges_out_of(reference, "log_probs")}
    return any(
        measures_others(entry)
        for learner in learners & spec.nodes.keys()
        for entry in node_algorithms(spec, learner).get("pairs", ())
    )


def _written(entry: Section, except_for: tuple[str, ...]) -> dict[str, Any]:
    """The fields that are set; `null` counts only where it means "none"."""
    return {
        name: getattr(entry, name)
        for name in type(entry).model_fields
        if name in entry.model_fields_set
        and name not in except_for
        and (getattr(entry, name) is not None or name in _NULL_COUNTS)
    }


def _merged(
    entry: RewardsAlgorithm | DistillationAlgorithm, field: str, preset: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """A nested section as written; fields left out take the preset's values, those of a `kl` that
    the preset does not have its form."""
    section = getattr(entry, field)
    base: Mapping[str, Any] = preset[field] or {}
    if field == "kl" and not base and section is not None and section.into == "loss":
        base = preset["kl_form"]
    if field not in entry.model_fields_set:
        return base or None
    if section is None:
        return None
    written = {name: getattr(section, name) for name in section.model_fields_set}
    if field == "correction" and written.get("method", base.get("method")) != base.get("method"):
        base = {}
    return {**base, **written}


def deviation_of(advantage: str) -> str:
    return ADVANTAGES[advantage].deviation


def _resolve_kl(kl: Mapping[str, Any]) -> ResolvedKl:
    default = "k1" if kl.get("into") == "reward" else "k2"
    return ResolvedKl(**{**kl, "estimator": kl.get("estimator") or default})


def _resolve_correction(correction: Mapping[str, Any]) -> Correction:
    section = Correction(**correction)
    maximum = _CORRECTION_MAX[section.method] if section.max is None else section.max
    return section.model_copy(update={"max": maximum})
