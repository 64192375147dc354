"""Stages that are repeated until their filter has enough; what each pass gives is added to the
tables of each port."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from coloop.data.tables.table import Table, concat_tables
from coloop.plan.types import Refill, Stage
from coloop.runtime.roles.filter import FilterRole
from coloop.runtime.schedule.calls import StepContext, Taken, Unrolled
from coloop.runtime.schedule.units import Place, Task, Together, Tree, UnitsOf
from coloop.spec.graph import Edge
from coloop.spec.nodes import NODE_CLASSES

ROW_PORTS = frozenset(port for node in NODE_CLASSES.values() for port in node.about.rows)
"""Inputs whose rows a node works on."""


class RefillPasses:
    """Stages of one refill, run again in passes until their filter has enough rows."""

    def __init__(
        self,
        refill: Refill,
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
        self.stages = tuple(tree.stages[name] for name in refill.stages)
        self.names = frozenset(refill.first_pass)
        self.members = frozenset(refill.stages)
        self.waits = (
            frozenset(name for stage in self.stages for name in stage.after) | set(refill.shared)
        ) - self.names
        self.is_done = False
        self.home: Together | None = None
        role = tree.roles[refill.filter]
        assert isinstance(role, FilterRole)
        self._role = role
        self._refill = refill
        self._step_context = step_context
        self._place = place
        self._unrolled = unrolled
        self._tree = tree
        self._units = units
        self._pass: Together | None = None
        self._stages: Sequence[Stage] = ()
        """Of the pass."""
        self._fresh = Unrolled()
        self._turn = 0
        self._first_pass = 0
        self._seen = Unrolled()

    def ready(self) -> list[Task]:
        if self._pass is None:
            self._seen = self._unrolled.copy()
            self._seen.tables |= self._tree.begun.tables_of(self._refill.shared)
            self._pass = self._next_pass()
        return self._pass.ready()

    def _next_pass(self) -> Together:
        self._turn += 1
        refill, is_first = self._refill, self._turn == 1
        self._stages = [s for s in self.stages if not is_first or s.name in refill.first_pass]
        given = self._seen.copy() if is_first else self._seen.without(self._nodes)
        if not is_first and refill.only_lacking:
            self._keep_lacking(given)
        step_context = self._step_context
        if not is_first:
            step_context = replace(step_context, without=step_context.without.union(refill.once))
        self._fresh = given
        place = (*self._place, self._turn)
        return self._units(self._stages, step_context, given, place, self._pass_ended)

    def _pass_ended(self) -> None:
        unrolled, fresh, context = self._unrolled, self._fresh, self._step_context.context
        if self._turn == 1:
            self._first_pass = self._input_rows(fresh)
        _add(unrolled, fresh, {node for stage in self._stages for node in stage.givers})
        if self._role.has_enough(unrolled.tables, self._first_pass, context):
            self._close()
        elif self._turn == self._refill.max_rounds:
            message = (
                f"{self._refill.filter}: not enough rows after {self._refill.max_rounds} rounds; "
                "the step continues with the available rows"
            )
            self._tree.notices.append((self._refill.filter, "filter.not_filled", message))
            self._close()
        else:
            self._pass = self._next_pass()

    def _close(self) -> None:
        self._role.cut_surplus(self._unrolled.tables, self._first_pass, self._step_context.context)
        self.is_done = True
        assert self.home is not None
        self.home.unit_ended()

    @property
    def _nodes(self) -> frozenset[str]:
        return frozenset(node for stage in self.stages for node in stage.givers)

    @property
    def _entries(self) -> list[Edge]:
        """Edges that bring the rows on which the slice's sources work; what they learn from, call
        or are scored by is no input of the slice."""
        sources = self._refill.sources
        keys = [key for stage in self.stages if stage.node in sources for key in stage.edges]
        edges = [self._tree.calls.edge(key) for key in keys]
        return [edge for edge in edges if edge.target.port in ROW_PORTS]

    def _input_rows(self, unrolled: Unrolled) -> int:
        """Rows at the input of the slice's sources; of datasets and buffers, what they gave."""
        lineage = self._step_context.context.lineage
        brought = [unrolled.along(edge, lineage.take(edge)) for edge in self._entries]
        given = [table for table in brought if table is not None]
        if not given:
            by_source = {
                node: table
                for (node, port), table in reversed(unrolled.tables.items())
                if node in self._refill.sources
            }
            given = list(by_source.values())
        return sum(len(table.rows) for table in given)

    def _keep_lacking(self, given: Unrolled) -> None:
        """Only rows at the source's input from which nothing has been kept yet go round again; a
        greedy extra is not what is waited for."""
        kept = {
            ancestor
            for (node, _), table in self._unrolled.tables.items()
            if node == self._refill.filter
            for row in table.rows
            if not row.is_greedy
            for ancestor in row.trail
        }
        for edge in self._entries:
            given.leave_out(edge, kept)


def _add(unrolled: Unrolled, fresh: Unrolled, nodes: Collection[str]) -> None:
    """Put what a pass gave at the ports of these nodes behind what is there."""
    unrolled.delivered |= fresh.delivered
    for key in [key for key in fresh.tables if key[0] in nodes]:
        given, known = fresh.taken.get(key), unrolled.taken.get(key)
        if given is not None:
            unrolled.taken[key] = Taken(
                last=_behind(None if known is None else known.last, given.last),
                ends=_behind(None if known is None else known.ends, given.ends),
            )
        unrolled.tables[key] = _behind(unrolled.tables.get(key), fresh.tables[key])
    unrolled.past += fresh.past[len(unrolled.past) :]


def _behind(known: Table | None, fresh: Table) -> Table:
    return concat_tables([known, fresh]) if known else fresh
