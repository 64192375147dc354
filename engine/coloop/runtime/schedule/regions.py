"""The stages of one step as a tree, which says what may start now.

    step ─┬─ stage                 once
          ├─ slice of a filter     its stages again and again, until the filter has enough
          ├─ region of rounds      its stages in rounds; slices may stand in it, and it in a slice
          └─ stage

What a step gives does not depend on the order in which its stages end: units that have stages in
common come one after another, and everything else is put together by name.
"""

from collections.abc import Iterable, Mapping, Sequence

from coloop.plan.stages import Step
from coloop.plan.types import Stage
from coloop.runtime.roles.protocol import Outcome, Role
from coloop.runtime.schedule.calls import Calls, StepContext, Unrolled
from coloop.runtime.schedule.refill_passes import RefillPasses
from coloop.runtime.schedule.rounds import Region
from coloop.runtime.schedule.units import (
    Alone,
    Begun,
    Ended,
    Notice,
    Place,
    Task,
    Together,
    Tree,
    Unit,
    step_context_of,
)


class StepRegion:
    """The stages of one step, or of one list that runs for a probe."""

    def __init__(
        self,
        step: Step,
        step_context: StepContext,
        unrolled: Unrolled,
        *,
        calls: Calls,
        roles: Mapping[str, Role],
    ) -> None:
        self.unrolled = unrolled
        self._notices: list[Notice] = []
        shared = frozenset(name for refill in step.refills for name in refill.shared)
        tree = Tree(
            stages={stage.name: stage for stage in step.stages},
            refills={refill.filter: refill for refill in step.refills},
            regions={region.name: region for region in step.regions},
            calls=calls,
            roles=roles,
            begun=Begun(shared=shared),
            notices=self._notices,
        )
        self._order = {stage.node: at for at, stage in reversed([*enumerate(step.stages)])}
        self._units = _List(tree)(step.stages, step_context, unrolled, (), self._put_in_order)

    def ready(self) -> list[Task]:
        return self._units.ready()

    def readers(self, task: Task) -> list[Task]:
        """What could start if a task at work had ended, and reads the same tables."""
        return task.unit.readers()

    def started(self, task: Task) -> None:
        task.unit.started()

    def finished(self, task: Task, outcome: Outcome) -> None:
        task.unit.finished(outcome)

    def put_back(self, task: Task) -> None:
        task.unit.put_back()

    def open_stages(self) -> Iterable[Stage]:
        return self._units.open_stages()

    def take_notices(self) -> list[Notice]:
        """What came up since this was asked last."""
        notices, self._notices[:] = list(self._notices), []
        return notices

    @property
    def is_done(self) -> bool:
        return self._units.is_done

    def _put_in_order(self) -> None:
        tables = self.unrolled.tables
        order = sorted(tables, key=lambda key: self._order.get(key[0], -1))
        self.unrolled.tables = {key: tables[key] for key in order}


class _List:
    """Makes the units of a list within some slices and regions."""

    def __init__(self, tree: Tree, within: tuple[str, ...] = ()) -> None:
        self._tree = tree
        self._within = within

    def __call__(
        self,
        stages: Sequence[Stage],
        step_context: StepContext,
        unrolled: Unrolled,
        place: Place,
        ended: Ended,
    ) -> Together:
        units: list[Unit] = []
        known: set[str] = set()
        for stage in stages:
            holder = self._holder(stage)
            if holder is None or holder not in known:
                at = (*place, len(units))
                units.append(self._unit(stage, holder, step_context, unrolled, at))
                known |= {holder} if holder is not None else set()
        return Together(units, ended)

    def _holder(self, stage: Stage) -> str | None:
        """The slice or region below this list that holds a stage; a probe refills nothing."""
        tree = self._tree
        holding = (one for one in stage.within if one in tree.refills or one in tree.regions)
        return next((one for one in holding if one not in self._within), None)

    def _unit(
        self,
        stage: Stage,
        holder: str | None,
        step_context: StepContext,
        unrolled: Unrolled,
        place: Place,
    ) -> Unit:
        tree = self._tree
        if holder is None:
            is_refilled = any(name in tree.refills for name in self._within)
            own = step_context_of(stage, step_context, tree.begun, is_refilled=is_refilled)
            return Alone(stage, own, place, unrolled, tree.begun)
        units = _List(tree, (*self._within, holder))
        if holder in tree.refills:
            return RefillPasses(tree.refills[holder], step_context, place, unrolled, tree, units)
        return Region(tree.regions[holder], step_context, place, unrolled, tree, units)
