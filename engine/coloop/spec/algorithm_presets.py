"""What an algorithm's name stands for: presets of advantage, loss, aggregation and their numbers.

`PRESETS` maps a name to the values that differ from `REWARDS_BASE` or `PREFERENCE_BASE`. Names
with a prefix (`trl-`, `verl-`, `openrlhf-`, `nemo-`) reproduce the defaults of a framework;
`family_of` says which of our algorithms they are a setting of. Our own defaults are deliberate:
global token mean, unbiased group deviation with 1e-6, dual clip off, KL off, token TIS with cap 2
where engine and trainer differ.
"""

from __future__ import annotations

from typing import Any

REWARDS_BASE: dict[str, Any] = {
    "advantage": "group_mean_std",
    "loss": "clipped",
    "aggregation": "token_mean",
    "divisor": None,
    "clip_low": 0.2,
    "clip_high": 0.2,
    "dual_clip": None,
    "ratio_min": None,
    "ratio_max": None,
    "reduce": "mean",
    "epsilon": 1.0e-6,
    "deviation": None,
    "whiten": False,
    "whiten_deviation": "unbiased",
    "gamma": 1.0,
    "gae_lambda": 1.0,
    "length_alpha": None,
    "reward_clip": None,
    "entropy": None,
    "kl": None,
    "correction": {"method": "token_tis", "max": 2.0},
    "off_policy": None,
    "tau_positive": 1.0,
    "tau_negative": 1.05,
    "covariance_share": 2.0e-4,
}
"""What every algorithm of port `rewards` starts from."""

PREFERENCE_BASE: dict[str, Any] = {
    "beta": 0.1,
    "loss": "sigmoid",
    "label_smoothing": 0.0,
    "reduce": "sum",
    "sft": 0.0,
    "gamma": 0.0,
}
"""What every preference algorithm of port `pairs` starts from."""

_PLAIN: dict[str, Any] = {"loss": "policy_gradient", "clip_low": None, "clip_high": None}
_GSPO: dict[str, Any] = {"loss": "sequence_clipped", "aggregation": "sequence_mean"}
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

PRESETS: dict[str, dict[str, Any]] = {
    # rewards
    "grpo": {"advantage": "group_mean_std"},
    "dr_grpo": {"advantage": "group_mean", "aggregation": "constant"},
    "dapo": {"advantage": "group_mean_std", "clip_high": 0.28},
    "gspo": {"advantage": "group_mean_std", **_GSPO, "clip_low": 3.0e-4, "clip_high": 4.0e-4},
    "cispo": {
        "advantage": "group_mean_std",
        "loss": "cispo",
        "clip_low": None,
        "clip_high": None,
        "ratio_min": 0.0,
        "ratio_max": 5.0,
    },
    "rloo": {"advantage": "leave_one_out"},
    "opo": {"advantage": "length_weighted", **_PLAIN},
    "remax": {"advantage": "greedy", **_PLAIN},
    "reinforce": {"advantage": "discounted_return", **_PLAIN},
    "reinforce_pp": {"advantage": "discounted_return", "whiten": True},
    "reinforce_pp_baseline": {"advantage": "group_mean", "whiten": True},
    "ppo": {"advantage": "gae", "whiten": True},
    "vapo": {"advantage": "gae", "clip_high": 0.28, "length_alpha": 0.05},
    "pf_ppo": {"advantage": "gae", "whiten": True},
    "trl-grpo": {**_TRL, "advantage": "group_mean_std"},
    "trl-dr_grpo": {**_TRL, "advantage": "group_mean", "aggregation": "constant"},
    "trl-gspo": {**_TRL, **_GSPO, "advantage": "group_mean_std"},
    "trl-cispo": {
        **_TRL,
        "advantage": "group_mean_std",
        "loss": "cispo",
        "clip_low": None,
        "clip_high": None,
        "ratio_min": 0.0,
        "ratio_max": 5.0,
    },
    "trl-sapo": {
        **_TRL,
        "advantage": "group_mean_std",
        "loss": "sapo",
        "aggregation": "sequence_mean",
        "clip_low": None,
        "clip_high": None,
    },
    "trl-rloo": {
        **_NO_CORRECTION,
        "advantage": "leave_one_out",
        "loss": "sequence_clipped",
        "reduce": "sum",
        "aggregation": "sequence_mean",
        "kl": {"coefficient": 0.05, "estimator": "k1", "into": "reward"},
    },
    "trl-ppo": {
        **_NO_CORRECTION,
        "advantage": "gae",
        "whiten": True,
        "gae_lambda": 0.95,
        "kl": {"coefficient": 0.05, "estimator": "k1", "into": "reward"},
    },
    "verl-grpo": {**_VERL, "advantage": "group_mean_std"},
    "verl-dr_grpo": {**_VERL, "advantage": "group_mean", "aggregation": "constant"},
    "verl-dapo": {**_VERL, "advantage": "group_mean_std", "clip_high": 0.28, "dual_clip": 10.0},
    "verl-gspo": {**_NO_CORRECTION, **_GSPO, "advantage": "group_mean_std"},
    "verl-cispo": {
        **_NO_CORRECTION,
        "advantage": "group_mean_std",
        "loss": "cispo",
        "clip_low": None,
        "clip_high": None,
        "ratio_min": 0.8,
        "ratio_max": 1.2,
    },
    "verl-rloo": {**_VERL, "advantage": "leave_one_out"},
    "verl-opo": {**_VERL, "advantage": "length_weighted"},
    "verl-remax": {**_VERL, "advantage": "greedy"},
    "verl-reinforce_pp": {**_VERL, "advantage": "discounted_return", "whiten": True},
    "verl-reinforce_pp_baseline": {**_VERL, "advantage": "group_mean", "whiten": True},
    "verl-ppo": {**_VERL, "advantage": "gae", "whiten": True},
    "openrlhf-ppo": {**_OPENRLHF, "advantage": "gae", "whiten": True},
    "openrlhf-reinforce-pp": {**_OPENRLHF, "advantage": "discounted_return", "whiten": True},
    "openrlhf-reinforce-pp-baseline": {**_OPENRLHF, "advantage": "group_mean", "whiten": True},
    "openrlhf-rloo": {**_OPENRLHF, "advantage": "leave_one_out"},
    "openrlhf-grpo": {**_OPENRLHF, "advantage": "group_mean_std", "epsilon": 1.0e-9},
    "openrlhf-dr_grpo": {**_OPENRLHF, "advantage": "group_mean"},
    "openrlhf-gspo": {**_OPENRLHF, **_GSPO, "advantage": "group_mean_std", "epsilon": 1.0e-9},
    "nemo-grpo": {**_NEMO, "advantage": "leave_one_out", "deviation": "leave_one_out"},
    "nemo-gspo": {**_NEMO, **_GSPO, "advantage": "leave_one_out", "deviation": "leave_one_out"},
    "nemo-reinforce_pp_baseline": {**_NEMO, "advantage": "group_mean", "whiten": True},
    "nemo-ppo": {**_NEMO, "advantage": "gae", "whiten": True},
    # pairs, for policies
    "dpo": {},
    "ipo": {"loss": "ipo", "reduce": "mean"},
    "kto": {"loss": "kto"},
    "orpo": {"loss": "orpo", "reduce": "mean"},
    "simpo": {"loss": "simpo", "reduce": "mean", "beta": 2.0, "gamma": 0.5},
    "spin": {},
    "online_dpo": {},
    "trl-dpo": {},
    "trl-ipo": {"loss": "ipo", "reduce": "mean"},
    "trl-kto": {"loss": "kto"},
    "openrlhf-dpo": {},
    "openrlhf-ipo": {"loss": "ipo", "reduce": "sum"},
    "nemo-dpo": {"beta": 0.05},
    "verl-spin": {},
}

AFTER_BASELINE: frozenset[str] = frozenset(name for name in PRESETS if name.startswith("openrlhf-"))
"""Presets whose rewards are clipped, and lose the KL of each token, after the baseline."""

FAMILY: dict[str, str] = {
    "openrlhf-reinforce-pp": "reinforce_pp",
    "openrlhf-reinforce-pp-baseline": "reinforce_pp_baseline",
    "trl-sapo": "grpo",
}
"""Parity presets whose part after the prefix is not the name of our algorithm."""


def family_of(name: str) -> str:
    """The algorithm that a name is a setting of: `trl-grpo` is `grpo`."""
    if name in FAMILY:
        return FAMILY[name]
    prefix, _, rest = name.partition("-")
    return rest if rest and prefix in ("trl", "verl", "openrlhf", "nemo") else name
