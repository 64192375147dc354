"""How the scheduler applies the rules for steps that overlap (`plan/overlap.py`).

A step generates with the weights of the steps that had ended when it began. So a `sync` waits until
all stages of later steps that generate with the old weights have begun, and for all passes of
refills and rounds, but not for stages that themselves wait for its step. A search calls its policy
many times with one version of the weights: it and a sync wait for each other.

A window holds `staleness` + 1 steps (rounded up), so step k begins when step k - 1 - staleness has
ended. With a fraction, only that share of the rows of the last step is generated ahead: between two
syncs at most 1 + staleness steps of rows, minus what was generated ahead before.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from coloop.data.tables import Table
from coloop.data.tables.table import concat_tables
from coloop.plan.overlap import Overlap
from coloop.plan.types import Stage
from coloop.runtime.roles.protocol import PartRole
from coloop.runtime.schedule.calls import Calls, Unrolled
from coloop.runtime.schedule.in_flight import Early, StepInFlight, Work
from coloop.runtime.schedule.units import Task


@dataclass(frozen=True, kw_only=True)
class Window(Overlap):
    """The rules for steps in flight."""

    def lets(self, stage: Stage, before: Sequence[StepInFlight]) -> bool:
        """Whether a ready stage may start beside the earlier steps."""
        return self.may_start(stage, [tuple(step.units.open_stages()) for step in before])

    def meets(self, stage: Stage, at_work: Iterable[Stage]) -> bool:
        """Whether this stage and a running one are a sync and a search that calls the synced
        weights."""
        return any(
            self._changes_under(stage, other) or self._changes_under(other, stage)
            for other in at_work
        )

    def waits_for_writers(
        self,
        stage: Stage,
        own: StepInFlight,
        behind: Sequence[StepInFlight],
        can_begin_with_some: Callable[[Stage], bool],
    ) -> bool:
        """Whether a sync waits for later steps that generate with the current weights. All steps
        before `own` have ended; `behind` are the active ones after it. `can_begin_with_some`:
        whether a stage can process a share of its rows first."""
        if stage.verb != "sync":
            return False
        group = self.groups.get(stage.node, stage.node)
        waits = _Waits(self, (own, *behind), can_begin_with_some)
        return any(
            later.verb == "generate"
            and group in {self.groups.get(node, node) for node in later.givers}
            and not waits.has_passed(index, later)
            and not waits.reaches(index, later, stage)
            for index, step in enumerate(behind, start=1)
            for later in step.units.open_stages()
        )

    def _changes_under(self, sync: Stage, caller: Stage) -> bool:
        if sync.verb != "sync" or caller.pool is not None:
            return False
        return self.groups.get(sync.node) in {self.groups.get(node, node) for node in caller.calls}


@dataclass(eq=False)
class _Waits:
    """Which stages of some steps in flight wait for which."""

    window: Window
    steps: Sequence[StepInFlight]
    can_begin_with_some: Callable[[Stage], bool]

    def __post_init__(self) -> None:
        self._open = [tuple(step.units.open_stages()) for step in self.steps]

    def has_passed(self, index: int, stage: Stage) -> bool:
        """Whether a stage of a step already has the weights that it generates with."""
        step = self.steps[index]
        if self._is_short(index, stage) and stage.name in step.begun_parts:
            return True
        return stage.name in step.begun and not self._is_repeated(index, stage)

    def _is_repeated(self, index: int, stage: Stage) -> bool:
        """Whether it may begin again before the earlier steps have ended."""
        beside = [other for other in self._open[index] if set(other.within) & set(stage.within)]
        return bool(stage.within) and not any(self.window.is_in_turn(other) for other in beside)

    def reaches(self, index: int, stage: Stage, sync: Stage) -> bool:
        """Whether a stage waits, directly or indirectly, for a sync of the first step."""
        seen: set[tuple[int, str]] = set()
        waiting = [(index, stage)]
        while waiting:
            at, waiter = waiting.pop()
            if (at, waiter.name) in seen:
                continue
            seen.add((at, waiter.name))
            if at == 0 and waiter.name == sync.name:
                return True
            waiting += self._waited_for(at, waiter)
        return False

    def _waited_for(self, index: int, stage: Stage) -> Iterator[tuple[int, Stage]]:
        yield from ((index, other) for other in self._open[index] if other.name in stage.after)
        is_put_off = self._is_short(index, stage) and not self.can_begin_with_some(stage)
        for before in range(index):
            for earlier in self._open[before]:
                if is_put_off or self.window.waits_for(stage, earlier):
                    yield before, earlier

    def _is_short(self, index: int, stage: Stage) -> bool:
        return self.window.share(stage, index) < 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    work: Work
    tables: Unrolled
    share: float = 1.0
    """The first rows of these tables, as a share."""


@dataclass(eq=False)
class EarlyStages:
    """Stages that begin before their turn with a part of their rows: readers of groups that a
    generator passes on before the others (`stream`), and generators of the first prompts of a step
    while earlier steps are in flight (a fraction of `max_staleness`).

    The results of a stage do not depend on this: it still runs in its turn.
    """

    calls: Calls
    window: Window
    work_of: Callable[[Task, StepInFlight], Work]
    has_room: Callable[[str | None], bool]
    """Whether a lane can take one more stage."""
    _handed_on: deque[tuple[Work, Table]] = field(default_factory=deque, init=False)
    """Rows that generators passed on early."""
    bell: Future[None] = field(default_factory=Future, init=False)
    """Done when rows were passed on."""

    def hand_on(self, work: Work, table: Table) -> None:
        """Called in the lane of a generator with rows that it passes on early."""
        self._handed_on.append((work, table))
        with suppress(InvalidStateError):  # it is done already
            self.bell.set_result(None)

    def parts(self, flights: Sequence[StepInFlight], at_work: Collection[Work]) -> Iterator[Part]:
        """Parts that can begin now, those of earlier steps first."""
        self._take_handed_on(at_work)
        for index, flight in enumerate(flights):
            if not (flight.is_cancelled or flight.has_failed):
                yield from self._with_rows(flight, flights[:index])
                yield from self._ahead(flight, flights[:index])

    def _with_rows(self, flight: StepInFlight, before: Sequence[StepInFlight]) -> Iterator[Part]:
        for early in flight.early.values():
            stage, work = early.task.stage, early.work
            is_free = self.has_room(stage.pool) and not (work is not None and work.is_part)
            if early.parts and is_free and self.window.lets(stage, before):
                early.work = work or self.work_of(early.task, flight)
                table, early.parts = concat_tables(early.parts), []
                source = self.calls.only_source(stage, early.task.step_context, early.task.tables)
                assert source is not None
                given = early.task.tables.without(())
                given.tables[source] = table
                given.delivered = set(stage.edges)
                yield Part(work=early.work, tables=given)

    def _ahead(self, flight: StepInFlight, before: Sequence[StepInFlight]) -> Iterator[Part]:
        """Generators that may process a share of their rows before a sync."""
        for task in flight.units.ready():
            stage, share = task.stage, self.window.share(task.stage, len(before))
            if (
                0.0 < share < 1.0
                and task.key not in flight.early
                and isinstance(self.calls.role(stage)[1], PartRole)
                and self.has_room(stage.pool)
                and self.window.lets(stage, before)
            ):
                flight.note_ready(task)
                work = self.work_of(task, flight)
                work.has_all_rows = True
                flight.early[task.key] = Early(task=task, work=work)
                yield Part(work=work, tables=task.tables, share=share)

    def _take_handed_on(self, at_work: Collection[Work]) -> None:
        """Note which stages the rows are for; a finished generator has passed on all rows."""
        if self.bell.done():
            self.bell = Future()
        while self._handed_on:
            writer, table = self._handed_on.popleft()
            if writer not in at_work:
                continue
            flight, source = writer.flight, (writer.stage.node, "rollouts")
            for task in writer.task.readers():
                role = self.calls.role(task.stage)[1]
                if (
                    self.calls.only_source(task.stage, task.step_context, task.tables) == source
                    and isinstance(role, PartRole)
                    and role.can_begin(task.step_context.context)
                ):
                    flight.note_ready(task)
                    flight.early.setdefault(task.key, Early(task=task)).parts.append(table)
