"""Stages that begin before their turn, with a part of their rows.

    groups that a writer hands on      its readers begin with them while others are written
                                       (`stream`)
    the first prompts of a step        their writer begins while steps before it, for whose weights
                                       the others wait, are on their way (a fraction of
                                       `max_staleness`)

Invariant: what a stage gives does not depend on whether it has begun; it runs in its turn whatever
it has done before.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from coloop.data.tables import Table
from coloop.data.tables.table import concat_tables
from coloop.runtime.roles.protocol import PartRole
from coloop.runtime.schedule.calls import Calls, Unrolled
from coloop.runtime.schedule.in_flight import Early, StepInFlight, Work
from coloop.runtime.schedule.units import Task
from coloop.runtime.schedule.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a stage can begin with."""

    work: Work
    tables: Unrolled
    share: float = 1.0
    """Of these rows; the first of them."""


@dataclass(eq=False)
class EarlyStages:
    """Which stages can begin before their turn."""

    calls: Calls
    window: Window
    work_of: Callable[[Task, StepInFlight], Work]
    """A stage goes to work in a flight, with what it has waited for."""
    has_room: Callable[[str | None], bool]
    """Whether a lane can take one more stage."""
    _handed_on: deque[tuple[Work, Table]] = field(default_factory=deque, init=False)
    """Rows that writers gave before the others, with who writes them."""
    bell: Future[None] = field(default_factory=Future, init=False)
    """Rings when there are some."""

    def hand_on(self, work: Work, table: Table) -> None:
        """Rows that a writer gave before the others; called in its lane."""
        self._handed_on.append((work, table))
        with suppress(InvalidStateError):  # it rings already
            self.bell.set_result(None)

    def parts(self, flights: Sequence[StepInFlight], at_work: Collection[Work]) -> Iterator[Part]:
        """What can begin now, stages of earlier steps first."""
        self._take_handed_on(at_work)
        for place, flight in enumerate(flights):
            if not (flight.is_cancelled or flight.has_failed):
                yield from self._with_rows(flight, flights[:place])
                yield from self._ahead(flight, flights[:place])

    def _with_rows(self, flight: StepInFlight, before: Sequence[StepInFlight]) -> Iterator[Part]:
        """Readers of rows that were handed on."""
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
        """Writers that may write a share of their rows before the weights come that the others wait
        for."""
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
        """Note which stages the rows are for; of a writer that has ended the whole table is
        there."""
        if self.bell.done():
            self.bell = Future()
        while self._handed_on:
            writer, table = self._handed_on.popleft()
            if writer not in at_work:
                continue
            flight, source = writer.flight, (writer.stage.node, "rollouts")
            for task in writer.task.unit.readers():
                role = self.calls.role(task.stage)[1]
                if (
                    self.calls.only_source(task.stage, task.step_context, task.tables) == source
                    and isinstance(role, PartRole)
                    and role.can_begin(task.step_context.context)
                ):
                    flight.note_ready(task)
                    flight.early.setdefault(task.key, Early(task=task)).parts.append(table)
