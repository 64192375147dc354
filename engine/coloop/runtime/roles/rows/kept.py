"""Rows that a role keeps beyond a step, marked in its state: a checkpoint writes each of them once,
in files of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coloop.algorithms.batch import Choice, Pair, Sequence, Text
from coloop.data.distributions import Distribution, Teacher
from coloop.data.tables import Row, Score
from coloop.data.tables.rowfile import ROW_KINDS, Kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row in a buffer."""

    serial: int
    """Number among all rows ever stored."""
    port: str
    iteration: int
    row: Row
    score: Score = None
    scorer: str | None = None
    score_range: tuple[float, float] | None = None
    """Least and greatest score, if the scorer states them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Rows in order, by a number that is unique for the role."""

    rows: Mapping[int, Any]


KINDS: Kinds = {
    "Entry": Entry,
    "Sequence": Sequence,
    "Pair": Pair,
    "Text": Text,
    "Choice": Choice,
    "Teacher": Teacher,
    "Distribution": Distribution,
    **ROW_KINDS,
}
"""Types that kept rows may consist of, by name in the files."""
