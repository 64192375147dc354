"""A region that edges with `rounds` repeat.

    from outside ──> round 1 ──closing rows──> round 2 ──> ... ──> tables of all rounds

Every round has its own tables: rows from outside, those that the round before passed on, and its
own, all with its number. Nodes outside see the region's tables after the last round. Rounds end
early if no row continues.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from coloop.data.tables import Row, Table, born_at
from coloop.data.tables.table import concat_tables
from coloop.plan.types import Rounds
from coloop.runtime.schedule.calls import Tables, Unrolled
from coloop.runtime.schedule.units import Repeated, Spot
from coloop.spec.graph import Edge
from coloop.spec.lineage.walk import Take


class Region(Repeated):
    def __init__(self, rounds: Rounds, spot: Spot) -> None:
        super().__init__(rounds.stages, spot)
        self.waits = frozenset(n for stage in self.stages for n in stage.after) - self.names
        self._rounds = rounds
        self._closing = [spot.tree.calls.edges[key] for key in rounds.edges]
        self._over: list[RoundTables] = []
        self._outside = Unrolled()
        self._entered: frozenset[str] = frozenset()

    def _enter(self) -> None:
        lineage = self._step_context.context.lineage
        self._outside = self._unrolled.without(self._nodes)
        self._outside.is_round = True
        entered: set[str] = set()
        for edge in self._entries():
            table = self._unrolled.along(edge, lineage.take(edge))
            if table is not None:
                self._outside.brought[edge.key] = table
                entered.update(row.id for row in table.rows)
        self._entered = frozenset(entered)
        self._begin_round({})

    def _entries(self) -> list[Edge]:
        keys = dict.fromkeys(key for stage in self.stages for key in stage.edges)
        edges = [self._tree.calls.edges[key] for key in keys]
        return [edge for edge in edges if edge.source.node not in self._nodes]

    def _begin_round(self, closing: Mapping[str, Table]) -> None:
        """`closing`: the tables from the round before, by edge."""
        number = len(self._over) + 1
        fresh = self._outside.without(())
        fresh.brought |= closing
        fresh.brought = {key: table.in_round(number) for key, table in fresh.brought.items()}
        fresh.past += [earlier.going_on for earlier in self._over]
        step_context = replace(self._step_context, round=number)
        if self._over:
            fresh.delivered = {edge.key for edge in self._entries()}
            step_context = replace(
                step_context,
                salt=f"{step_context.salt}round-{number}",
                without=step_context.without.union(self._rounds.once),
                is_line=self._rounds.branch == "lines",
            )
        self._begin(number, self.stages, step_context, fresh)

    def _ended(self) -> None:
        fresh = self._fresh
        tables = {key: table for key, table in fresh.tables.items() if key[0] in self._nodes}
        self._unrolled.delivered |= fresh.delivered
        came = {
            edge.key: tables.get((edge.source.node, edge.source.port), Table())
            for edge in self._closing
        }
        closing = {row.id: row for table in came.values() for row in table.rows}
        going_on: dict[str, Table] = {}
        if len(self._over) + 1 < self._rounds.rounds:
            going_on = selected(came, tables, self._entered, self._rounds.branch)
        rows = {row.id: row for table in going_on.values() for row in table.rows}
        self._over.append(RoundTables(tables=tables, closing=closing, going_on=rows))
        if rows:
            self._begin_round(going_on)
            return
        for key, table in all_rounds(self._over).items():
            self._unrolled.tables[key] = table
            for take, rest in taken(key, self._over).items():
                self._unrolled.taken[take][key] = rest
        self._unrolled.past += [earlier.going_on for earlier in self._over[:-1]]
        self.end()


# Rows that continue from one round to the next, and tables that leave a region of rounds.
#
#     closing rows ──branch──> rows that go on      one: the first of each conversation
#                                                   all, lines: every row
#     tables of rounds ──> all, last, ends
#
# A greedy extra is scored and compared with, but is continued in no branch.

Branch = Literal["one", "all", "lines"]
Rows = Mapping[str, Row]
OUTPUT = "rollouts"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTables:
    tables: Tables
    """Of the region's nodes."""
    closing: Rows
    going_on: Rows = field(default_factory=dict)
    """Those that go into the next round."""


def selected(
    closing: Mapping[str, Table], tables: Tables, entered: Collection[str], branch: Branch
) -> dict[str, Table]:
    """Rows that continue over each closing edge. `closing`: what it brings, by key. `tables`: of
    the region in this round. `entered`: ids of the rows that entered the region."""
    written = [_Written.of(node, table) for (node, port), table in tables.items() if port == OUTPUT]
    going_on = {}
    for key, table in closing.items():
        rows = [row for row in table.rows if all(ids.leads_to(row) for ids in written)]
        if branch == "one":
            rows = _first_of_each(rows, frozenset(entered))
        going_on[key] = table.restricted_to(row.id for row in rows)
    return going_on


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    all: frozenset[str]
    sampled: frozenset[str]
    """Without greedy extras."""

    @classmethod
    def of(cls, node: str, table: Table) -> "_Written":
        own = [row for row in table.rows if born_at(row.id) == node]
        sampled = frozenset(row.id for row in own if not row.is_greedy)
        return cls(all=frozenset(row.id for row in own), sampled=sampled)

    def leads_to(self, row: Row) -> bool:
        """Whether a row descends from a sample, or from none of these rows."""
        mine = self.all.intersection(row.trail)
        return not mine or not mine.isdisjoint(self.sampled)


def _first_of_each(rows: Sequence[Row], entered: frozenset[str]) -> list[Row]:
    """The first row of each conversation: of those that descend from the same entered rows."""
    first: dict[frozenset[str], Row] = {}
    for row in rows:
        first.setdefault(entered.intersection(row.trail) or frozenset({row.id}), row)
    return list(first.values())


def all_rounds(rounds: Sequence[RoundTables]) -> dict[tuple[str, str], Table]:
    """Tables of all rounds, concatenated; a row that comes again replaces the earlier one."""
    parts: dict[tuple[str, str], list[Table]] = {}
    for tables in rounds:
        for key, table in tables.tables.items():
            parts.setdefault(key, []).append(table)
    return {key: _stacked(tables) for key, tables in parts.items()}


def taken(key: tuple[str, str], rounds: Sequence[RoundTables]) -> dict[Take, Table]:
    """What `take: last` and `take: ends` select from one table.

    ends: rows after which the table has no row of the same conversation. last: those of them that
    were not left behind when their conversation continued with another sample.
    """
    ends, last = [], []
    later: set[str] = set()
    for index, earlier in reversed([*enumerate(rounds)]):
        table = earlier.tables.get(key, Table())
        followed = _Kin({name: row for name, row in earlier.going_on.items() if name in later})
        came, went_on = _Kin(earlier.closing), _Kin(earlier.going_on)
        is_last = index == len(rounds) - 1
        ended = [row for row in table.rows if not followed.has(row)]
        own = [row for row in ended if is_last or not came.has(row) or went_on.has(row)]
        ends.append(table.restricted_to(row.id for row in ended))
        last.append(table.restricted_to(row.id for row in own))
        later.update(name for row in table.rows for name in row.trail)
    return {"last": _stacked(last[::-1]), "ends": _stacked(ends[::-1])}


class _Kin:
    def __init__(self, rows: Rows) -> None:
        self._ids = rows.keys()
        self._above = frozenset().union(*(row.trail for row in rows.values()))

    def has(self, row: Row) -> bool:
        return row.id in self._above or not self._ids.isdisjoint(row.trail)


def _stacked(tables: Sequence[Table]) -> Table:
    """Tables concatenated; of a row that comes again the last counts."""
    known: set[str] = set()
    kept = []
    for table in reversed(tables):
        kept.append(table.restricted_to(row.id for row in table.rows if row.id not in known))
        known.update(row.id for row in table.rows)
    return concat_tables(kept[::-1]) if kept else Table()
