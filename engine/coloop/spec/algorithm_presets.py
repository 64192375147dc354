"""What an algorithm's name stands for: presets of advantage, loss, aggregation and their numbers.

A record (`spec.algorithms`) has the values that differ from `REWARDS_BASE` or `PREFERENCE_BASE`.
Our own defaults are deliberate: global token mean, unbiased group deviation with 1e-6, dual clip
off, KL off, token TIS with cap 2 where engine and trainer differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coloop.spec.algorithms.registry import ALGORITHMS

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

PRESETS: Mapping[str, Mapping[str, Any]] = {
    record.name: record.preset for record in ALGORITHMS.values() if record.fields != "own"
}
"""By name, what differs from `REWARDS_BASE` or `PREFERENCE_BASE`; the records have it."""

AFTER_BASELINE: frozenset[str] = frozenset(
    record.name for record in ALGORITHMS.values() if record.framework == "openrlhf"
)
"""Presets whose rewards are clipped, and lose the KL of each token, after the baseline."""
