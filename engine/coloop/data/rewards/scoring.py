"""What a built-in reward sees of a row, and the checks that all of them share."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from coloop.data.patterns import PatternTimeout, pattern
from coloop.data.tables.row import Score
from coloop.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringRow:
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Bare names, and exact ones with a dot."""
    scores: Mapping[str, Score] = field(default_factory=dict)
    """Scores from port `scores` by scorer node, in the order of the edges."""
    id: str = ""
    group: Hashable = None
    """Equal for siblings, which `margin` compares."""
    ancestors: tuple[str, ...] = ()
    writer: str | None = None
    round: int = 1
    conversation: Hashable = None
    """Equal for all rows of a conversation, over all roles and rounds."""

    @property
    def number(self) -> Score:
        """The first available score, in the order of the edges."""
        return next((score for score in self.scores.values() if score is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that a reward leaves to its judge."""

    columns: Mapping[str, Any]
    """JSON values; equal questions have equal answers."""
    place: str = ""
    """Prefix that locates a problem within the row."""


Scorer = Callable[[Sequence[ScoringRow], Any], Sequence[Score | Question]]
"""Scores of rows with the options of the reward (its section of the loop)."""


def by_row(score: Callable[[ScoringRow, Any], Score | Question]) -> Scorer:
    """A scorer that handles each row alone."""

    @wraps(score)
    def scores(rows: Sequence[ScoringRow], given: Any) -> list[Score | Question]:
        return [score(row, given) for row in rows]

    return scores


def by_text(score: Callable[[str, ScoringRow, Any], Score | Question]) -> Scorer:
    """A scorer of each row's completion; None for rows without one."""

    @wraps(score)
    def of_row(row: ScoringRow, given: Any) -> Score | Question:
        text = text_of(row)
        return None if text is None else score(text, row, given)

    return by_row(of_row)


def text_of(row: ScoringRow) -> str | None:
    """The completion; None if the row has none."""
    value = row.columns.get("completion")
    if value is None or isinstance(value, str):
        return value
    raise DataError(f"column `completion` must be a text, found {repr(value)[:80]}")


def extracted(text: str, expression: str | None) -> str | None:
    """The part of a text to score: the last match, or all of it without an expression."""
    if expression is None:
        return text
    try:
        return pattern(expression).last(text)
    except PatternTimeout as late:
        raise DataError(f"extract: {late}") from None


def tokens_of(row: ScoringRow) -> int:
    value = row.columns.get("length")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise DataError(
        "this reward counts tokens, but the rows have no column `length`; connect the rollouts of "
        "an actor to port `rollouts`"
    )


def mapped(score: Score, change: Callable[[float], float]) -> Score:
    """Apply a function to a number, or to the number of each position."""
    if score is None:
        return None
    if isinstance(score, dict):
        return {position: change(value) for position, value in score.items()}
    return change(score)
