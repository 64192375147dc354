"""The stages of one step as a tree, which says what may start now.

    step ─┬─ stage                 once
          ├─ slice of a filter     its stages repeatedly, until the filter has enough rows
          ├─ region of rounds      its stages in rounds; may contain slices, or be in a slice
          └─ stage

The results of a step do not depend on the order in which its stages end: units with stages in
common run one after another, and everything else is merged by name.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from coloop.data.tables.table import concat_tables
from coloop.plan.stages import Step
from coloop.plan.types import Refill, Stage
from coloop.runtime.roles.filter import FilterRole
from coloop.runtime.schedule.calls import Calls, StepContext, Unrolled
from coloop.runtime.schedule.rounds import Region
from coloop.runtime.schedule.units import (
    Ended,
    Notice,
    Place,
    Repeated,
    Spot,
    StageRuns,
    Task,
    Tree,
    Unit,
    UnitList,
    step_context_of,
)
from coloop.spec.graph import Edge
from coloop.spec.nodes import NODE_CLASSES

ROW_PORTS = frozenset(port for node in NODE_CLASSES.values() for port in node.about.rows)
"""Inputs whose rows a node works on."""


def units_of_step(
    step: Step,
    step_context: StepContext,
    unrolled: Unrolled,
    calls: Calls,
    notices: list[Notice],
) -> UnitList:
    """The units of one step, or of one list that runs for a probe. When all have ended, the tables
    of `unrolled` are in the order of the stages. Units add their notices to `notices`."""
    tree = Tree(
        stages={stage.name: stage for stage in step.stages},
        refills={refill.filter: refill for refill in step.refills},
        regions={region.name: region for region in step.regions},
        calls=calls,
        stage_runs=StageRuns(
            shared=frozenset(name for refill in step.refills for name in refill.shared)
        ),
        notices=notices,
    )
    order = {stage.node: at for at, stage in reversed([*enumerate(step.stages)])}

    def put_in_order() -> None:
        tables = unrolled.tables
        keys = sorted(tables, key=lambda key: order.get(key[0], -1))
        unrolled.tables = {key: tables[key] for key in keys}

    return _List(tree)(step.stages, step_context, unrolled, (), put_in_order)


@dataclass(frozen=True, slots=True)
class _List:
    """Builds the units of a list inside some slices and regions."""

    tree: Tree
    within: tuple[str, ...] = ()

    def __call__(
        self,
        stages: Sequence[Stage],
        step_context: StepContext,
        unrolled: Unrolled,
        place: Place,
        ended: Ended,
    ) -> UnitList:
        units: list[Unit] = []
        known: set[str] = set()
        for stage in stages:
            holder = self._holder(stage)
            if holder is None or holder not in known:
                spot = Spot(
                    step_context=step_context,
                    place=(*place, len(units)),
                    tables=unrolled,
                    tree=self.tree,
                    units=self,
                )
                units.append(self._unit(stage, holder, spot))
                known |= {holder} if holder is not None else set()
        return UnitList(units, ended)

    def _holder(self, stage: Stage) -> str | None:
        """The slice or region below this list that contains a stage; a probe refills nothing."""
        tree = self.tree
        holding = (name for name in stage.within if name in tree.refills or name in tree.regions)
        return next((name for name in holding if name not in self.within), None)

    def _unit(self, stage: Stage, holder: str | None, spot: Spot) -> Unit:
        tree = self.tree
        if holder is None:
            is_refilled = any(name in tree.refills for name in self.within)
            own = step_context_of(
                stage, spot.step_context, tree.stage_runs, is_refilled=is_refilled
            )
            return Task(stage, replace(spot, step_context=own))
        spot = replace(spot, units=_List(tree, (*self.within, holder)))
        if holder in tree.refills:
            return RefillPasses(tree.refills[holder], spot)
        return Region(tree.regions[holder], spot)


class RefillPasses(Repeated):
    """Stages of one refill, repeated in passes until their filter has enough rows. The rows of each
    pass are added to the tables of each port."""

    def __init__(self, refill: Refill, spot: Spot) -> None:
        super().__init__(refill.stages, spot)
        self.names = frozenset(refill.first_pass)
        self.waits = (
            frozenset(name for stage in self.stages for name in stage.after) | set(refill.shared)
        ) - self.names
        role = spot.tree.calls.roles[refill.filter]
        assert isinstance(role, FilterRole)
        self._role = role
        self._refill = refill
        self._turn = 0
        self._first_pass = 0
        self._seen = Unrolled()

    def _enter(self) -> None:
        self._seen = self._unrolled.without(())
        for name in self._refill.shared:
            self._seen.tables |= self._tree.stage_runs.first[name]
        self._begin_pass()

    def _begin_pass(self) -> None:
        self._turn += 1
        refill, is_first, step_context = self._refill, self._turn == 1, self._step_context
        stages = [s for s in self.stages if not is_first or s.name in refill.first_pass]
        given = self._seen.without(() if is_first else self._nodes)
        if not is_first:
            step_context = replace(step_context, without=step_context.without.union(refill.once))
            if refill.only_lacking:
                self._keep_lacking(given)
        self._given = {node for stage in stages for node in stage.givers}
        self._begin(self._turn, stages, step_context, given)

    def _ended(self) -> None:
        unrolled, refill, context = self._unrolled, self._refill, self._step_context.context
        if self._turn == 1:
            self._first_pass = self._input_rows(self._fresh)
        _add(unrolled, self._fresh, self._given)
        has_enough = self._role.has_enough(unrolled.tables, self._first_pass, context)
        if not has_enough and self._turn < refill.max_rounds:
            self._begin_pass()
            return
        if not has_enough:
            message = (
                f"{refill.filter}: not enough rows after {refill.max_rounds} rounds; "
                "the step continues with the available rows"
            )
            self._tree.notices.append((refill.filter, "filter.not_filled", message))
        self._role.cut_surplus(unrolled.tables, self._first_pass, context)
        self.end()

    @property
    def _entries(self) -> list[Edge]:
        """Edges that deliver the rows on which the slice's sources work."""
        sources = self._refill.sources
        keys = [key for stage in self.stages if stage.node in sources for key in stage.edges]
        edges = [self._tree.calls.edges[key] for key in keys]
        return [edge for edge in edges if edge.target.port in ROW_PORTS]

    def _input_rows(self, unrolled: Unrolled) -> int:
        """Rows at the input of the slice's sources; for datasets and buffers, their outputs."""
        lineage = self._step_context.context.lineage
        along = [unrolled.along(edge, lineage.take(edge)) for edge in self._entries]
        given = [table for table in along if table is not None]
        if not given:
            by_source = {
                node: table
                for (node, port), table in reversed(unrolled.tables.items())
                if node in self._refill.sources
            }
            given = list(by_source.values())
        return sum(len(table.rows) for table in given)

    def _keep_lacking(self, given: Unrolled) -> None:
        """Repeat only rows of which nothing was kept yet, apart from greedy extras."""
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
    """Append the tables of a pass at the ports of these nodes."""
    unrolled.delivered |= fresh.delivered
    pairs = [(unrolled.taken[take], tables) for take, tables in fresh.taken.items()]
    for known, tables in (*pairs, (unrolled.tables, fresh.tables)):
        for key, table in tables.items():
            if key[0] in nodes:
                known[key] = concat_tables([known[key], table]) if known.get(key) else table
    unrolled.past += fresh.past[len(unrolled.past) :]
