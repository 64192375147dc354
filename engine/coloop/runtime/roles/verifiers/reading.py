"""How the numbers of a judge become scores: steps to one number, bounds, a threshold."""

import math
from collections.abc import Iterable

from coloop.data.tables import Score
from coloop.data.tables.attach import REDUCTIONS
from coloop.spec.reading import Read


def reduced(steps: Iterable[float | None], read: Read) -> float | None:
    """One number of those of steps, in their order; None where no step has one."""
    said = [step for step in steps if step is not None]
    return float(REDUCTIONS[read.reduce or "mean"](said)) if said else None


def activated(number: float, read: Read) -> float:
    """A head's number as `activation` lets it through."""
    if read.activation == "none":
        return number
    small = math.exp(-abs(number))
    return 1 / (1 + small) if number >= 0 else small / (1 + small)


def finished(score: Score, read: Read) -> Score:
    """A score, or one at each position, within `clamp`, and 0 or 1 where there is a threshold."""
    if score is None:
        return None
    if isinstance(score, dict):
        return {place: _finished(number, read) for place, number in score.items()}
    return _finished(score, read)


def _finished(score: float, read: Read) -> float:
    if read.clamp is not None:
        low, high = read.clamp
        score = min(max(score, low), high)
    return score if read.threshold is None else float(score >= read.threshold)
