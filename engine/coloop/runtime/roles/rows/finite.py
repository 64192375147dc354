"""What a model says must be numbers that can be learned: NaN or infinity would be learned without a
word, or end the update of somebody else."""

from collections.abc import Iterable, Mapping

import numpy as np

from coloop.data.arrays import Numbers
from coloop.data.tables import Score
from coloop.errors import DataError
from coloop.sandbox.inside.values import why_no_score

HINT = "look at what its model or code says of this row, and at the weights it was loaded from"


def check_score(node: str, row: str, score: Score) -> None:
    """Raises `DataError` where a score, or that of a step, is no number, or too large a one."""
    for number in score.values() if isinstance(score, Mapping) else (score,):
        wrong = None if number is None else why_no_score(number)
        if wrong is not None:
            raise DataError(
                f"{node}: the score of row {row} is {number:g}, and {wrong}; {HINT}", node
            )


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
