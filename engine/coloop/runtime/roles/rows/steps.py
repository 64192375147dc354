"""Where the steps of a text end: the tokens on which step scores land.

A step of a completion is one of its parts that are not blank: lines, or what another separator
ends. A row without tokens keeps the
numbers of its steps (0, 1, ...) as positions.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from coloop.data.tables import Row, Score
from coloop.runtime.roles.protocol import Context

SEPARATOR = "\n"

StepScores = list[float | None]
"""One number a step; None says nothing of it."""


def steps_of(text: str, separator: str = SEPARATOR) -> list[str]:
    return [part for part in text.split(separator) if part.strip()]


def step_ends(
    rows: Sequence[Row], node: str, context: Context, separator: str = SEPARATOR
) -> dict[str, list[int]]:
    """By row id, for rows with tokens: the place in the completion of the token that ends each
    step, or of the last trained token where that comes before."""
    by_writer: dict[str, list[Row]] = {}
    for row in rows:
        if row.tokens is not None and row.writer is not None:
            by_writer.setdefault(row.writer, []).append(row)
    found: dict[str, list[int]] = {}
    for writer, own in by_writer.items():
        texts = [row.tokens.token_ids for row in own if row.tokens]
        ends = context.hosts.step_ends(context.groups[writer], node, texts, separator)
        found.update(
            (row.id, [min(place, _last_trained(row)) for place in places])
            for row, places in zip(own, ends, strict=True)
        )
    return found


def at_ends(scores: StepScores, ends: Sequence[int]) -> Score:
    """Step scores at the tokens in which the steps end; steps that end in one token add up."""
    found: dict[int, float] = {}
    for score, place in zip(scores, ends, strict=True):
        if score is not None:
            found[place] = found.get(place, 0.0) + float(score)
    return found


def listed(scores: Mapping[int, float], steps: int) -> StepScores:
    """Scores at step numbers as a list with one entry a step."""
    return [scores.get(place) for place in range(steps)]


def _last_trained(row: Row) -> int:
    trained = np.flatnonzero(row.tokens.loss_mask if row.tokens else ())
    return int(trained[-1]) if len(trained) else 0
