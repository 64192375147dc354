"""The same number of rows for each group of an update: more are cut, fewer are repeated."""

import random
from collections.abc import Sequence


def balanced_counts(
    counts: Sequence[int], sizes: Sequence[float], *, to: int, by: str, seed: int
) -> list[int]:
    """How often each row of a group stands in the update, `to` in all; 0: it leaves.

    Args:
        counts: how often each was drawn.
        sizes: how much each would teach, the greatest first where `by` is `advantage`; with
            `random` the seed decides.
    """
    draws = [row for row, count in enumerate(counts) for _ in range(count)]
    if not draws:
        return [0] * len(counts)
    if by == "advantage":
        order = sorted(draws, key=lambda row: -sizes[row])
    else:
        order = random.Random(seed).sample(draws, len(draws))
    rounds, rest = divmod(to, len(order))
    found = [0] * len(counts)
    for place, row in enumerate(order):
        found[row] += rounds + (place < rest)
    return found
