"""Parity presets: our algorithms with the defaults of other frameworks.

`trl-grpo` is GRPO as TRL has it, under the framework's own name for it. The versions of which the
source was read stand in `algorithms/recipes/README.md`.
"""

from typing import Any, Final

from coloop.spec.algorithms.policies import BY_SEQUENCE
from coloop.spec.algorithms.record import AlgorithmRecord

FRAMEWORKS: Final[dict[str, str]] = {
    "trl": "TRL",
    "verl": "verl",
    "openrlhf": "OpenRLHF",
    "nemo": "NeMo RL",
}
"""By prefix, the name of a framework."""

_NO_CORRECTION: dict[str, Any] = {"correction": {"method": "none"}}
_TRL: dict[str, Any] = {"correction": {"method": "sequence_mask", "max": 3.0}, "epsilon": 1.0e-4}
_VERL: dict[str, Any] = {**_NO_CORRECTION, "dual_clip": 3.0}
_OPENRLHF: dict[str, Any] = {
    **_NO_CORRECTION,
    "reward_clip": 10.0,
    "whiten_deviation": "population",
    "kl": {"coefficient": 0.01, "estimator": "k1", "into": "reward"},
}
_NEMO: dict[str, Any] = {
    **_NO_CORRECTION,
    "whiten_deviation": "population",
    "kl": {"coefficient": 0.01, "estimator": "k3", "into": "loss"},
}


def _as_in(
    framework: str, own_name: str, preset: dict[str, Any], *, family: str | None = None
) -> AlgorithmRecord:
    """An algorithm of port `rewards` as in a framework.

    Args:
        own_name: what the framework calls it.
        family: what it is called here, where that is another name.
    """
    return AlgorithmRecord(
        name=f"{framework}-{own_name}",
        family=family or own_name,
        framework=framework,
        fields="rewards",
        recipe="policy",
        preset=preset,
    )


def _pairs_as_in(framework: str, family: str, preset: dict[str, Any]) -> AlgorithmRecord:
    """A preference algorithm as in a framework."""
    return AlgorithmRecord(
        name=f"{framework}-{family}",
        family=family,
        framework=framework,
        fields="preference",
        recipe="preference",
        preset=preset,
    )


REWARDS_OF_FRAMEWORKS: Final = (
    _as_in("trl", "grpo", {**_TRL, "advantage": "group_mean_std"}),
    _as_in("trl", "dr_grpo", {**_TRL, "advantage": "group_mean", "aggregation": "constant"}),
    _as_in("trl", "gspo", {**_TRL, **BY_SEQUENCE, "advantage": "group_mean_std"}),
    _as_in(
        "trl",
        "cispo",
        {
            **_TRL,
            "advantage": "group_mean_std",
            "loss": "cispo",
            "clip_low": None,
            "clip_high": None,
            "ratio_min": 0.0,
            "ratio_max": 5.0,
        },
    ),
    _as_in(
        "trl",
        "sapo",
        {
            **_TRL,
            "advantage": "group_mean_std",
            "loss": "sapo",
            "aggregation": "sequence_mean",
            "clip_low": None,
            "clip_high": None,
        },
        family="grpo",
    ),
    _as_in(
        "trl",
        "rloo",
        {
            **_NO_CORRECTION,
            "advantage": "leave_one_out",
            "loss": "sequence_clipped",
            "reduce": "sum",
            "aggregation": "sequence_mean",
            "kl": {"coefficient": 0.05, "estimator": "k1", "into": "reward"},
        },
    ),
    _as_in(
        "trl",
        "ppo",
        {
            **_NO_CORRECTION,
            "advantage": "gae",
            "whiten": True,
            "gae_lambda": 0.95,
            "kl": {"coefficient": 0.05, "estimator": "k1", "into": "reward"},
        },
    ),
    _as_in("verl", "grpo", {**_VERL, "advantage": "group_mean_std"}),
    _as_in("verl", "dr_grpo", {**_VERL, "advantage": "group_mean", "aggregation": "constant"}),
    _as_in(
        "verl",
        "dapo",
        {**_VERL, "advantage": "group_mean_std", "clip_high": 0.28, "dual_clip": 10.0},
    ),
    _as_in("verl", "gspo", {**_NO_CORRECTION, **BY_SEQUENCE, "advantage": "group_mean_std"}),
    _as_in(
        "verl",
        "cispo",
        {
            **_NO_CORRECTION,
            "advantage": "group_mean_std",
            "loss": "cispo",
            "clip_low": None,
            "clip_high": None,
            "ratio_min": 0.8,
            "ratio_max": 1.2,
        },
    ),
    _as_in("verl", "rloo", {**_VERL, "advantage": "leave_one_out"}),
    _as_in("verl", "opo", {**_VERL, "advantage": "length_weighted"}),
    _as_in("verl", "remax", {**_VERL, "advantage": "greedy"}),
    _as_in("verl", "reinforce_pp", {**_VERL, "advantage": "discounted_return", "whiten": True}),
    _as_in("verl", "reinforce_pp_baseline", {**_VERL, "advantage": "group_mean", "whiten": True}),
    _as_in("verl", "ppo", {**_VERL, "advantage": "gae", "whiten": True}),
    _as_in("openrlhf", "ppo", {**_OPENRLHF, "advantage": "gae", "whiten": True}),
    _as_in(
        "openrlhf",
        "reinforce-pp",
        {**_OPENRLHF, "advantage": "discounted_return", "whiten": True},
        family="reinforce_pp",
    ),
    _as_in(
        "openrlhf",
        "reinforce-pp-baseline",
        {**_OPENRLHF, "advantage": "group_mean", "whiten": True},
        family="reinforce_pp_baseline",
    ),
    _as_in("openrlhf", "rloo", {**_OPENRLHF, "advantage": "leave_one_out"}),
    _as_in("openrlhf", "grpo", {**_OPENRLHF, "advantage": "group_mean_std", "epsilon": 1.0e-9}),
    _as_in("openrlhf", "dr_grpo", {**_OPENRLHF, "advantage": "group_mean"}),
    _as_in(
        "openrlhf",
        "gspo",
        {**_OPENRLHF, **BY_SEQUENCE, "advantage": "group_mean_std", "epsilon": 1.0e-9},
    ),
    _as_in("nemo", "grpo", {**_NEMO, "advantage": "leave_one_out", "deviation": "leave_one_out"}),
    _as_in(
        "nemo",
        "gspo",
        {**_NEMO, **BY_SEQUENCE, "advantage": "leave_one_out", "deviation": "leave_one_out"},
    ),
    _as_in("nemo", "reinforce_pp_baseline", {**_NEMO, "advantage": "group_mean", "whiten": True}),
    _as_in("nemo", "ppo", {**_NEMO, "advantage": "gae", "whiten": True}),
)
PREFERENCES_OF_FRAMEWORKS: Final = (
    _pairs_as_in("trl", "dpo", {}),
    _pairs_as_in("trl", "ipo", {"loss": "ipo", "reduce": "mean"}),
    _pairs_as_in("trl", "kto", {"loss": "kto"}),
    _pairs_as_in("openrlhf", "dpo", {}),
    _pairs_as_in("openrlhf", "ipo", {"loss": "ipo", "reduce": "sum"}),
    _pairs_as_in("nemo", "dpo", {"beta": 0.05}),
    _pairs_as_in("verl", "spin", {}),
)
