"""Who learns from which rows: an optimizer step's rows over the ranks, and each rank's in
micro-batches.

Every rank has the whole order, so it knows the shares of all without talking. Where weights are
gathered and gradients summed in each pass, by all ranks at once, all make as many passes, and one
that has no rows for a pass makes it empty. Ranks that share layers have the same rows. Rows that
begin alike stay together, so that this is read once.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch

from coloop.algorithms.batch import Prompts
from coloop.workers.training.ranks import Ranks

Split = Callable[[Sequence[int], Prompts | None], list[list[int]]]
"""Units of given lengths, and what they begin with, in micro-batches."""


def passes_of(
    ranks: Ranks,
    places: Sequence[int],
    lengths: Sequence[int],
    split: Split,
    prompts: Prompts | None = None,
    *,
    is_in_step: bool = True,
) -> list[list[int]]:
    """The micro-batches of this rank, as places; [] for a pass without rows.

    Args:
        places: of the step's units in their load.
        lengths: tokens that each unit of the load fills.
        prompts: what each unit of the load begins with; None: nobody asks.
        is_in_step: all ranks make as many passes.
    """

    def passes(share: Sequence[int]) -> list[list[int]]:
        units = [places[one] for one in share]
        begin = None if prompts is None else prompts.of(units)
        return [[units[one] for one in part] for part in split([lengths[u] for u in units], begin)]

    begin = None if prompts is None else prompts.of(places)
    shares = shares_of([lengths[place] for place in places], ranks.parts, begin)
    own = passes(shares[ranks.part])
    if not is_in_step:
        return own
    most = max(len(own) if part == ranks.part else len(passes(s)) for part, s in enumerate(shares))
    return [*own, *([] for _ in range(most - len(own)))]


def shares_of(lengths: Sequence[int], size: int, prompts: Prompts | None = None) -> list[list[int]]:
    """Units of each rank, in their order: the longest first, each to who has the fewest tokens.

    Units that begin alike go to one rank, unless who has the most would then read more.
    """
    everyone = range(len(lengths))
    if size == 1:
        return [list(everyone)]
    apart = _dealt([[unit] for unit in everyone], lengths, size)
    if prompts is None or not prompts.are_shared:
        return apart
    alike: dict[int, list[int]] = {}
    for unit in everyone:
        alike.setdefault(prompts.numbers[unit], []).append(unit)
    read = partial(prompts.read, lengths=lengths)
    together = _dealt(list(alike.values()), lengths, size)
    return min(together, apart, key=lambda shares: max(map(read, shares)))


def _dealt(bundles: list[list[int]], lengths: Sequence[int], size: int) -> list[list[int]]:
    sizes = [sum(lengths[unit] for unit in bundle) for bundle in bundles]
    shares: list[list[int]] = [[] for _ in range(size)]
    filled = [0] * size
    for number in sorted(range(len(bundles)), key=lambda number: -sizes[number]):
        least = min(range(size), key=lambda rank: filled[rank])
        shares[least] += bundles[number]
        filled[least] += sizes[number]
    return [sorted(share) for share in shares]


# Which rows make which optimizer step: epochs and mini-batches, in an order that a seed decides.
#
# Several loads are cut into the same number of mini-batches, so that every step has its share of
# each; that number is what the largest load needs to stay at `mini_batch` rows. Shares are as
# even as they can be, because a small left-over would make a step of its own.

Step = list[list[int]]
"""For each load the places of its rows in one optimizer step; a list may be empty."""


def plan_steps(
    sizes: Sequence[int], *, mini_batch: int | None, epochs: int, seed: int
) -> list[Step]:
    """Rows of each optimizer step of an update, every row once an epoch."""
    largest = max(sizes, default=0)
    parts = 1 if mini_batch is None else max(-(-largest // mini_batch), 1)
    generator = torch.Generator().manual_seed(seed)
    steps: list[Step] = []
    for _ in range(epochs):
        orders = [_order(size, parts, generator) for size in sizes]
        for part in range(parts):
            steps.append([_share(order, part, parts) for order in orders])
    return steps


def _order(size: int, parts: int, generator: torch.Generator) -> list[int]:
    if parts == 1:
        return list(range(size))
    order: list[int] = torch.randperm(size, generator=generator).tolist()
    return order


def _share(order: list[int], part: int, parts: int) -> list[int]:
    return order[part * len(order) // parts : (part + 1) * len(order) // parts]
