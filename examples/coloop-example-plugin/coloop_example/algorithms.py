"""The advantage of the algorithm `median_baseline`."""

import torch
from torch import Tensor

from coloop.algorithms.recipes.estimators import GroupedRewards


def group_median(given: GroupedRewards) -> Tensor:
    """A = r - median of the group, (E,); the lower of two middle rewards is the median."""
    advantages = torch.zeros_like(given.values)
    for group in range(int(given.groups.max()) + 1):
        is_member = given.groups == group
        advantages[is_member] = given.values[is_member] - given.values[is_member].median()
    return advantages
