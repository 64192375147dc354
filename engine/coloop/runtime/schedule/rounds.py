"""A region that edges with `rounds` repeat (language.md 8).

    from outside ──> round 1 ──closing rows──> round 2 ──> ... ──> tables of all rounds

Every round has tables of its own, in which only what comes from outside and from the round before
stands beside its own rows; all rows of it carry its number. What is outside sees the region's
tables once its last round is over. Rounds end early where nobody goes on.
"""

from collections.abc import Mapping
from dataclasses import replace

from coloop.data.tables import Table
from coloop.plan.types import Rounds
from coloop.runtime.schedule.calls import StepContext, Unrolled
from coloop.runtime.schedule.takes import RoundTables, all_rounds, selected, taken
from coloop.runtime.schedule.units import Place, Task, Together, Tree, UnitsOf
from coloop.spec.graph import Edge


class Region:
    """See the module."""

    def __init__(
        self,
        rounds: Rounds,
        step_context: StepContext,
        place: Place,
        unrolled: Unrolled,
        tree: Tree,
        units: UnitsOf,
    ) -> None:
        """
        Args:
            units: makes the units of some stages.
        """
        self.stages = tuple(tree.stages[name] for name in rounds.stages)
        self.names = self.members = frozenset(rounds.stages)
        self.waits = frozenset(n for stage in self.stages for n in stage.after) - self.names
        self.is_done = False
        self.home: Together | None = None
        self._rounds = rounds
        self._step_context = step_context
        self._place = place
        self._unrolled = unrolled
        self._tree = tree
        self._units = units
        self._nodes = frozenset(node for stage in self.stages for node in stage.givers)
        self._closing = [tree.calls.edge(key) for key in rounds.edges]
        self._over: list[RoundTables] = []
        self._outside = Unrolled()
        self._entered: frozenset[str] = frozenset()
        self._fresh = Unrolled()
        self._round: Together | None = None

    def ready(self) -> list[Task]:
        if self._round is None:
            self._enter()
            self._round = self._next_round({})
        return self._round.ready()

    def _enter(self) -> None:
        """What comes from outside is there."""
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

    def _entries(self) -> list[Edge]:
        keys = dict.fromkeys(key for stage in self.stages for key in stage.edges)
        edges = [self._tree.calls.edge(key) for key in keys]
        return [edge for edge in edges if edge.source.node not in self._nodes]

    def _next_round(self, closing: Mapping[str, Table]) -> Together:
        """
        Args:
            closing: what comes from the round before, by edge.
        """
        number = len(self._over) + 1
        fresh = self._outside.copy()
        fresh.brought |= closing
        fresh.brought = {key: table.in_round(number) for key, table in fresh.brought.items()}
        fresh.past += [one.going_on for one in self._over]
        if self._over:
            fresh.delivered = {edge.key for edge in self._entries()}
        self._fresh = fresh
        step_context = self._step_context_in(number)
        return self._units(
            self.stages, step_context, fresh, (*self._place, number), self._round_ended
        )

    def _step_context_in(self, number: int) -> StepContext:
        around = self._step_context
        if number == 1:
            return replace(around, round=1)
        return replace(
            around,
            round=number,
            salt=f"{around.salt}round-{number}",
            without=around.without.union(self._rounds.once),
            is_line=self._rounds.branch == "lines",
        )

    def _round_ended(self) -> None:
        tables = {key: one for key, one in self._fresh.tables.items() if key[0] in self._nodes}
        self._unrolled.delivered |= self._fresh.delivered
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
            self._round = self._next_round(going_on)
        else:
            self._close()

    def _close(self) -> None:
        for key, table in all_rounds(self._over).items():
            self._unrolled.tables[key] = table
            self._unrolled.taken[key] = taken(key, self._over)
        self._unrolled.past += [one.going_on for one in self._over[:-1]]
        self.is_done = True
        assert self.home is not None
        self.home.unit_ended()
