"""Credit over rounds: what a row earned with what its conversation earned after it.

    R = own + discount * mean of R over the next round's rows below it

as MAGRPO's returns over a tree of turns (arXiv 2508.04652). Baselines are taken on R. A row without
a score of its own has what comes from below alone; with neither it stays without.
"""

from collections.abc import Sequence
from statistics import fmean

from coloop.algorithms.recipes.protocol import Score


def returns_over_rounds(
    scores: Sequence[Score],
    *,
    rounds: Sequence[int],
    below: Sequence[Sequence[int]],
    last_tokens: Sequence[int],
    discount: float,
) -> list[Score]:
    """R of each row of one role.

    Args:
        rounds: in which the rows were written.
        below: of each row the places of the next round's rows that descend from it.
        last_tokens: of each completion the position of the last trained token, on which what comes
            later lands where a row's own score is one by the token.
    """
    found = list(scores)
    for place in sorted(range(len(scores)), key=lambda one: -rounds[one]):
        later = [total for one in below[place] if (total := _total(found[one])) is not None]
        if later and discount:
            found[place] = _plus(found[place], discount * fmean(later), last_tokens[place])
    return found


def _plus(score: Score, more: float, position: int) -> Score:
    if score is None or isinstance(score, float | int):
        return (score or 0.0) + more
    return {**score, position: score.get(position, 0.0) + more}


def _total(score: Score) -> float | None:
    if score is None or isinstance(score, float | int):
        return score
    return float(sum(score.values()))
