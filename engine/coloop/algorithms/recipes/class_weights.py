"""Weights of classes: rows of a rare one count more, by how often each has come.

Frequencies are a moving average over steps. Weights are scaled so that their mean over these
frequencies is 1: rare classes gain what frequent ones lose, and the size of an update stays.
RL Tango (arXiv 2505.15034) has the inverse square root.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

EXPONENTS: Mapping[str, float] = {"inverse_sqrt": 0.5, "inverse": 1.0}

Frequencies = Mapping[float, float]
"""By class, its share of the rows; together 1."""


def moved_frequencies(
    before: Frequencies, classes: Sequence[float | None], *, ema: float
) -> Frequencies:
    """f ← ema · f + (1 − ema) · share in this step; the step's shares where nothing came before.

    Args:
        classes: of each row; None: it has none.
    """
    counts = Counter(one for one in classes if one is not None)
    total = sum(counts.values())
    if not total:
        return before
    shares = {one: count / total for one, count in counts.items()}
    if not before:
        return dict(sorted(shares.items()))
    known = sorted({*before, *shares})
    return {one: ema * before.get(one, 0.0) + (1 - ema) * shares.get(one, 0.0) for one in known}


def class_weights(frequencies: Frequencies, *, shape: str) -> dict[float, float]:
    """f^-p / Σ f^(1-p) of each class, p by the shape."""
    power = EXPONENTS[shape]
    there = {one: share for one, share in frequencies.items() if share > 0}
    mean = sum(share ** (1 - power) for share in there.values())
    return {one: share**-power / mean for one, share in there.items()}
