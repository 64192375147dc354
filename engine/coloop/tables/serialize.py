"""Rows as JSON and back, for buffers in checkpoints.

Columns must be plain JSON values; tokens and numbers at positions, whose keys JSON would turn into
texts, are marked.
"""

from dataclasses import asdict
from typing import Any

from coloop.tables.row import Row, Score, Tokens


def row_to_json(row: Row) -> dict[str, Any]:
    """A row as plain values."""
    plain = asdict(row)
    plain["columns"] = {name: _to_plain(value) for name, value in row.columns.items()}
    plain["scoped"] = {name: _to_plain(value) for name, value in row.scoped.items()}
    return plain


def row_from_json(plain: dict[str, Any]) -> Row:
    """The row that `row_to_json` wrote."""
    fields = dict(plain)
    fields["parents"] = tuple(plain["parents"])
    fields["trail"] = {
        ancestor: tuple((step, k) for step, k in way) for ancestor, way in plain["trail"].items()
    }
    fields["places"] = {
        ancestor: tuple(tuple(way) for way in ways)
        for ancestor, ways in plain.get("places", {}).items()
    }
    fields["columns"] = {name: _from_plain(value) for name, value in plain["columns"].items()}
    fields["scoped"] = {name: _from_plain(value) for name, value in plain["scoped"].items()}
    fields["tokens"] = Tokens(**plain["tokens"]) if plain["tokens"] else None
    return Row(**fields)


def score_to_json(score: Score) -> Any:
    """A score as plain values."""
    return _to_plain(score)


def score_from_json(plain: Any) -> Score:
    """The score that `score_to_json` wrote."""
    score: Score = _from_plain(plain)
    return score


def _to_plain(value: Any) -> Any:
    if isinstance(value, Tokens):
        return {"__tokens__": asdict(value)}
    if isinstance(value, dict) and any(isinstance(key, int) for key in value):
        return {"__positions__": list(value.items())}
    return value


def _from_plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"__tokens__"}:
        return Tokens(**value["__tokens__"])
    if value.keys() == {"__positions__"}:
        return dict(value["__positions__"])
    return value
