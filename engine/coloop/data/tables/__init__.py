"""Tables with lineage: what flows along an edge in one step, and the joins between them."""

from coloop.data.tables.attach import attach
from coloop.data.tables.join import concat_rows, cross_rows, gather_rows, join_rows, matched_rows
from coloop.data.tables.row import ABSENT, Row, Score, Tokens, born_at
from coloop.data.tables.table import OTHER, Table

__all__ = [
    "ABSENT",
    "OTHER",
    "Row",
    "Score",
    "Table",
    "Tokens",
    "attach",
    "born_at",
    "concat_rows",
    "cross_rows",
    "gather_rows",
    "join_rows",
    "matched_rows",
]
