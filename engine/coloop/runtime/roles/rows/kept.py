"""Rows that a role keeps beyond a step, marked in its state: a checkpoint writes each of them once,
in files of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coloop.algorithms.batch import Choice, Pair, Sequence, Text
from coloop.data.tables import Row, Score
from coloop.data.tables.rowfile import ROW_KINDS, Kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of a buffer."""

    serial: int
    """Counts the rows that were ever written."""
    port: str
    iteration: int
    row: Row
    score: Score = None
    scorer: str | None = None
    score_range: tuple[float, float] | None = None
    """Least and greatest score, where the scorer names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Rows in their order, by a number that no other row of the role ever has."""

    rows: Mapping[int, Any]


KINDS: Kinds = {
    "Entry": Entry,
    "Sequence": Sequence,
    "Pair": Pair,
    "Text": Text,
    "Choice": Choice,
    **ROW_KINDS,
}
"""What is kept may be made of these."""
