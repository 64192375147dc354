"""The row that built-in rewards score, and functions that several of them use."""

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
    """By bare name, and by exact name (`node.column`)."""
    scores: Mapping[str, Score] = field(default_factory=dict)
    """Scores at port `scores` by scorer node, in the order of the edges."""
    id: str = ""
    group: Hashable = None
    """Key of the siblings that `margin` compares."""
    ancestors: tuple[str, ...] = ()
    writer: str | None = None
    round: int = 1
    conversation: Hashable = None
    """Key of the conversation, the same over all roles and rounds."""
    seed: int = 0
    """Seed of the row's random draws in this step."""

    @property
    def number(self) -> Score:
        """The first score that is not None, in the order of the edges; None without one."""
        return next((score for score in self.scores.values() if score is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that a reward hands to its judge; the verdict is the row's score."""

    columns: Mapping[str, Any]
    """JSON values; equal questions have equal answers."""
    place: str = ""
    """Prefix for a problem of the row in messages, such as its column."""


Scorer = Callable[[Sequence[ScoringRow], Any], Sequence[Score | Question]]
"""Called with rows and the reward's section of the loop; returns one score or question per row."""


def by_row(score: Callable[[ScoringRow, Any], Score | Question]) -> Scorer:
    """A scorer from a function of one row."""

    @wraps(score)
    def scores(rows: Sequence[ScoringRow], given: Any) -> list[Score | Question]:
        return [score(row, given) for row in rows]

    return scores


def by_text(score: Callable[[str, ScoringRow, Any], Score | Question]) -> Scorer:
    """A scorer from a function of one completion; None for rows without one."""

    @wraps(score)
    def of_row(row: ScoringRow, given: Any) -> Score | Question:
        text = text_of(row)
        return None if text is None else score(text, row, given)

    return by_row(of_row)


def text_of(row: ScoringRow) -> str | None:
    """The completion; None without one. Raises DataError if it is not a text."""
    value = row.columns.get("completion")
    if value is None or isinstance(value, str):
        return value
    raise DataError(f"column `completion` must be a text, found {repr(value)[:80]}")


def extracted(text: str, expression: str | None) -> str | None:
    """The last match in a text, None without one; the whole text without an expression."""
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
    """Apply a function to a number, or to the numbers of all positions; None stays None."""
    if score is None:
        return None
    if isinstance(score, dict):
        return {position: change(value) for position, value in score.items()}
    return change(score)
