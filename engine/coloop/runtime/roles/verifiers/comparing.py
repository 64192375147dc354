"""What scores of pairs say: how far each speaks for `chosen`, and whether the order in which the
sides were shown decides it.

A pair may be scored itself, or by several verdicts about it; those know in which order they saw it.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from coloop.data.tables import Row, Table
from coloop.runtime.roles.verifiers.turning import ORDERS, SWAPPED, is_pair

Orders = list[tuple[float, float]]


def leads_of(rows: Sequence[Row], scores: Mapping[str, Any], table: Table) -> list[float]:
    """How far the scores of pairs, or of verdicts about them, stand above the middle of their
    table."""
    middle = middle_of(table)
    said = (scores.get(row.id) for row in rows if is_pair(row))
    return [score - middle for score in said if isinstance(score, float | int)]


def orders_of(rows: Sequence[Row], scores: Mapping[str, Any], table: Table) -> Orders:
    """The same of each pair in the order in which it came and in the other one, of those that were
    judged in both."""
    middle = middle_of(table)
    both = [row.scoped.get(f"{table.scorer}.{ORDERS}") for row in rows]
    found = [(one - middle, other - middle) for one, other in filter(None, both)]
    by_pair: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        swapped, score = row.scoped.get(f"{table.scorer}.{SWAPPED}"), scores.get(row.id)
        if swapped is not None and isinstance(score, float | int):
            by_pair.setdefault(row.parents[0], ([], []))[swapped].append(score - middle)
    means = [(fmean(one), fmean(other)) for one, other in by_pair.values() if one and other]
    return [*found, *means]


def middle_of(table: Table) -> float:
    """The score that speaks for neither side."""
    return 0.0 if table.score_range is None else sum(table.score_range) / 2
