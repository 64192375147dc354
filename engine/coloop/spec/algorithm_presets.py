"""What an algorithm's name stands for: presets of advantage, loss, aggregation and their numbers.

A record (`spec.algorithms`) has the values that differ from `REWARDS_BASE` or `PREFERENCE_BASE`.
Our own defaults are deliberate: global token mean, unbiased group deviation with 1e-6, dual clip
off, KL off, token TIS with cap 2 where engine and trainer differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coloop.spec.algorithms.policies import REWARDS_BASE
from coloop.spec.algorithms.preferences import PREFERENCE_BASE
from coloop.spec.algorithms.registry import ALGORITHMS

__all__ = ["AFTER_BASELINE", "PREFERENCE_BASE", "PRESETS", "REWARDS_BASE"]

PRESETS: Mapping[str, Mapping[str, Any]] = {
    record.name: record.preset for record in ALGORITHMS.values() if record.fields != "own"
}
"""By name, what differs from `REWARDS_BASE` or `PREFERENCE_BASE`; the records have it."""

AFTER_BASELINE: frozenset[str] = frozenset(
    record.name for record in ALGORITHMS.values() if record.framework == "openrlhf"
)
"""Presets whose rewards are clipped, and lose the KL of each token, after the baseline."""
