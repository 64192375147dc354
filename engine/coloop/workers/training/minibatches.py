"""Which rows make which optimizer step: epochs and mini-batches, in an order that a seed decides.

Several loads are cut into the same number of mini-batches, so that every step has its share of
each; that number is what the largest load needs to stay at `mini_batch` rows. Shares are as even as
they can be, because a small left-over would make a step of its own.
"""

from collections.abc import Sequence

import torch

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
