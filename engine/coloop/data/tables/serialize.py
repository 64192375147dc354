"""Values of rows as JSON and back, for what checkpoints keep.

What JSON does not know is marked: dataclasses, arrays, and numbers at positions, whose keys it
would turn into texts. Where the numbers of an array go is the caller's choice: `Keep` gives what
stands for it in the JSON, `Fetch` the array again. Tuples come back as lists, but for those that
make up a row.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from coloop.data.tables.row import Row, Tokens

Keep = Callable[[NDArray[Any]], Any]
Fetch = Callable[[Any], NDArray[Any]]
Kinds = Mapping[str, Callable[..., Any]]
"""By the name of a dataclass, what makes one of its fields."""

KIND: Final = "__kind__"
ARRAY: Final = "__array__"
POSITIONS: Final = "__positions__"
PLAIN: Final = "__plain__"
"""Of a dictionary that looks like a mark and is none."""
MARKS: Final = ({KIND}, {ARRAY}, {POSITIONS}, {PLAIN})


def to_plain(value: Any, keep: Keep) -> Any:
    """A value as plain ones."""
    if isinstance(value, np.ndarray):
        return {ARRAY: keep(value)}
    if isinstance(value, list | tuple):
        return [to_plain(part, keep) for part in value]
    if is_dataclass(value):
        own = {one.name: to_plain(getattr(value, one.name), keep) for one in fields(value)}
        return {KIND: [type(value).__name__, own]}
    if not isinstance(value, Mapping):
        return value
    if any(isinstance(key, int) for key in value):
        return {POSITIONS: list(value.items())}
    plain = {key: to_plain(part, keep) for key, part in value.items()}
    return {PLAIN: plain} if value.keys() in MARKS else plain


def from_plain(plain: Any, fetch: Fetch, kinds: Kinds) -> Any:
    """The value that `to_plain` wrote.

    Args:
        kinds: the dataclasses that may stand in it.
    """
    if isinstance(plain, list):
        return [from_plain(part, fetch, kinds) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.keys() == {ARRAY}:
        return fetch(plain[ARRAY])
    if plain.keys() == {POSITIONS}:
        return dict(plain[POSITIONS])
    if plain.keys() == {KIND}:
        name, own = plain[KIND]
        return kinds[name](**_values(own, fetch, kinds))
    return _values(plain.get(PLAIN, plain) if len(plain) == 1 else plain, fetch, kinds)


def _values(plain: Mapping[str, Any], fetch: Fetch, kinds: Kinds) -> dict[str, Any]:
    return {key: from_plain(value, fetch, kinds) for key, value in plain.items()}


def _row(**known: Any) -> Row:
    """A row, whose ways are tuples."""
    ways, places = known["trail"], known["places"]
    known["parents"] = tuple(known["parents"])
    known["trail"] = {name: tuple((step, k) for step, k in way) for name, way in ways.items()}
    known["places"] = {name: tuple(tuple(way) for way in own) for name, own in places.items()}
    return Row(**known)


ROW_KINDS: Final[Kinds] = {"Row": _row, "Tokens": Tokens}
"""What rows are made of."""
