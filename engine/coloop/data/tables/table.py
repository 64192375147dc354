"""A table: ordered rows, with scores, log-probs and values by row id. Immutable."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coloop.data.arrays import Numbers
from coloop.data.distributions import Teacher
from coloop.data.tables.row import Row, Score

OTHER = "other "
"""Prefix of the keys `chosen` and `rejected` in `log_probs` for the sides of another pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of one port in one step, and scores, log-probs or values that refer to them."""

    rows: tuple[Row, ...] = ()
    scores: Mapping[str, Score] | None = None
    """Scores by row id."""
    scorer: str | None = None
    score_range: tuple[float, float] | None = None
    """(low, high) of the scorer, if known: for a rejected row, s becomes low + high - s."""
    unturned: frozenset[str] = frozenset()
    """Ids of rows whose score is not mirrored for the rejected side of a pair."""
    judged: Mapping[str, str] | None = None
    """By row id: the row whose text the positions of a score refer to; None: the row itself."""
    reduce: str | None = None
    """How scores by position become one number for other rows; None: they cannot."""
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By name and row id, the numbers that a score was computed from, such as those of a rubric's
    criteria; only shown."""
    log_probs: Mapping[str, Any] | None = None
    """By row id: an array over completion tokens, (L,), or for a pair a dict of arrays with the
    keys `chosen` and `rejected`; with the prefix `OTHER`, the sides of another pair, scored under
    the prompt of this one."""
    distributions: Mapping[str, Teacher] | None = None
    """By row id, for a learner that asks for it: what a teacher says of each trained token and of
    other words there."""
    values: Mapping[str, Numbers] | None = None
    """By row id: one value per completion token, (L,)."""
    values_at: Mapping[float, Mapping[str, Numbers]] = field(default_factory=dict)
    """By lambda and row id: returns for critics that have a lambda of their own, (L,)."""

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
            distributions=_pick(self.distributions, wanted),
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
        distributions=_merged([t.distributions for t in tables]),
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
