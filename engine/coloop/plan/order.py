"""The order of a step: everything after what it waits for, each region of stages in one piece.

Pure: keys, what each waits for, and the regions that hold it. Knows no kinds, edges or roles.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Generic[Key]):
    """Keys in their order, and what stood against it."""

    keys: list[Key]
    circles: tuple[tuple[Hashable, ...], ...]
    """Keys (or regions, as `("region", name)`) that wait for each other; the first stands at the
    end again. Each circle was cut somewhere."""


def in_order(
    before: Mapping[Key, Iterable[Key]],
    within: Callable[[Key], Sequence[Hashable]],
    rank: Callable[[Key], int],
) -> Order[Key]:
    """The keys, each after those before it and each region in one run; where either may come
    first, the lower rank does. What waits for itself is cut at its lowest rank.

    Args:
        within: the regions that hold a key, outermost first.
    """
    circles: list[tuple[Hashable, ...]] = []
    waits = {key: {one for one in others if one in before} for key, others in before.items()}
    keys = _ordered(list(before), waits, within, rank, 0, circles)
    return Order(keys=keys, circles=tuple(circles))


def _ordered(
    keys: list[Key],
    before: Mapping[Key, set[Key]],
    within: Callable[[Key], Sequence[Hashable]],
    rank: Callable[[Key], int],
    depth: int,
    circles: list[tuple[Hashable, ...]],
) -> list[Key]:
    def piece_of(key: Key) -> Hashable:
        path = within(key)
        return ("region", path[depth]) if len(path) > depth else key

    pieces: dict[Hashable, list[Key]] = {}
    for key in keys:
        pieces.setdefault(piece_of(key), []).append(key)
    place = {key: piece for piece, members in pieces.items() for key in members}
    between: dict[Hashable, set[Hashable]] = {
        piece: {place[one] for key in members for one in before[key] if one in place} - {piece}
        for piece, members in pieces.items()
    }
    ranks = {piece: min(rank(key) for key in members) for piece, members in pieces.items()}
    order: list[Key] = []
    for piece in _sorted(between, ranks, circles):
        members = pieces[piece]
        if members == [piece]:
            order += members
        else:
            order += _ordered(members, before, within, rank, depth + 1, circles)
    return order


def _sorted(
    before: Mapping[Any, set[Any]], rank: Mapping[Any, int], circles: list[tuple[Hashable, ...]]
) -> list[Any]:
    """Wave by wave: of those whose waits are over, the lowest rank first."""
    waiting = {key: set(others) for key, others in before.items()}
    following: dict[Any, list[Any]] = {key: [] for key in before}
    for key, others in before.items():
        for other in others:
            following[other].append(key)
    ready = [key for key, others in waiting.items() if not others]
    order: list[Any] = []
    while waiting:
        if not ready:
            first = min(waiting, key=rank.__getitem__)
            circles.append(_circle(first, waiting, rank))
            ready = [first]
        wave = sorted(ready, key=rank.__getitem__)
        order += wave
        ready = []
        for key in wave:
            del waiting[key]
        for key in wave:
            for other in following[key]:
                if other in waiting:
                    waiting[other].discard(key)
                    if not waiting[other] and other not in ready:
                        ready.append(other)
    return order


def _circle(
    start: Any, waiting: Mapping[Any, set[Any]], rank: Mapping[Any, int]
) -> tuple[Hashable, ...]:
    """Keys of which each stands before the next, and the last before the first."""
    seen: dict[Any, None] = {}
    key = start
    while key not in seen:
        seen[key] = None
        key = min((other for other in waiting[key] if other in waiting), key=rank.__getitem__)
    path = list(seen)
    return (key, *reversed(path[path.index(key) :]))
