"""Comparisons between those who wrote: of judged pairs the two sides, else every two texts that
different writers wrote for one problem."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from coloop.data.contests import Game, result_of
from coloop.data.tables import Row, Table, Tokens
from coloop.runtime.roles.rows.texts import SIDES
from coloop.runtime.roles.verifiers.comparing import middle_of
from coloop.runtime.roles.verifiers.turning import is_pair


def games_of(rows: Sequence[Row], scores: Mapping[str, Any], table: Table) -> list[Game]:
    """Of the rows of one problem; what has no score took part in none.

    Args:
        table: the scores as they came in.
    """
    said = [(row, scores.get(row.id)) for row in rows]
    graded = [(row, float(score)) for row, score in said if isinstance(score, float | int)]
    middle = middle_of(table)
    judged = [(row, score - middle) for row, score in graded if is_pair(row)]
    if judged:
        return [_judged(row, lead) for row, lead in judged]
    return [
        Game(first=one.writer, second=other.writer, result=result_of(score - other_score))
        for (one, score), (other, other_score) in combinations(graded, 2)
        if one.writer is not None and other.writer is not None and one.writer != other.writer
    ]


def _judged(row: Row, lead: float) -> Game:
    chosen, rejected = (_writer(row, side) for side in SIDES)
    if chosen == rejected:
        chosen, rejected = SIDES
    return Game(first=chosen, second=rejected, result=result_of(lead))


def _writer(row: Row, side: str) -> str:
    """Who drew the text of a side; a text that nobody drew goes by the name of its side."""
    tokens = row.columns.get(f"{side}_tokens")
    return (tokens.writer or side) if isinstance(tokens, Tokens) else side
