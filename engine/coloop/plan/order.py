"""The order of a step: everything after what it waits for, the stages of one slice in one piece.

Pure: keys, what each waits for, and the piece in which it stands. Knows no kinds, edges or roles.
"""

import graphlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from coloop.errors import PlanInconsistent

Key = TypeVar("Key", bound=Hashable)


def in_order(
    before: Mapping[Key, Iterable[Key]],
    piece_of: Callable[[Key], Hashable],
    rank: Callable[[Key], int],
) -> list[Key]:
    """The keys, each after those before it and with its piece in one run; where either may come
    first, the lower rank does.

    Raises:
        PlanInconsistent: where two wait for each other.
    """
    pieces: dict[Hashable, list[Key]] = {}
    for key in before:
        pieces.setdefault(piece_of(key), []).append(key)
    between: dict[Hashable, set[Hashable]] = {piece: set() for piece in pieces}
    within: dict[Hashable, dict[Key, set[Key]]] = {
        piece: {key: set() for key in keys} for piece, keys in pieces.items()
    }
    for key, waits in before.items():
        piece = piece_of(key)
        for other in waits:
            if piece_of(other) == piece:
                within[piece][key].add(other)
            else:
                between[piece].add(piece_of(other))
    ordered = _sorted(between, lambda piece: min(rank(key) for key in pieces[piece]))
    return [key for piece in ordered for key in _sorted(within[piece], rank)]


def _sorted(before: Mapping[Key, Iterable[Key]], rank: Callable[[Key], int]) -> list[Key]:
    sorter = graphlib.TopologicalSorter(before)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        circle = " → ".join(map(str, error.args[1]))
        raise PlanInconsistent(f"stages wait for each other: {circle}") from error
    order: list[Key] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=rank)
        order.extend(ready)
        sorter.done(*ready)
    return order
