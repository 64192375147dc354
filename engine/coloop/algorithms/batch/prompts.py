"""Which texts of a batch begin alike: what stands before the first token that any of them trains.

Told by token ids alone, so rows of a group that were cut, reordered or mixed with others are found,
and two prompts that are equal by chance as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coloop.algorithms.batch.padded import Batch

NO_TOKEN = -1


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompt of each unit."""

    numbers: list[int]
    """Units with one number begin alike."""
    lengths: list[int]
    """Tokens of it."""

    def of(self, units: Sequence[int]) -> "Prompts":
        """Those of some units, in their order."""
        return Prompts([self.numbers[one] for one in units], [self.lengths[one] for one in units])

    @property
    def are_shared(self) -> bool:
        """Whether any two units begin alike."""
        return len(set(self.numbers)) < len(self.numbers)

    def read(self, units: Sequence[int], lengths: Sequence[int]) -> int:
        """Tokens of these units, of these lengths, where each prompt is read once."""
        own = sum(lengths[unit] - self.lengths[unit] for unit in units)
        once = {self.numbers[unit]: self.lengths[unit] for unit in units}
        return own + sum(once.values())


def prompts_of(batch: Batch) -> Prompts:
    """What stands before the first trained token of each row; all of a row that trains none."""
    ids, mask = batch.token_ids.cpu().numpy(), batch.loss_mask.cpu().numpy()
    lengths = np.where(mask.any(1), mask.argmax(1), batch.lengths())
    begun = np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, NO_TOKEN)
    whole, size = begun.tobytes(), begun.itemsize * begun.shape[1]
    known: dict[bytes, int] = {}
    numbers = [
        known.setdefault(whole[start : start + size], len(known))
        for start in range(0, len(whole), size)
    ]
    return Prompts(numbers, lengths.tolist())
