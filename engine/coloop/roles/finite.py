"""What a model says must be numbers: NaN or infinity would be learned without a word, or end the
update of somebody else."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from coloop.arrays import Numbers
from coloop.errors import DataError
from coloop.tables import Score

HINT = "look at what its model or code says of this row, and at the weights it was loaded from"


def check_score(node: str, row: str, score: Score) -> None:
    """Raises `DataError` where a score, or that of a step, is no number."""
    for number in score.values() if isinstance(score, Mapping) else (score,):
        if number is not None and not math.isfinite(number):
            raise DataError(f"{node}: the score of row {row} is {number}; {HINT}", node)


def check_tokens(node: str, what: str, said: Iterable[tuple[str, Numbers]]) -> None:
    """Raises `DataError` where what is said of a row's tokens is no number.

    Args:
        what: is said, in words: `log-probs`.
        said: by the row's id.
    """
    for row, numbers in said:
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            place = int(wrong.argmax())
            raise DataError(
                f"{node}: its {what} of row {row} are {numbers[place]} at token {place}; {HINT}",
                node,
            )
