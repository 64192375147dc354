"""Levels: what a row descends from, known from the spec alone.

    problems ─┬─ actor ── judge          judge's rows are below actor's: a score of theirs goes up
              └─ rival                   rival's rows stand beside them: up to problems, then down

A level says how the rows of a table came to be: the node in which they are born and the levels of
their parents. Levels are values, made by `born`, `joined` and `gathered`, which give the same
object for the same value. A joined level carries no node of its own (`JOINED`), so two nodes that
join the same parents in the same order work on the same rows; a gathered one carries the node by
which its rows were gathered. A row of a later round has the level of round 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import combinations as combinations_of
from typing import Any, Final

JOINED: Final = "join"


class Relation(StrEnum):
    """Where a scored table stands, seen from the rows that receive it."""

    SAME = "same"
    """The receivers are the scored rows."""
    DOWN = "down"
    """The scores come from ancestors of the receivers: they are broadcast."""
    UP = "up"
    """The scores come from descendants of the receivers: they need an `aggregate`."""
    SIDE = "side"
    """The scored rows stand on another branch: up to the nearest common ancestor, then down."""
    NONE = "none"
    """No common ancestor."""


LevelsByPort = Iterable[tuple[str, "Levels"]]
NEARNESS: Final = {relation: distance for distance, relation in enumerate(Relation)}
"""Nearer relations have smaller numbers."""


@dataclass(frozen=True, slots=True)
class Level:
    """How the rows of a table came to be; see the module."""

    node: str
    """Node in which the rows are born; `JOINED` where siblings were joined or crossed."""
    parents: tuple["Level", ...] = ()
    """Ordered: a pair's are its chosen and its rejected side."""
    joined: bool = False
    """A child of all its parents, made by a join and not by a node."""
    _hash: int = field(init=False, repr=False, compare=False)
    _key: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    """Sort key that is the same in every run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.node, self.parents, self.joined)))
        parents = tuple(parent._key for parent in self.parents)
        object.__setattr__(self, "_key", (self.node, self.joined, parents))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return (_make, (self.node, self.parents, self.joined))

    def __str__(self) -> str:
        """The node that a person would name: `actor`, or `tens + units` where siblings were
        joined."""
        if self.joined and self.node == JOINED:
            return " + ".join(str(parent) for parent in self.parents)
        return self.node


Levels = frozenset[Level]
"""The levels of one table; several if a node concatenates tables."""

NO_LEVELS: Final[Levels] = frozenset()


@lru_cache(maxsize=65536)
def _make(node: str, parents: tuple[Level, ...], is_joined: bool) -> Level:
    return Level(node, parents, is_joined)


def born(node: str, *parents: Level) -> Level:
    return _make(node, parents, False)


def children(node: str, rows: Levels) -> Levels:
    """New rows of a node, one below each of these."""
    return frozenset(born(node, level) for level in rows)


def joined(parents: tuple[Level, ...]) -> Level:
    """The level of rows in which siblings of these levels are joined or crossed."""
    return _make(JOINED, parents, True)


def gathered(by: str, members: tuple[Level, ...]) -> Level:
    """The level of rows that gather the members under one row of node `by`."""
    return _make(by, members, True)


@lru_cache(maxsize=4096)
def ancestors(level: Level) -> Mapping[Level, int]:
    """The level itself and every level above it, with the shortest way down in births."""
    distances = {level: 0}
    for parent in level.parents:
        for ancestor, distance in ancestors(parent).items():
            if distance + 1 < distances.get(ancestor, distance + 2):
                distances[ancestor] = distance + 1
    return distances


@lru_cache(maxsize=16384)
def relate_pair(receiver: Level, scored: Level) -> Relation:
    """Where `scored` stands, seen from `receiver`."""
    if receiver == scored:
        return Relation.SAME
    above = ancestors(receiver)
    if scored in above:
        return Relation.DOWN
    below = ancestors(scored)
    if receiver in below:
        return Relation.UP
    return Relation.NONE if above.keys().isdisjoint(below) else Relation.SIDE


def relate(receivers: Levels, scored: Levels) -> Relation:
    """The nearest relation between any receiving and any scored level.

    If any receivers are the scored rows or their descendants, no score has to go up: in a
    concatenated table each score stays with its own rows.
    """
    best = Relation.NONE
    for receiver in receivers:
        for level in scored:
            relation = relate_pair(receiver, level)
            if NEARNESS[relation] < NEARNESS[best]:
                best = relation
    return best


def match(receiver: Level, scored: Levels) -> tuple[Relation, Levels]:
    """The nearest relation of one receiving level to scored levels, and the levels that have it."""
    relations = {level: relate_pair(receiver, level) for level in scored}
    best = min(relations.values(), key=NEARNESS.__getitem__, default=Relation.NONE)
    if best is Relation.NONE:
        return best, NO_LEVELS
    return best, frozenset(level for level, relation in relations.items() if relation is best)


def common_ancestor(a: Level, b: Level) -> Level | None:
    """The nearest level from which both descend; possibly one of the two."""
    from_a, from_b = ancestors(a), ancestors(b)
    shared = [level for level in from_a if level in from_b]
    if not shared:
        return None

    def distance(level: Level) -> tuple[Any, ...]:
        ways = from_a[level], from_b[level]
        return sum(ways), max(ways), level._key

    return min(shared, key=distance)


def join_levels(parts: Iterable[Level]) -> Level:
    """The level of rows that align or cross these levels, in whatever order.

    An ancestor of another of these levels adds columns, but no rows. If several other levels are
    left, the result is a child of all of them.
    """
    distinct = tuple(dict.fromkeys(parts))
    lowest = tuple(
        level
        for level in distinct
        if not any(other is not level and level in ancestors(other) for other in distinct)
    )
    return lowest[0] if len(lowest) == 1 else joined(ordered(lowest))


def align(tables: Sequence[Levels]) -> tuple[tuple[tuple[Level, ...], ...], tuple[int, int] | None]:
    """The combinations of levels whose rows meet when tables are joined, one level of each table.

    Levels of concatenated tables meet only their nearest relatives: of `{alice, bob}` and
    `{judge of alice}` the judge's rows meet alice's and nothing else. All tables are taken at once:
    a combination counts if it is the nearest one for each of its levels.

    Returns:
        The combinations, and the first two tables that have no common ancestor.
    """
    related: list[tuple[Level, ...]] = [()]
    for table in tables:
        related = [
            (*met, level)
            for met in related
            for level in ordered(table)
            if all(relate_pair(other, level) is not Relation.NONE for other in met)
        ]
    distances = {met: _distance(met) for met in related}
    nearest: dict[tuple[int, Level], int] = {}
    for met, distance in distances.items():
        for position in enumerate(met):
            nearest[position] = min(distance, nearest.get(position, distance))
    combinations = tuple(
        met
        for met, distance in distances.items()
        if all(distance == nearest[position] for position in enumerate(met))
    )
    return combinations, None if combinations else _first_apart(tables)


def _distance(met: tuple[Level, ...]) -> int:
    return sum(_kinship(a, b) for a, b in combinations_of(met, 2))


def _first_apart(tables: Sequence[Levels]) -> tuple[int, int]:
    places = combinations_of(range(len(tables)), 2)
    apart = (
        (i, j)
        for i, j in places
        if all(relate_pair(a, b) is Relation.NONE for a in tables[i] for b in tables[j])
    )
    return next(apart, (0, len(tables) - 1))


def _kinship(a: Level, b: Level) -> int:
    relation = relate_pair(a, b)
    return NEARNESS[Relation.DOWN if relation is Relation.UP else relation]


def ordered(levels: Iterable[Level]) -> tuple[Level, ...]:
    """Levels in an order that is the same in every run."""
    return tuple(sorted(levels, key=lambda level: level._key))


@lru_cache(maxsize=4096)
def births(level: Level) -> frozenset[str]:
    return frozenset(map(birth, ancestors(level)))


def birth(level: Level) -> str:
    return JOINED if level.joined else level.node
