"""Joins of tables by lineage: the rows that a node works on (language.md 2).

Which way two tables are related is read off their rows' trails, for whole tables at a time. That is
sound even where a filter emptied one side: rows of one level that are not the same row differ in a
place `k` on their trails, and rows of levels above one another have trails of different length, so
neither can be taken for siblings.

    same rows        problems ── actor ─┬─ exact            columns of both, one row
    above, below     problems ── actor                      what is above comes down
    siblings         sums ─┬─ tens ──┐
                           └─ units ─┴─ both                one new row for each equal place k
"""

import itertools
from collections.abc import Collection, Mapping, Sequence

from coloop.tables.row import Row, born_at, joined_row, merge_columns
from coloop.tables.table import Table, concat_tables


def join_rows(tables: Sequence[Table]) -> tuple[Row, ...]:
    """`join: align`: rows that every table delivered, ancestors with descendants, siblings of equal
    k."""
    if not tables:
        return ()
    rows = tables[0].rows
    for table in tables[1:]:
        rows = _align(rows, table.rows)
    return rows


def concat_rows(tables: Sequence[Table]) -> tuple[Row, ...]:
    """`join: concat`: the tables' rows one after another, each with its own lineage."""
    return concat_tables(tables).rows if tables else ()


def cross_rows(tables: Sequence[Table]) -> tuple[Row, ...]:
    """`join: cross`: all combinations of siblings under their nearest common ancestor."""
    if not tables:
        return ()
    rows = tables[0].rows
    for table in tables[1:]:
        related = _align_related(rows, table.rows)
        rows = related if related is not None else _cross(rows, table.rows)
    return rows


def matched_rows(left: tuple[Row, ...], right: tuple[Row, ...]) -> list[tuple[Row, Row]]:
    """Rows of both sides that belong together: the same row, one above the other, or siblings of
    equal k."""
    by_id = {row.id: row for row in right}
    if any(row.id in by_id for row in left):
        return [(row, by_id[row.id]) for row in left if row.id in by_id]
    if any(not by_id.keys().isdisjoint(row.trail) for row in left):
        return [(row, by_id[a]) for row in left for a in row.trail if a in by_id]
    above = {row.id: row for row in left}
    if any(not above.keys().isdisjoint(row.trail) for row in right):
        return [(above[a], row) for row in right for a in row.trail if a in above]
    return _sibling_pairs(left, right)


def gather_rows(rows: Sequence[Row], births: Collection[str] | None) -> tuple[Row, ...]:
    """`join: {gather: node}`: the descendants of one row of that node (default: the parent) in one
    row.

    The gathering row's columns stay single; every other column becomes a list in sibling order.

    Args:
        births: nodes in which the rows that the named node hands on are born, and the node itself.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if births is not None:
            above = row.ancestor_born_at(*births, least=1)
        else:
            above = row.parents[0] if row.parents else None
        if above is None:
            raise LookupError(f"row {row.id} descends from no row that could gather it")
        groups.setdefault(above, []).append(row)
    return tuple(
        _gathered(above, members, births or (born_at(above),)) for above, members in groups.items()
    )


def gathered_members(row: Row) -> tuple[str, ...]:
    """Ids of the rows gathered in this row, in order."""
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
    return Row(
        id=joined.id,
        parents=joined.parents,
        trail=joined.trail,
        round=joined.round,
        version=joined.version,
        group=above,
        columns=columns,
        scoped=scoped,
        depths=dict.fromkeys(columns, 0),
    )


def _align(left: tuple[Row, ...], right: tuple[Row, ...]) -> tuple[Row, ...]:
    related = _align_related(left, right)
    return related if related is not None else _siblings(left, right)


def _align_related(left: tuple[Row, ...], right: tuple[Row, ...]) -> tuple[Row, ...] | None:
    """Join of tables of which one is the other, or stands above it; None where they are
    siblings."""
    if not left or not right:
        return ()
    by_id = {row.id: row for row in right}
    if any(row.id in by_id for row in left):
        return tuple(merge_columns(row, [by_id[row.id]]) for row in left if row.id in by_id)
    if any(not by_id.keys().isdisjoint(row.trail) for row in left):
        return _descend(left, by_id)
    above = {row.id: row for row in left}
    if any(not above.keys().isdisjoint(row.trail) for row in right):
        return _descend(right, above)
    return None


def _descend(below: tuple[Row, ...], above: Mapping[str, Row]) -> tuple[Row, ...]:
    joined = []
    for row in below:
        ancestors = [above[ancestor] for ancestor in row.trail if ancestor in above]
        if ancestors:
            joined.append(merge_columns(row, ancestors))
    return tuple(joined)


def _siblings(left: tuple[Row, ...], right: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(joined_row(pair) for pair in _sibling_pairs(left, right))


def _sibling_pairs(left: tuple[Row, ...], right: tuple[Row, ...]) -> list[tuple[Row, Row]]:
    places: dict[tuple[str, tuple[int, ...]], Row] = {}
    for row in right:
        for ancestor, way in row.trail.items():
            if way:
                places.setdefault((ancestor, tuple(k for _, k in way)), row)
    pairs = []
    for row in left:
        for ancestor, way in sorted(row.trail.items(), key=lambda item: len(item[1])):
            other = places.get((ancestor, tuple(k for _, k in way))) if way else None
            if other is not None:
                pairs.append((row, other))
                break
    return pairs


def _cross(left: tuple[Row, ...], right: tuple[Row, ...]) -> tuple[Row, ...]:
    under: dict[str, list[Row]] = {}
    for row in right:
        for ancestor, way in row.trail.items():
            if way:
                under.setdefault(ancestor, []).append(row)
    joined: list[Row] = []
    for row in left:
        shared = [a for a, way in row.trail.items() if way and a in under]
        if shared:
            nearest = min(shared, key=lambda ancestor: len(row.trail[ancestor]))
            joined.extend(joined_row([a, b]) for a, b in itertools.product([row], under[nearest]))
    return tuple(joined)
