"""The outcome of a scorer: the rows with their scores, of the text and of its steps."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from coloop.data.arrays import Numbers
from coloop.data.tables import Row, Score, Table
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Context, Outcome
from coloop.sandbox.inside.values import why_no_score


def scored_outcome(
    node: str,
    rows: Sequence[Row],
    scores: Sequence[Score],
    *,
    step_scores: Sequence[Score] | None = None,
    score_range: tuple[float, float] | None = None,
    metrics: Mapping[str, float] | None = None,
    alerts: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """The outcome of a scorer. Raises `DataError` for scores that are not finite.

    Args:
        step_scores: by position, if the scorer has them.
        score_range: least and greatest score, by which the score of a pair is mirrored.
    """
    for given in (scores, step_scores or ()):
        for row, score in zip(rows, given, strict=False):
            check_score(node, row.id, score)
    scored = tuple(
        row.with_columns(node, {node: score}) for row, score in zip(rows, scores, strict=True)
    )
    outputs = {"scores": _table(node, scored, scores, score_range)}
    if step_scores is not None:
        outputs["step_scores"] = _table(node, scored, step_scores, score_range)
    numbers = [score for score in scores if isinstance(score, float | int)]
    measured = {"score/mean": sum(numbers) / len(numbers)} if numbers else {}
    if rows:
        measured["score/none"] = sum(score is None for score in scores) / len(rows)
    return Outcome(
        outputs=outputs, samples=len(rows), metrics={**measured, **(metrics or {})}, alerts=alerts
    )


def _table(
    node: str,
    rows: tuple[Row, ...],
    scores: Sequence[Score],
    score_range: tuple[float, float] | None,
) -> Table:
    by_row = {row.id: score for row, score in zip(rows, scores, strict=True)}
    return Table(rows=rows, scores=by_row, scorer=node, score_range=score_range)


# Numbers of a model must be finite: NaN or infinity would be learned silently, or break the update
# of another node.

HINT = "check what its model or code returns for this row, and the weights it was loaded from"


def check_score(node: str, row: str, score: Score) -> None:
    """Raises `DataError` if a score, or that of a step, is not finite or too large."""
    for number in score.values() if isinstance(score, Mapping) else (score,):
        wrong = None if number is None else why_no_score(number)
        if wrong is not None:
            raise DataError(
                f"{node}: the score of row {row} is {number:g}, and {wrong}; {HINT}", node
            )


def check_tokens(node: str, what: str, said: Iterable[tuple[str, Numbers]]) -> None:
    """Raises `DataError` if numbers of a row's tokens are not finite. `what`: their name in the
    message, e.g. `log-probs`; `said`: (row id, numbers)."""
    for row, numbers in said:
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            place = int(wrong.argmax())
            raise DataError(
                f"{node}: its {what} of row {row} are {numbers[place]} at token {place}; {HINT}",
                node,
            )


# Where the steps of a text end: the tokens on which step scores land.
#
# Steps are the parts of a completion between separators (lines by default) that are not blank. The
# positions of a row without tokens are the numbers of its steps (0, 1, ...).

SEPARATOR = "\n"

StepScores = list[float | None]
"""One number per step; None: not scored."""


def steps_of(text: str, separator: str = SEPARATOR) -> list[str]:
    return [part for part in text.split(separator) if part.strip()]


def step_ends(
    rows: Sequence[Row], node: str, context: Context, separator: str = SEPARATOR
) -> dict[str, list[int]]:
    """By row id, for rows with tokens: the index in the completion of the token that ends each
    step, at most that of the last trained token."""
    by_writer: dict[str, list[Row]] = {}
    for row in rows:
        if row.tokens is not None and row.writer is not None:
            by_writer.setdefault(row.writer, []).append(row)
    found: dict[str, list[int]] = {}
    for writer, own in by_writer.items():
        texts = [row.tokens.token_ids for row in own if row.tokens]
        ends = context.hosts.step_ends(context.groups[writer], node, texts, separator)
        found.update(
            (row.id, [min(place, last_trained(row)) for place in places])
            for row, places in zip(own, ends, strict=True)
        )
    return found


def at_ends(scores: StepScores, ends: Sequence[int]) -> Score:
    """Step scores by the token that ends each step; steps that end in the same token are summed."""
    at_tokens: dict[int, float] = {}
    for score, token in zip(scores, ends, strict=True):
        if score is not None:
            at_tokens[token] = at_tokens.get(token, 0.0) + float(score)
    return at_tokens


def listed(scores: Mapping[int, float], steps: int) -> StepScores:
    """Scores by step number as a list with one entry per step."""
    return [scores.get(step) for step in range(steps)]


def last_trained(row: Row) -> int:
    """Index in the completion of the last trained token; 0 if there is none."""
    trained = np.flatnonzero(row.tokens.loss_mask if row.tokens else ())
    return int(trained[-1]) if len(trained) else 0
