"""What an algorithm computes with its own settings, formula by formula.

Written from the resolved settings that the recipes read: a term that is off does not appear, and
each number is the one that runs.
"""

from collections.abc import Sequence
from typing import Any

from coloop.explain.formulas import rewards, supervised
from coloop.explain.maths import Formula
from coloop.spec.algorithm import (
    Algorithm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    resolve_pairs_algorithm,
    resolve_rewards_algorithm,
)


def formulas_of(entry: Algorithm, *, max_new_tokens: int | None = None) -> Sequence[Formula]:
    """The formulas of one algorithm, in the order in which they are computed.

    Args:
        max_new_tokens: of the node's rollout; the divisor if none is set.
    """
    match entry:
        case RewardsAlgorithm():
            return rewards.formulas(resolve_rewards_algorithm(entry, max_new_tokens=max_new_tokens))
        case PreferenceAlgorithm():
            full: Any = resolve_pairs_algorithm(entry)
            return supervised.pair_formulas(full)
    return supervised.formulas(entry)
