"""What a score head says of a text, where one number is wanted."""

from coloop.arrays import Numbers
from coloop.errors import DataError


def only_score(said: Numbers, node: str) -> float:
    """The one number of a head; raises `DataError` where it has several classes."""
    if len(said) != 1:
        raise DataError(
            f"{node}: its model is a classifier of {len(said)} classes, and one number a text is "
            f"wanted; name the classes in `read.labels` (the score is the probability of the "
            "first), or take a model with one",
            node,
            "model",
        )
    return float(said[0])
