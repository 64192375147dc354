"""Joins tables by the lineage of their rows, into the rows that a node works on.

All tables are joined at once: a match has one row of each table, and any two of its rows must be
related. So the order of the tables does not matter.

    same rows        problems ── actor ─┬─ exact            one row with the columns of both
    ancestors        problems ── actor                      the descendant with the columns of both
    siblings         sums ─┬─ tens ──┐
                           └─ units ─┴─ both                one new row for each equal k
    branches         sums ─┬─ tens ── again ──┐
                           └─ units ──────────┴─ both       one new row for each row of that branch

How two tables are related is read from the trails of their rows, for whole tables. A concatenated
table has rows of several levels; the spec says which of them are matched (`Meetings`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from coloop.data.tables.row import JOINED, Row, born_at, joined_row, merge_columns
from coloop.data.tables.table import Table, concat_tables


class Births(NamedTuple):
    """The nodes that created the rows of one level; `join` for joined rows."""

    own: str
    parents: frozenset[str]
    all: frozenset[str]
    """Those of the rows and of all their ancestors."""


Met = tuple[Row, ...]
"""Matching rows, one per table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meetings:
    """The levels of each table, and the combinations of levels, one per table, whose rows match."""

    levels: tuple[tuple[Births, ...], ...]
    combinations: tuple[tuple[Births, ...], ...]

    @property
    def is_plain(self) -> bool:
        return all(len(levels) <= 1 for levels in self.levels)


class _Kin(Enum):
    """How the rows of two tables are related."""

    SAME = 1
    LINE = 2
    SIBLINGS = 3


def join_rows(tables: Sequence[Table], meetings: Meetings | None = None) -> tuple[Row, ...]:
    """`join: align`: rows that match in every table: the same row, an ancestor and its descendants,
    or siblings of equal k. At unequal depth, k is compared at the top of the two branches."""
    return _joined(tables, meetings, is_crossed=False)


def cross_rows(tables: Sequence[Table], meetings: Meetings | None = None) -> tuple[Row, ...]:
    """`join: cross`: all combinations of siblings under their nearest common ancestor."""
    return _joined(tables, meetings, is_crossed=True)


def concat_rows(tables: Sequence[Table]) -> tuple[Row, ...]:
    """`join: concat`: the tables' rows one after another, each with its own lineage."""
    return concat_tables(tables).rows if tables else ()


def matched_rows(
    left: tuple[Row, ...], right: tuple[Row, ...], meetings: Meetings | None = None
) -> list[tuple[Row, Row]]:
    """Pairs of matching rows of two tables, as in `join_rows`, without merging their columns."""
    tables = [Table(rows=left), Table(rows=right)]
    return [(met[0], met[1]) for met in _all_met(tables, meetings, is_crossed=False)]


def are_aligned(row: Row, other: Row) -> bool:
    """Whether two rows of different branches have equal k below their nearest common ancestor; at
    unequal depth only the first k counts."""
    shared = _fork_of(row, other)
    if shared is None:
        return False
    ways, other_ways = row.ways_from(shared), other.ways_from(shared)
    is_level = max(map(len, ways)) == max(map(len, other_ways))
    if is_level and len(ways) == len(other_ways) == 1:
        return ways == other_ways
    return len({way[0] for way in (*ways, *other_ways)}) == 1


def are_siblings(row: Row, other: Row) -> bool:
    """Whether two rows are in branches that different nodes, or joins, created below their nearest
    common ancestor."""
    shared = _fork_of(row, other)
    if shared is None:
        return False
    first, second = (born_at(each.trail[shared][0][0]) for each in (row, other))
    return first != second or first == JOINED


def gather_rows(
    rows: Sequence[Row], births: Collection[str] | None, by: str | None = None
) -> tuple[Row, ...]:
    """`join: {gather: node}`: one row for all descendants of one row of that node. Columns of that
    row keep their value, others become lists in the order of `rows`.

    Args:
        births: the named node and those that create its rows; None: gather by parent.
        by: the named node; in a rounds region, its last row above counts, whoever created it.

    Raises:
        LookupError: a row has no such ancestor.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if births is not None:
            handed_on = None if by is None else row.handed_on(by)
            above = handed_on or row.ancestor_born_at(*births, least=1)
        else:
            above = row.parents[0] if row.parents else None
        if above is None:
            raise LookupError(f"row {row.id} does not descend from any row that could gather it")
        groups.setdefault(above, []).append(row)
    return tuple(
        _gathered(above, members, births or (born_at(above),)) for above, members in groups.items()
    )


def gathered_members(row: Row) -> tuple[str, ...]:
    """Ids of the rows that `gather_rows` put into this one, in order."""
    return row.parents


def _gathered(above: str, members: list[Row], births: Collection[str]) -> Row:
    first = members[0]
    names = dict.fromkeys(name for member in members for name in member.columns)
    columns: dict[str, object] = {}
    for name in names:
        if name in first.depths and first.depths[name] >= len(first.trail[above]):
            columns[name] = first.columns[name]
        else:
            columns[name] = [member.columns.get(name) for member in members]
    joined = joined_row(members)
    scoped: dict[str, object] = {
        name: [member.scoped.get(name) for member in members]
        for name in dict.fromkeys(name for member in members for name in member.scoped)
    }
    for name in scoped:
        node, _, bare = name.partition(".")
        value = first.scoped.get(name)
        is_bare = bare in columns and columns[bare] is first.columns.get(bare) is value
        if node in births or is_bare:
            scoped[name] = value
    depths = dict.fromkeys(columns, 0)
    return joined.but(group=above, columns=columns, scoped=scoped, depths=depths, passed={})


def _joined(
    tables: Sequence[Table], meetings: Meetings | None, *, is_crossed: bool
) -> tuple[Row, ...]:
    """A row per match: its lowest row with the columns of all, or a child of several lowest."""
    if len(tables) == 1 and (meetings is None or meetings.is_plain):
        rows = tables[0].rows
        if len({row.id for row in rows}) == len(rows):
            return rows  # each row matches itself only
    by_lowest: dict[tuple[str, ...], list[Met]] = {}
    for met in _all_met(tables, meetings, is_crossed=is_crossed):
        by_lowest.setdefault(_lowest(met), []).append(met)
    merged = [[_merged(name, mets) for name in names] for names, mets in by_lowest.items()]
    return tuple(
        parents[0] if len(parents) == 1 else joined_row(parents, k=k)
        for parents, k in zip(merged, _places(merged), strict=True)
    )


def _lowest(met: Met) -> tuple[str, ...]:
    """Ids of the rows of a match that have no descendant in it, sorted."""
    above = {ancestor for row in met for ancestor, way in row.trail.items() if way}
    lowest = {row.id for row in met} - above
    return tuple(sorted(lowest, key=lambda name: (born_at(name), name)))


def _merged(name: str, mets: Sequence[Met]) -> Row:
    """The row of this id, with the columns of all its copies and ancestors in the matches."""
    rows = {id(row): row for met in mets for row in met}
    own = [row for row in rows.values() if row.id == name]
    above = [row for row in rows.values() if row.id != name and row.id in own[0].trail]
    others = [*own[1:], *above]
    return merge_columns(own[0], others) if others else own[0]


def _places(joined: Sequence[Sequence[Row]]) -> list[int]:
    """k of each joined row: its index among the joined rows that share parents, also indirectly."""
    knots: dict[str, list[str]] = {}
    for parents in joined:
        knot = list(dict.fromkeys(n for row in parents for n in knots.get(row.id, [row.id])))
        for name in knot:
            knots[name] = knot
    counts: defaultdict[int, int] = defaultdict(int)
    places = []
    for parents in joined:
        knot_id = id(knots[parents[0].id])
        places.append(counts[knot_id])
        counts[knot_id] += 1
    return places


def _all_met(
    tables: Sequence[Table], meetings: Meetings | None, *, is_crossed: bool
) -> Iterator[Met]:
    """All matches, one row per table, in the order of the tables' rows."""
    if not tables:
        return
    given = [table.rows for table in tables]
    if meetings is None or meetings.is_plain:
        yield from _met(given, is_crossed=is_crossed)
        return
    by_level = [
        _by_level(rows, levels) for rows, levels in zip(given, meetings.levels, strict=True)
    ]
    for combination in meetings.combinations:
        rows = [held.get(level, ()) for held, level in zip(by_level, combination, strict=True)]
        yield from _met(rows, is_crossed=is_crossed)


def _by_level(rows: Sequence[Row], levels: Sequence[Births]) -> Mapping[Births, tuple[Row, ...]]:
    """Rows by the most similar level; rows of later rounds have more births than any level."""
    by_level: dict[Births, list[Row]] = {}
    nearest: dict[Births, Births] = {}
    for row in rows:
        births = Births(born_at(row.id), frozenset(map(born_at, row.parents)), _births(row))
        if births not in nearest:
            nearest[births] = min(levels, key=lambda level: _unlikeness(level, births))
        by_level.setdefault(nearest[births], []).append(row)
    return {level: tuple(held) for level, held in by_level.items()}


def _unlikeness(level: Births, births: Births) -> tuple[bool, bool, int, list[str]]:
    is_other = level.own != births.own
    return is_other, level.parents != births.parents, len(level.all ^ births.all), sorted(level.all)


def _met(tables: Sequence[Sequence[Row]], *, is_crossed: bool) -> Iterator[Met]:
    """Matches of tables that have one level each."""
    belong = are_siblings if is_crossed else are_aligned
    if not all(tables):
        return
    indexes = [_Index(rows) for rows in tables]
    kin = {(i, j): indexes[i].kin_of(indexes[j]) for j in range(len(tables)) for i in range(j)}

    def goes_with(row: Row, other: Row, kind: _Kin) -> bool:
        match kind:
            case _Kin.SAME:
                return row.id == other.id
            case _Kin.LINE:
                return other.id in row.trail or row.id in other.trail
        return belong(row, other)

    def extend(met: Met) -> Iterator[Met]:
        table = len(met)
        if table == len(tables):
            yield met
            return
        for row in indexes[table].near(met[0], kin[0, table], is_crossed=is_crossed):
            if all(goes_with(row, other, kin[i, table]) for i, other in enumerate(met)):
                yield from extend((*met, row))

    for row in tables[0]:
        yield from extend((row,))


class _Index:
    """Lookups over the rows of one table."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.by_id = {row.id: row for row in rows}

    @cached_property
    def below(self) -> Mapping[str, Mapping[str, Row]]:
        """By ancestor, the rows under it."""
        below: dict[str, dict[str, Row]] = {}
        for row in self.rows:
            for ancestor, way in row.trail.items():
                if way:
                    below.setdefault(ancestor, {})[row.id] = row
        return below

    @cached_property
    def branches(self) -> Mapping[tuple[str, int], Mapping[str, Row]]:
        """By ancestor and k below it, the rows of that branch."""
        branches: dict[tuple[str, int], dict[str, Row]] = {}
        for row in self.rows:
            for branch in _branches_of(row):
                branches.setdefault(branch, {})[row.id] = row
        return branches

    def kin_of(self, other: "_Index") -> _Kin:
        if not self.by_id.keys().isdisjoint(other.by_id):
            return _Kin.SAME
        if self._stands_under(other) or other._stands_under(self):
            return _Kin.LINE
        return _Kin.SIBLINGS

    def _stands_under(self, other: "_Index") -> bool:
        return any(not other.by_id.keys().isdisjoint(row.trail) for row in self.rows)

    def near(self, row: Row, kin: _Kin, *, is_crossed: bool) -> Sequence[Row]:
        """Rows that may match a row of another table, in order; the caller checks each."""
        match kin:
            case _Kin.SAME:
                own = self.by_id.get(row.id)
                return [] if own is None else [own]
            case _Kin.LINE:
                above = [self.by_id[name] for name in row.trail if name in self.by_id]
                return [*above, *self.below.get(row.id, {}).values()]
        near: dict[str, Row] = {}
        if is_crossed:
            for ancestor in row.trail:
                near |= self.below.get(ancestor, {})
        else:
            for branch in _branches_of(row):
                near |= self.branches.get(branch, {})
        return list(near.values())


def _branches_of(row: Row) -> Iterator[tuple[str, int]]:
    """The branches that contain a row, each as an ancestor and the k of the child below it."""
    for ancestor, way in row.trail.items():
        places = {ways[0] for ways in row.ways_from(ancestor)} if way else set()
        if len(places) == 1:
            yield ancestor, places.pop()


def _fork_of(row: Row, other: Row) -> str | None:
    """The nearest common ancestor of two rows; None if one is above the other, they are of one
    level, or have none."""
    if row.id in other.trail or other.id in row.trail:
        return None
    if born_at(row.id) == born_at(other.id) and _births(row) == _births(other):
        return None
    shared = row.trail.keys() & other.trail.keys()

    def distance(ancestor: str) -> tuple[int, int, str]:
        ways = len(row.trail[ancestor]), len(other.trail[ancestor])
        return sum(ways), max(ways), ancestor

    return min(shared, key=distance, default=None)


def _births(row: Row) -> frozenset[str]:
    return frozenset(born_at(ancestor) for ancestor in row.trail)
