"""What the losses of an update saw of each token, for a few rows that people look at.

Of each load the first rows, so that those of one group stand together; of several epochs the last
pass over a row counts. Numbers stay where they are until the update is over, so that nothing waits
for a device in between.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from torch import Tensor

from coloop.algorithms.batch import Batch
from coloop.data.arrays import Numbers, numbers_of
from coloop.workers.training.prepared_batch import PreparedBatch
from coloop.workers.training.protocol import Seen

MOST_ROWS = 16
"""Of a load."""
MOST_TOKENS = 16_384
"""Of a load's shown rows together, prompts included."""
MASK = "mask"
"""The number that says which tokens are trained."""

_Row = dict[str, Tensor]


class SeenTokens:
    """Collects them, pass by pass."""

    def __init__(self) -> None:
        self._shown: dict[str, range] = {}
        """By load, the units of it that are kept."""
        self._found: dict[str, dict[str, _Row]] = {}

    def note(
        self,
        load: PreparedBatch,
        units: Sequence[int],
        batch: Batch,
        tokens: Mapping[str, Tensor],
    ) -> None:
        """One pass over some units of a load, with the numbers of their tokens, (b, T) each."""
        if not tokens or load.sides != 1:
            return
        shown = self._shown.setdefault(load.name, _first(load.lengths))
        for place, unit in enumerate(units):
            if unit in shown:
                length = load.lengths[unit]
                row = {name: one[place, :length].clone() for name, one in tokens.items()}
                row[MASK] = batch.loss_mask[place, :length].clone()
                self._found.setdefault(load.name, {})[batch.ids[place]] = row

    def told(self) -> Seen:
        """What was seen here, in numbers that can be sent."""
        return {
            name: {row: _numbers(found) for row, found in rows.items()}
            for name, rows in self._found.items()
        }


def together(parts: Iterable[Seen]) -> Seen:
    """What several saw, each of rows of its own."""
    whole: dict[str, dict[str, Mapping[str, Numbers]]] = {}
    for part in parts:
        for name, rows in part.items():
            whole.setdefault(name, {}).update(rows)
    return whole


def _first(lengths: Sequence[int]) -> range:
    """The first units, as many as there may be."""
    ends = np.cumsum(lengths[:MOST_ROWS])
    return range(int((ends <= MOST_TOKENS).sum()))


def _numbers(row: _Row) -> dict[str, Numbers]:
    return {name: numbers_of(one.float().cpu().numpy()) for name, one in row.items()}
