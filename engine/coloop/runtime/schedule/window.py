"""Which stages of a step may start while steps before it are still on their way.

    learn, sync,
    score by weights that
    change, whatever calls
    a node that does so     wait for the steps before to end
    generate, credit        wait for the same of the steps before: neither reads what learns there
    everything else         waits for the same node's stages of the steps before

What writes has its weights from the steps that had ended when its own step began, so new ones
(`sync`) wait until whatever later steps write by the same weights has begun: whichever is ready
first, the order is the same. Of what is written again and again, as refills and rounds do, they
wait for all. They do not wait for what cannot begin before the steps that bring them have ended.
What writes by calls from the driver, a search, does all of it by one version of the weights: new
ones wait until it is through, and it waits until they are there.
A window holds `staleness` + 1 steps, so step k begins when step k - 1 - staleness has ended: that
bounds how old the weights are that write. Of a fraction the next whole number bounds the step, and
of what it writes ahead of the whole number below only that fraction of its rows: between two syncs
at most 1 + staleness steps of rows are written, less what was written ahead before.
With a window of one step nothing of the above is ever asked: there is one loop, not two.
"""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from coloop.data.tables import Table
from coloop.data.tables.table import concat_tables
from coloop.plan.types import Stage
from coloop.runtime.roles.protocol import PartRole
from coloop.runtime.schedule.calls import Calls, Unrolled
from coloop.runtime.schedule.in_flight import Early, StepInFlight, Work
from coloop.runtime.schedule.units import Task

IN_TURN = ("learn", "sync")
BESIDE_LEARNING = ("generate", "credit")
"""What a learner's node does while its weights learn from the steps before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How many steps are on their way at once, and how they keep out of each other's way."""

    staleness: float = 0.0
    """How many versions the weights that write may be behind those that learn."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Weights group by node."""
    changing: frozenset[str] = frozenset()
    """Groups whose weights change in a run: they learn, or follow others."""
    scorers: frozenset[str] = frozenset()
    """Nodes that score by such weights, and may be called to do so by others."""

    @property
    def size(self) -> int:
        return math.ceil(self.staleness) + 1

    def share(self, stage: Stage, ahead: int) -> float:
        """Of the rows of a stage those, from 0 to 1, that may be done while so many steps before it
        are on their way; the others wait until there are fewer."""
        if stage.verb != "generate" or ahead <= int(self.staleness):
            return 1.0
        return self.staleness % 1

    def lets(self, stage: Stage, before: Iterable[StepInFlight]) -> bool:
        """Whether a stage that is ready in its own step may start beside the steps before it."""
        return all(self._lets(stage, other) for other in before)

    def meets(self, stage: Stage, at_work: Iterable[Stage]) -> bool:
        """Whether a stage would change weights by which one at work writes call by call, or write
        by weights that change meanwhile."""
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
        """Whether new weights wait for what later steps write by the weights as they are.

        Args:
            own: the step that brings them; all steps before it have ended.
            behind: the steps after it that go on.
            can_begin_with_some: whether a stage can do a share of its rows before the others.
        """
        if stage.verb != "sync":
            return False
        group = self.groups.get(stage.node, stage.node)
        waits = _Waits(self, (own, *behind), can_begin_with_some)
        return any(
            group in self._written_by(one)
            and not waits.has_passed(place, one)
            and not waits.reaches(place, one, stage)
            for place, other in enumerate(behind, start=1)
            for one in other.units.open_stages()
        )

    def _written_by(self, stage: Stage) -> set[str]:
        """Groups by whose weights a stage writes."""
        if stage.verb != "generate":
            return set()
        return {self.groups.get(one, one) for one in stage.givers}

    def _changes_under(self, sync: Stage, caller: Stage) -> bool:
        if sync.verb != "sync" or caller.pool is not None:
            return False
        return self.groups.get(sync.node) in {self.groups.get(one, one) for one in caller.calls}

    def _lets(self, stage: Stage, other: StepInFlight) -> bool:
        if self.is_in_turn(stage):
            return False
        return not any(self.waits_for(stage, one) for one in other.units.open_stages())

    def is_in_turn(self, stage: Stage) -> bool:
        """Whether it waits for the steps before to end."""
        group = self.groups.get(stage.node)
        if stage.verb in IN_TURN or (stage.verb == "score" and group in self.changing):
            return True
        return not self.scorers.isdisjoint(stage.calls)

    def waits_for(self, stage: Stage, one: Stage) -> bool:
        """Whether a stage waits for one of a step before to end."""
        if self.is_in_turn(stage):
            return True
        is_beside = stage.verb in BESIDE_LEARNING
        return one.node == stage.node and (not is_beside or one.verb == stage.verb)


@dataclass(eq=False)
class _Waits:
    """Which stages of some steps on their way wait for which."""

    window: Window
    steps: Sequence[StepInFlight]
    can_begin_with_some: Callable[[Stage], bool]

    def __post_init__(self) -> None:
        self._open = [tuple(step.units.open_stages()) for step in self.steps]

    def has_passed(self, place: int, stage: Stage) -> bool:
        """Whether a stage writes by weights that it has, whatever comes now."""
        step = self.steps[place]
        if self._is_short(place, stage) and stage.name in step.begun_parts:
            return True
        return stage.name in step.begun and not self._is_repeated(place, stage)

    def _is_repeated(self, place: int, stage: Stage) -> bool:
        """Whether it may begin once more before the steps before it have ended."""
        beside = [one for one in self._open[place] if set(one.within) & set(stage.within)]
        return bool(stage.within) and not any(self.window.is_in_turn(one) for one in beside)

    def reaches(self, place: int, stage: Stage, sync: Stage) -> bool:
        """Whether a stage waits, by whatever stands between, for a sync of the first of the
        steps."""
        seen: set[tuple[int, str]] = set()
        waiting = [(place, stage)]
        while waiting:
            at, one = waiting.pop()
            if (at, one.name) in seen:
                continue
            seen.add((at, one.name))
            if at == 0 and one.name == sync.name:
                return True
            waiting += self._waited_for(at, one)
        return False

    def _waited_for(self, place: int, stage: Stage) -> Iterator[tuple[int, Stage]]:
        yield from ((place, one) for one in self._open[place] if one.name in stage.after)
        is_put_off = self._is_short(place, stage) and not self.can_begin_with_some(stage)
        for before in range(place):
            for one in self._open[before]:
                if is_put_off or self.window.waits_for(stage, one):
                    yield before, one

    def _is_short(self, place: int, stage: Stage) -> bool:
        """Whether not all of its rows are let begin beside the steps before it."""
        return self.window.share(stage, place) < 1.0


# Stages that begin before their turn, with a part of their rows: readers of groups that a writer
# hands on while others are written (`stream`), and writers of the first prompts of a step, while
# steps before it, for whose weights the others wait, are on their way (a fraction of
# `max_staleness`).
#
# Invariant: what a stage gives does not depend on whether it has begun; it runs in its turn
# whatever it has done before.


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
        """Writers that may write a share of their rows before their weights come."""
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
        """Note which stages the rows are for; of a writer that has ended all rows are there."""
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
