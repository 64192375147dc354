"""A table: ordered rows, and what a scorer or a reference says of them. Tables are never changed in
place."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coloop.data.arrays import Numbers
from coloop.data.tables.row import Row, Score

OTHER = "other "
"""Before the names of another pair's sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What one port gives in one step.

    A table of `Scores`, `LogProbs` or `Values` carries the rows that it speaks of, so a receiver
    needs nothing else.
    """

    rows: tuple[Row, ...] = ()
    scores: Mapping[str, Score] | None = None
    """By row id, for ports of type Scores."""
    scorer: str | None = None
    score_range: tuple[float, float] | None = None
    """Least and greatest score, where the scorer names them; a pair's opposite is low + high -
    s."""
    unturned: frozenset[str] = frozenset()
    """Rows whose score is the same for both sides of a pair: nothing was found to turn over."""
    judged: Mapping[str, str] | None = None
    """By row id, of scores at positions: the row whose text these index; None: its own."""
    reduce: str | None = None
    """How numbers at positions become one where they reach another text; None: they cannot."""
    log_probs: Mapping[str, Any] | None = None
    """By row id, for ports of type LogProbs: an array over the completion's tokens, or for a pair
    `{"chosen": ..., "rejected": ...}` with one each; where answers to other prompts are measured
    the same of another pair's sides under its prompt, their names after `OTHER`."""
    values: Mapping[str, Numbers] | None = None
    """By row id, for ports of type Values: one number for each of the completion's tokens."""
    values_at: Mapping[float, Mapping[str, Numbers]] = field(default_factory=dict)
    """By lambda, of returns: those of who looks further ahead, or less far."""

    def __len__(self) -> int:
        return len(self.rows)

    def restricted_to(self, ids: Iterable[str]) -> "Table":
        """The rows with these ids, in this table's order."""
        wanted = set(ids)
        return replace(
            self,
            rows=tuple(row for row in self.rows if row.id in wanted),
            scores=_pick(self.scores, wanted),
            unturned=self.unturned & wanted,
            judged=_pick(self.judged, wanted),
            log_probs=_pick(self.log_probs, wanted),
            values=_pick(self.values, wanted),
            values_at={ahead: _pick(own, wanted) or {} for ahead, own in self.values_at.items()},
        )

    def in_round(self, number: int) -> "Table":
        if all(row.round == number for row in self.rows):
            return self
        return replace(self, rows=tuple(row.in_round(number) for row in self.rows))

    def handed_on_by(self, node: str) -> "Table":
        return replace(self, rows=tuple(row.handed_on_by(node) for row in self.rows))

    def of_round(self, number: int) -> "Table":
        return self.restricted_to(row.id for row in self.rows if row.round == number)


def concat_tables(tables: Sequence[Table]) -> Table:
    """The tables' rows one after another; a row that comes twice counts once."""
    if len(tables) == 1:
        return tables[0]
    rows: dict[str, Row] = {}
    values_at: dict[float, dict[str, Numbers]] = {}
    for table in tables:
        for row in table.rows:
            rows.setdefault(row.id, row)
        for ahead, own in table.values_at.items():
            values_at.setdefault(ahead, {}).update(own)
    return Table(
        rows=tuple(rows.values()),
        scores=_merged([t.scores for t in tables]),
        scorer=next((t.scorer for t in tables if t.scorer), None),
        score_range=next((t.score_range for t in tables if t.score_range), None),
        unturned=frozenset().union(*(t.unturned for t in tables)),
        judged=_merged([t.judged for t in tables]) or None,
        reduce=next((t.reduce for t in tables if t.reduce), None),
        log_probs=_merged([t.log_probs for t in tables]),
        values=_merged([t.values for t in tables]),
        values_at=values_at,
    )


def _merged(parts: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    known = [part for part in parts if part is not None]
    return {name: value for part in known for name, value in part.items()} if known else None


def _pick(values: Mapping[str, Any] | None, wanted: set[str]) -> dict[str, Any] | None:
    if values is None:
        return None
    return {row_id: value for row_id, value in values.items() if row_id in wanted}
