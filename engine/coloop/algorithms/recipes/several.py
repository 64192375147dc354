"""Names of the numbers with which a row of `rewards` says for whom it is: of several algorithms
each has advantages of its own, and a row that others wrote is learned in another way."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from coloop.algorithms.batch import Batch
from coloop.algorithms.batch import Sequence as TokenSequence

ADVANTAGES = "advantages"
OF_OTHERS = "of_others"
"""1 for a row that others wrote, 0 for an own one."""


def advantages_of(number: int) -> str:
    """Where the advantages of the algorithm at this place stand."""
    return ADVANTAGES if number == 0 else f"{ADVANTAGES}.{number}"


def rows_of_algorithm(rows: Sequence[TokenSequence], number: int) -> list[TokenSequence]:
    """The rows that the algorithm at this place learns from, with its advantages."""
    if number == 0:
        return [row for row in rows if row.advantages is not None]
    name = advantages_of(number)
    return [replace(row, advantages=row.numbers[name]) for row in rows if name in row.numbers]


def own_tokens(batch: Batch) -> Tensor:
    """Trained tokens of rows that the learner wrote. (B, T) bool."""
    of_others = batch.given(OF_OTHERS)
    return batch.loss_mask if of_others is None else batch.loss_mask & (of_others == 0)[:, None]
