"""Votes over answers: which one has the most weight."""

from collections import defaultdict
from collections.abc import Sequence


def winner(answers: Sequence[str | None], weights: Sequence[float]) -> int | None:
    """Place of the first voter for the answer that has the most weight; of equal ones the first
    seen counts. Who says nothing has no vote; None where nobody says anything."""
    total: defaultdict[str, float] = defaultdict(float)
    first: dict[str, int] = {}
    for place, (answer, weight) in enumerate(zip(answers, weights, strict=False)):
        if answer:
            total[answer] += weight
            first.setdefault(answer, place)
    if not total:
        return None
    return first[max(total, key=lambda answer: (total[answer], -first[answer]))]
