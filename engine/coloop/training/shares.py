"""Who learns from which rows: an optimizer step's rows over the ranks, and each rank's in
micro-batches.

Every rank has the whole order, so it knows the shares of all without talking. Sharded weights are
gathered and gradients summed by all ranks at once; so all make as many passes, and one that has no
rows for a pass makes it empty.
"""

from collections.abc import Sequence

from coloop.batch import split_units
from coloop.training.ranks import Ranks


def passes_of(
    ranks: Ranks,
    places: Sequence[int],
    lengths: Sequence[int],
    *,
    rows: int | None = None,
    tokens: int | None = None,
) -> list[list[int]]:
    """The micro-batches of this rank, as places; [] for a pass without rows.

    Args:
        places: of the step's units in their load.
        lengths: tokens that each unit of the load fills.
        rows: most units of a micro-batch.
        tokens: most padded tokens of one.
    """
    passes: list[list[list[int]]] = []
    for share in shares_of([lengths[place] for place in places], ranks.size):
        units = [places[one] for one in share]
        cut = split_units([lengths[unit] for unit in units], rows=rows, tokens=tokens)
        passes.append([[units[one] for one in part] for part in cut])
    own = passes[ranks.rank]
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
