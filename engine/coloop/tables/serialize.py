"""Rows as JSON and back, for buffers in checkpoints. Columns must be plain JSON values."""

from dataclasses import asdict
from typing import Any

from coloop.tables.row import Row, Tokens


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
    fields["columns"] = {name: _from_plain(value) for name, value in plain["columns"].items()}
    fields["scoped"] = {name: _from_plain(value) for name, value in plain["scoped"].items()}
    fields["tokens"] = Tokens(**plain["tokens"]) if plain["tokens"] else None
    return Row(**fields)


def _to_plain(value: Any) -> Any:
    return {"__tokens__": asdict(value)} if isinstance(value, Tokens) else value


def _from_plain(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"__tokens__"}:
        return Tokens(**value["__tokens__"])
    return value
