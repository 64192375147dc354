"""Who learns from which rows: an optimizer step's rows over the ranks, and each rank's in
micro-batches.

Every rank has the whole order, so it knows the shares of all without talking. Sharded weights are
gathered and gradients summed by all ranks at once; so all make as many passes, and one that has no
rows for a pass makes it empty. Ranks that share layers have the same rows.
"""

from collections.abc import Callable, Sequence

from coloop.training.ranks import Ranks


def passes_of(
    ranks: Ranks,
    places: Sequence[int],
    lengths: Sequence[int],
    split: Callable[[Sequence[int]], list[list[int]]],
) -> list[list[int]]:
    """The micro-batches of this rank, as places; [] for a pass without rows.

    Args:
        places: of the step's units in their load.
        lengths: tokens that each unit of the load fills.
        split: units of given lengths in micro-batches.
    """
    passes: list[list[list[int]]] = []
    for share in shares_of([lengths[place] for place in places], ranks.parts):
        units = [places[one] for one in share]
        cut = split([lengths[unit] for unit in units])
        passes.append([[units[one] for one in part] for part in cut])
    own = passes[ranks.part]
    missing = max(len(one) for one in passes) - len(own)
    return [*own, *([] for _ in range(missing))]


def shares_of(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Units of each rank, in their order: the longest first, each to who has the fewest tokens."""
    if size == 1:
        return [list(range(len(lengths)))]
    shares: list[list[int]] = [[] for _ in range(size)]
    filled = [0] * size
    for unit in sorted(range(len(lengths)), key=lambda unit: -lengths[unit]):
        least = min(range(size), key=lambda rank: filled[rank])
        shares[least].append(unit)
        filled[least] += lengths[unit]
    return [sorted(share) for share in shares]
