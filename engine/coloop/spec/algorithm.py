"""Algorithms in full: what is written, completed by the preset that its name stands for.

`resolve_*` turn a section into a frozen value with every field filled; recipes read nothing else.
`node_algorithms` resolves the short form against the teaching ports that are connected. The
sections themselves are in `algorithm_fields`, names and numbers in `algorithms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coloop.spec.algorithm_fields import (
    PORTS_OF,
    PREFERENCE_NAMES,
    REWARDS_NAMES,
    ActorAlgorithm,
    ActorAlgorithms,
    Algorithm,
    BradleyTerry,
    Correction,
    CriticAlgorithm,
    CriticAlgorithms,
    ImplicitPrm,
    Kl,
    LabelCrossEntropy,
    LabelsAlgorithm,
    OffPolicy,
    Outcome,
    PairsAlgorithm,
    PreferenceAlgorithm,
    Regression,
    RewardAlgorithm,
    RewardAlgorithms,
    RewardsAlgorithm,
    Sft,
    ValueLoss,
    VerifierAlgorithm,
    VerifierAlgorithms,
)
from coloop.spec.algorithms.registry import (
    ADVANTAGES,
    AFTER_BASELINE,
    ALGORITHMS,
    PREFERENCE_BASE,
    PRESETS,
    REWARDS_BASE,
    advantages_that_need,
    family_of,
)
from coloop.spec.base import Section, as_tuple

if TYPE_CHECKING:
    from coloop.spec.graph import LoopSpec

__all__ = [
    "NEEDS_GROUP",
    "PORTS_OF",
    "PREFERENCE_NAMES",
    "PRESETS",
    "REWARDS_NAMES",
    "SMOOTHED_LOSSES",
    "SOFT_LOSSES",
    "ActorAlgorithm",
    "ActorAlgorithms",
    "Algorithm",
    "BradleyTerry",
    "Correction",
    "CriticAlgorithm",
    "CriticAlgorithms",
    "ImplicitPrm",
    "Kl",
    "LabelCrossEntropy",
    "LabelsAlgorithm",
    "OffPolicy",
    "Outcome",
    "PairsAlgorithm",
    "PreferenceAlgorithm",
    "Regression",
    "ResolvedCorrection",
    "ResolvedKl",
    "ResolvedOffPolicy",
    "ResolvedPreference",
    "ResolvedRewards",
    "RewardAlgorithm",
    "RewardAlgorithms",
    "RewardsAlgorithm",
    "Sft",
    "ValueLoss",
    "VerifierAlgorithm",
    "VerifierAlgorithms",
    "asks_of_others",
    "compares_groups",
    "deviation_of",
    "family_of",
    "lambda_of",
    "measures_others",
    "node_algorithms",
    "reads",
    "resolve_algorithm",
    "resolve_pairs_algorithm",
    "resolve_rewards_algorithm",
]

NEEDS_GROUP = advantages_that_need("group")
"""Advantages that compare the rows of a group."""
_NULL_COUNTS = frozenset(
    {
        "clip_low",
        "clip_high",
        "dual_clip",
        "ratio_min",
        "ratio_max",
        "length_alpha",
        "reward_clip",
        "entropy",
    }
)
"""Fields in which `null` says "none"; in the others it says "the preset's"."""
SMOOTHED_LOSSES = frozenset({"sigmoid", "robust", "exo", "aot", "simpo"})
"""Losses of pairs that read `label_smoothing`."""
SOFT_LOSSES = frozenset({"sigmoid", "hinge", "ipo"})
"""Losses of the margin alone, which are defined for pairs with a probability between 0 and 1."""
_CORRECTION_MAX = {"token_tis": 2.0, "icepop": 5.0, "sequence_mask": 3.0, "none": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedKl:
    """A pull towards the reference, complete."""

    coefficient: float
    estimator: str
    into: str
    by_ratio: bool
    target: float | None
    horizon: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedCorrection:
    """Weights between engine and trainer, complete; `None` in a bound: no bound."""

    method: str
    min: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOffPolicy:
    """How rows of others are learned."""

    shaping: float
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
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
    reduce: str
    epsilon: float
    deviation: str
    whiten: bool
    whiten_deviation: str
    gamma: float
    gae_lambda: float
    length_alpha: float | None
    reward_clip: float | None
    penalizes_after_baseline: bool
    """KL in the reward is taken from each token, and rewards are clipped, after the baseline."""
    entropy: float | None
    kl: ResolvedKl | None
    correction: ResolvedCorrection
    off_policy: ResolvedOffPolicy | None
    tau_positive: float
    tau_negative: float
    covariance_share: float
    allow_group_of_one: bool
    weight: float

    @property
    def port(self) -> str:
        """The teaching port it serves."""
        return "rewards"

    @property
    def needs_reference(self) -> bool:
        """Whether it reads log-probs of a reference."""
        return self.kl is not None

    @property
    def needs_values(self) -> bool:
        """Whether it reads values of a critic."""
        return ADVANTAGES[self.advantage].needs == "values"

    @property
    def needs_greedy(self) -> bool:
        """Whether it wants one greedy row a prompt."""
        return ADVANTAGES[self.advantage].needs == "greedy"

    @property
    def needs_group(self) -> bool:
        """Whether a group of one row teaches it nothing."""
        return self.advantage in NEEDS_GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
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
        """The teaching port it serves."""
        return "pairs"

    @property
    def needs_reference(self) -> bool:
        """Whether it reads log-probs of a reference."""
        return ALGORITHMS[self.family].needs_reference


def resolve_rewards_algorithm(
    entry: RewardsAlgorithm, *, max_new_tokens: int | None = None
) -> ResolvedRewards:
    """Complete an algorithm of port `rewards`; `max_new_tokens` fills the constant divisor."""
    preset = {**REWARDS_BASE, **PRESETS[entry.name]}
    written = _written(entry, except_for=("name", "kl", "correction", "off_policy"))
    values = {**preset, **written}
    kl = _merged(entry, "kl", preset)
    correction = _merged(entry, "correction", preset) or {"method": "none"}
    off_policy = _merged(entry, "off_policy", preset)
    values |= {
        "divisor": values["divisor"] or max_new_tokens,
        "deviation": values["deviation"] or deviation_of(values["advantage"]),
        "kl": None if kl is None else _resolve_kl(kl),
        "correction": _resolve_correction(correction),
        "off_policy": None if off_policy is None else _resolve_off_policy(off_policy),
        "penalizes_after_baseline": entry.name in AFTER_BASELINE,
        "allow_group_of_one": entry.allow_group_of_one,
        "weight": entry.weight,
    }
    return ResolvedRewards(name=entry.name, family=family_of(entry.name), **values)


def resolve_pairs_algorithm(
    entry: PreferenceAlgorithm | BradleyTerry | LabelCrossEntropy,
) -> ResolvedPreference | BradleyTerry | LabelCrossEntropy:
    """Complete an algorithm of port `pairs`; scorers' algorithms are complete as they are."""
    if not isinstance(entry, PreferenceAlgorithm):
        return entry
    values = {**PREFERENCE_BASE, **PRESETS[entry.name]}
    values |= _written(entry, except_for=("name",))
    values["weight"] = entry.weight
    return ResolvedPreference(name=entry.name, family=family_of(entry.name), **values)


def resolve_algorithm(entry: Algorithm, *, max_new_tokens: int | None = None) -> Any:
    """Complete any algorithm; those without presets are complete as they are."""
    match entry:
        case RewardsAlgorithm():
            return resolve_rewards_algorithm(entry, max_new_tokens=max_new_tokens)
        case PreferenceAlgorithm():
            return resolve_pairs_algorithm(entry)
    return entry


def reads(entry: Algorithm) -> frozenset[str]:
    """The serving ports that an algorithm reads: `reference`, `values`, `prior`."""
    match entry:
        case RewardsAlgorithm():
            full = resolve_rewards_algorithm(entry)
            wanted = {"reference": full.needs_reference, "values": full.needs_values}
            return frozenset(port for port, needed in wanted.items() if needed)
        case PreferenceAlgorithm():
            needs_reference = ALGORITHMS[family_of(entry.name)].needs_reference
            return frozenset({"reference"} if needs_reference else ())
        case ImplicitPrm():
            return frozenset({"prior"})
    return frozenset()


def measures_others(entry: Algorithm) -> bool:
    """Whether an algorithm of port `pairs` measures answers under the prompts of other pairs."""
    if not isinstance(entry, PreferenceAlgorithm):
        return False
    return getattr(resolve_pairs_algorithm(entry), "loss", None) == "kto"


def node_algorithms(spec: LoopSpec, node: str) -> dict[str, tuple[Algorithm, ...]]:
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


def algorithm_paths(spec: LoopSpec, node: str) -> Iterator[tuple[str, str, Algorithm]]:
    """Each algorithm of a node: its teaching port, where it is written, and the algorithm."""
    section = getattr(spec.nodes[node], "algorithm", None)
    for port, entries in node_algorithms(spec, node).items():
        at = f"nodes.{node}.algorithm" + ("" if type(section) in PORTS_OF else f".{port}")
        is_listed = isinstance(getattr(section, port, None), tuple)
        for number, entry in enumerate(entries):
            yield port, f"{at}.{number}" if is_listed else at, entry


def off_policy_of(spec: LoopSpec, node: str) -> ResolvedOffPolicy | None:
    """How a node takes rows that others wrote, by its first algorithm that does."""
    entries = node_algorithms(spec, node).get("rewards", ())
    taking = (resolve_algorithm(one).off_policy for one in entries)
    return next((one for one in taking if one is not None), None)


def compares_groups(spec: LoopSpec, node: str) -> bool:
    """Whether a node learns from rewards by comparing rows that were written for one prompt."""
    group_by = getattr(getattr(spec.nodes[node], "credit", None), "group_by", None)
    if group_by is not None and "prompt" not in group_by:
        return False
    entries = node_algorithms(spec, node).get("rewards", ())
    return any(resolve_algorithm(one).needs_group for one in entries)


def lambda_of(spec: LoopSpec, critic: str) -> float | None:
    """How far the returns look ahead that a critic learns; None: as its actor's advantages."""
    entries = node_algorithms(spec, critic).get("returns", ())
    return next((one.gae_lambda for one in entries if isinstance(one, ValueLoss)), None)


def asks_of_others(spec: LoopSpec, reference: str) -> bool:
    """Whether somebody learns from the pairs of a reference who measures answers under the prompts
    of other pairs."""
    learners = {edge.target.node for edge in spec.graph.edges_out_of(reference, "log_probs")}
    return any(
        measures_others(entry)
        for learner in learners & spec.nodes.keys()
        for entry in node_algorithms(spec, learner).get("pairs", ())
    )


def _written(entry: Section, except_for: tuple[str, ...]) -> dict[str, Any]:
    """The fields that say something: set, and `null` only where that means "none"."""
    return {
        name: getattr(entry, name)
        for name in type(entry).model_fields
        if name in entry.model_fields_set
        and name not in except_for
        and (getattr(entry, name) is not None or name in _NULL_COUNTS)
    }


def _merged(
    entry: RewardsAlgorithm, field: str, preset: Mapping[str, Any]
) -> dict[str, Any] | None:
    """A nested section as written; what it leaves open is the preset's."""
    if field not in entry.model_fields_set:
        found: dict[str, Any] | None = preset[field]
        return found
    section = getattr(entry, field)
    if section is None:
        return None
    written = {name: getattr(section, name) for name in section.model_fields_set}
    base = preset[field] or {}
    if field == "correction" and written.get("method", base.get("method")) != base.get("method"):
        base = {}
    defaults = {name: getattr(section, name) for name in type(section).model_fields}
    return {**defaults, **base, **written}


def deviation_of(advantage: str) -> str:
    """Which deviation scales an advantage where the loop does not say."""
    return ADVANTAGES[advantage].deviation


def _resolve_kl(kl: dict[str, Any]) -> ResolvedKl:
    into = kl.get("into", "loss")
    return ResolvedKl(
        coefficient=kl["coefficient"],
        estimator=kl.get("estimator") or ("k2" if into == "loss" else "k1"),
        into=into,
        by_ratio=kl.get("by_ratio", False),
        target=kl.get("target"),
        horizon=kl.get("horizon", 10_000),
    )


def _resolve_correction(correction: dict[str, Any]) -> ResolvedCorrection:
    method = correction.get("method", "token_tis")
    maximum = correction.get("max")
    return ResolvedCorrection(
        method=method,
        min=correction.get("min"),
        max=_CORRECTION_MAX[method] if maximum is None else maximum,
    )


def _resolve_off_policy(off_policy: dict[str, Any]) -> ResolvedOffPolicy:
    return ResolvedOffPolicy(shaping=off_policy["shaping"], prompt=off_policy["prompt"])
