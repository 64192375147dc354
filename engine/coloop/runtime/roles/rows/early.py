"""Rows that a node has worked on before its table was whole."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coloop.data.tables import Row


def families(rows: Sequence[Row]) -> list[list[int]]:
    """Places of the rows that were written to the same rows, in order; the greedy extra of a prompt
    stands alone, as it counts in no group."""
    found: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
    for place, row in enumerate(rows):
        found.setdefault((row.is_greedy, row.parents or (row.id,)), []).append(place)
    return list(found.values())


class Begun:
    """What a node found for single rows before it saw all of them."""

    def __init__(self, parts: Iterable[Mapping[str, tuple[Row, Any]]]) -> None:
        """
        Args:
            parts: by row id, the row as it was then and what was found for it.
        """
        self._known = {name: one for part in parts for name, one in part.items()}

    def of(self, rows: Sequence[Row]) -> list[Any] | None:
        """What was found for these rows; None where one of them was not seen, or has been written
        again since."""
        found = [self._known.get(row.id) for row in rows]
        known = [one for one in found if one is not None]
        is_same = [one[0].tokens is row.tokens for one, row in zip(known, rows, strict=False)]
        return [one[1] for one in known] if len(known) == len(rows) and all(is_same) else None
