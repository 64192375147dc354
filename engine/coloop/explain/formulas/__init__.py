"""What an algorithm computes with its own settings, formula by formula.

Written from the settings that the recipes read (`resolve_algorithm`), so that a term which is off
stands nowhere, and each number is the one that runs.
"""

from collections.abc import Sequence
from typing import Any

from coloop.explain.formulas import pairs, rewards, scorers
from coloop.explain.formulas.formula import Formula
from coloop.spec.algorithm import (
    Algorithm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    resolve_pairs_algorithm,
    resolve_rewards_algorithm,
)

__all__ = ["Formula", "formulas_of"]


def formulas_of(entry: Algorithm, *, max_new_tokens: int | None = None) -> Sequence[Formula]:
    """The formulas of one algorithm, in the order in which they are computed.

    Args:
        max_new_tokens: of the node's rollout; fills the divisor that is not written.
    """
    match entry:
        case RewardsAlgorithm():
            return rewards.formulas(resolve_rewards_algorithm(entry, max_new_tokens=max_new_tokens))
        case PreferenceAlgorithm():
            full: Any = resolve_pairs_algorithm(entry)
            return pairs.formulas(full)
    return scorers.formulas(entry)
