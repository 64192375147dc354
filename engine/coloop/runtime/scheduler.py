"""The scheduler: starts every stage as soon as what it waits for is done and its lane is free, over
one step or a window of several.

    begin ──> flight (a step on its way) ──ready──> lane ──outcome──> flight ──> finish

Order of arrival changes nothing: seeds come from names, tables are put together by name, and what a
step has brought is told to the run in the order of the plan. The driver's thread starts stages and
takes their outcomes; it does none of their work. While it waits it ticks: what is asked of the run
is read, and a stop reaches every lane.

Invariant: when a call returns or raises, nothing is at work any more.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from coloop.errors import StopRequested
from coloop.hosts.messages import Poll
from coloop.plan.types import Refill, Stage
from coloop.roles.protocol import Call, EarlyRole, Outcome, Role
from coloop.runtime.calls import Calls, Situation, Unrolled
from coloop.runtime.lanes import Lanes
from coloop.runtime.regions import StepRegion, Task
from coloop.runtime.window import Window
from coloop.tables import Table
from coloop.tables.table import concat_tables

TICK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """How long a stage waited, in seconds."""

    starved: float = 0.0
    """Its lane was free, what it reads was not there."""
    blocked: float = 0.0
    """What it reads was there, its lane was not free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a stage gave in a flight."""

    stage: Stage
    situation: Situation
    outcome: Outcome
    place: int


@dataclass(slots=True, kw_only=True)
class Flight:
    """One step on its way."""

    situation: Situation
    region: StepRegion
    about: Any = None
    """What the one who began it wants to know when it is done."""
    began: float = field(default_factory=time.monotonic)
    has_learned: bool = False
    """A learner has taken its update: from there on the step is finished, whatever is asked."""
    is_cancelled: bool = False
    has_failed: bool = False
    memory: dict[str, tuple[Role, Any]] = field(default_factory=dict)
    """What the roles that have worked for it remembered before."""
    ready_at: dict[tuple[str, int], float] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    early: dict[tuple[str, int], "Early"] = field(default_factory=dict)
    """Stages that may begin before their tables are whole, by name and turn."""

    @property
    def step(self) -> int:
        return self.situation.step

    def open_stages(self) -> Iterable[Stage]:
        """Those that have not ended for good."""
        return self.region.open_stages()

    @property
    def in_order(self) -> list[Record]:
        """What its stages gave, in the order of the plan."""
        return sorted(self.records, key=lambda record: record.place)

    def take_back(self) -> None:
        """Roles remember nothing of it."""
        for role, memory in self.memory.values():
            role.recall(memory)
        self.memory.clear()


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """A stage at work in its lane."""

    task: Task
    flight: Flight
    waited: Waited
    role: Role
    memory: Any
    """What the role remembered before."""
    has_begun: bool = False
    begun: list[Any] = field(default_factory=list)
    """What the role gave for rows that came before the others."""
    is_part: bool = False
    """Such rows are in its lane now."""
    worked: float = 0.0
    """Seconds for which its role worked on them."""
    poll: Poll | None = None
    """How far it is, as it said last."""
    began_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None

    @property
    def stage(self) -> Stage:
        return self.task.stage

    def ended(self, future: object) -> None:
        """Its role has done what it does; called in its lane."""
        del future
        self.ended_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long its role worked."""
        return self.worked + (self.ended_at or time.monotonic()) - self.began_at

    def heard(self, poll: Poll | None) -> bool:
        """Its host says how far it is; true where it shall give up."""
        self.poll = poll
        return self.flight.is_cancelled

    def tick(self, done: int = 0, total: int = 0) -> None:
        """Its role says how far it is.

        Raises:
            StopRequested: where it shall give up.
        """
        poll = Poll(done=done, total=total, unit="rows") if total else None
        if self.heard(poll):
            raise StopRequested("while a role was at work")


@dataclass(slots=True, kw_only=True)
class Early:
    """A stage that may begin with rows that came before the others."""

    task: Task
    parts: list[Table] = field(default_factory=list)
    """Those that nobody has worked on yet."""
    work: Work | None = None
    """None: it has not begun."""


class Watcher(Protocol):
    """Told of each stage, in the driver's thread; what it raises ends the flight."""

    @property
    def stop_is_wanted(self) -> bool: ...

    def stage_started(self, work: Work) -> None: ...

    def stage_finished(self, work: Work, outcome: Outcome) -> None: ...

    def failure_of(self, work: Work, error: BaseException) -> Exception:
        """What went wrong, with its place."""
        ...

    def ticked(self, at_work: Sequence[Work]) -> None:
        """Called a few times a second, and whenever a stage has ended."""
        ...

    def delivered(self, edge: str, rows: int) -> None:
        """An edge brought its reader a table; told once, however many of its stages read it."""
        ...

    def noticed(self, flight: Flight, node: str, code: str, message: str) -> None:
        """Something that a person should look at came up in a step."""
        ...


class Scheduler:
    """Carries out the stages of one loop."""

    def __init__(
        self,
        calls: Calls,
        roles: Mapping[str, Role],
        lanes: Lanes,
        watcher: Watcher,
        window: Window,
    ) -> None:
        self._calls = calls
        self._roles = roles
        self._lanes = lanes
        self._watcher = watcher
        self._window = window
        self._at_work: dict[Future[Outcome], Work] = {}
        self._free_since: dict[str | None, float] = {}
        self._handed_on: deque[tuple[Work, Table]] = deque()
        """Rows that writers gave before the others, with who writes them."""
        self._bell: Future[None] = Future()
        """Rings when there are some."""
        self._failure: Exception | None = None
        self._is_admitting = True
        self._was_held_up = False
        """A stop was wanted before the first step."""
        self._idle_from = 0.0
        self._idle_seconds = 0.0

    def flight(
        self,
        stages: Sequence[Stage],
        refills: Sequence[Refill],
        situation: Situation,
        unrolled: Unrolled | None = None,
        about: Any = None,
    ) -> Flight:
        """A step of these stages on these tables, fresh ones where none are given."""
        region = StepRegion(
            stages,
            refills,
            situation,
            unrolled if unrolled is not None else Unrolled(),
            calls=self._calls,
            roles=self._roles,
        )
        return Flight(situation=situation, region=region, about=about)

    def run(
        self,
        stages: Sequence[Stage],
        situation: Situation,
        refills: Sequence[Refill] = (),
        unrolled: Unrolled | None = None,
    ) -> Unrolled:
        """Run the stages of one list, and give what they gave."""
        flight = self.flight(stages, refills, situation, unrolled)
        waiting = [flight]
        self.fly(lambda: waiting.pop() if waiting else None, lambda done: None)
        return flight.region.unrolled

    def fly(
        self,
        begin: Callable[[], Flight | None],
        finish: Callable[[Flight], None],
        take_back: Callable[[Flight], None] = Flight.take_back,
    ) -> None:
        """Carry out steps, several at once as far as the window lets them, until there are none.

        Args:
            begin: gives the next step; None where none is to begin before the others are done.
            finish: told of a step that is done, in the order in which they began.
            take_back: told of a step that was not done, the youngest first.

        Raises:
            StopRequested: the run was asked to stop in a step that had not learned yet.
            Exception: what a stage, `begin` or `finish` raised; steps before it were finished.
        """
        flights: list[Flight] = []
        self._failure = None
        self._is_admitting = True
        self._was_held_up = self._watcher.stop_is_wanted
        self._idle_from = time.monotonic()
        try:
            while True:
                self._finish_done(flights, finish)
                self._heed(flights)
                self._admit(flights, begin)
                for work in self._startable(flights):
                    with self._watched(work.flight):
                        self._start(work)
                for work, table in self._early(flights):
                    with self._watched(work.flight):
                        self._start_part(work, table)
                if self._at_work:
                    self._take_outcomes()
                elif not any(_is_done(flight) for flight in flights[:1]):
                    break
        except BaseException:
            for flight in flights:
                flight.is_cancelled = True
            raise
        for flight in reversed(flights):
            take_back(flight)
        if self._failure is not None:
            raise self._failure
        if flights or self._was_held_up:
            raise StopRequested("a step that had not learned was not to go on")

    @property
    def is_sequential(self) -> bool:
        """Whether one step ends before the next begins."""
        return self._window.size == 1

    def take_idle_seconds(self) -> float:
        """Seconds in which nothing was at work, since this was asked last."""
        seconds, self._idle_seconds = self._idle_seconds, 0.0
        return seconds

    @contextmanager
    def _watched(self, flight: Flight | None = None) -> Iterator[None]:
        """What goes wrong ends the flight and those after it, not those before."""
        try:
            yield
        except Exception as error:
            self._failure = self._failure or error
            if flight is not None:
                flight.has_failed = True

    def _finish_done(self, flights: list[Flight], finish: Callable[[Flight], None]) -> None:
        while flights and _is_done(flights[0]):
            with self._watched():
                finish(flights.pop(0))

    def _heed(self, flights: Sequence[Flight]) -> None:
        """Cancel what is not to go on: after a stop all steps that have not learned, after a
        failure that step and those after it."""
        stops = self._watcher.stop_is_wanted
        if stops or self._failure is not None:
            self._is_admitting = False
        has_failed = self._failure is not None and not any(f.has_failed for f in flights)
        for flight in flights:
            has_failed |= flight.has_failed
            flight.is_cancelled = has_failed or (stops and not flight.has_learned)

    def _admit(self, flights: list[Flight], begin: Callable[[], Flight | None]) -> None:
        while self._is_admitting and len(flights) < self._window.size:
            with self._watched():
                flight = begin()
                if flight is not None:
                    flights.append(flight)
                    continue
            self._is_admitting = False

    def _startable(self, flights: Sequence[Flight]) -> Iterator[Work]:
        """Stages whose inputs are there and whose lane is free, those of earlier steps first."""
        for place, flight in enumerate(flights):
            for task in () if flight.is_cancelled else flight.region.ready():
                if flight.has_failed or not self._window.lets(task.stage, flights[:place]):
                    continue
                early = flight.early.get(_key(task))
                work = early.work if early is not None else None
                self._note_ready(task, flight)
                if self._has_room(task.stage.pool) and not (work is not None and work.is_part):
                    flight.early.pop(_key(task), None)
                    yield work if work is not None else self._work(task, flight)

    def _early(self, flights: Sequence[Flight]) -> Iterator[tuple[Work, Table]]:
        """Stages that can begin with rows that were handed on, and these rows."""
        self._take_handed_on()
        for place, flight in enumerate(flights):
            if flight.is_cancelled or flight.has_failed:
                continue
            for early in flight.early.values():
                stage, work = early.task.stage, early.work
                is_free = self._has_room(stage.pool) and not (work is not None and work.is_part)
                if early.parts and is_free and self._window.lets(stage, flights[:place]):
                    early.work = work or self._work(early.task, flight)
                    table, early.parts = concat_tables(early.parts), []
                    yield early.work, table

    def _hand_on(self, work: Work, table: Table) -> None:
        """Rows that a writer gave before the others; called in its lane."""
        self._handed_on.append((work, table))
        with suppress(InvalidStateError):  # it rings already
            self._bell.set_result(None)

    def _take_handed_on(self) -> None:
        """Note which stages the rows are for; of a writer that has ended the whole table is
        there."""
        if self._bell.done():
            self._bell = Future()
        while self._handed_on:
            writer, table = self._handed_on.popleft()
            if writer not in self._at_work.values():
                continue
            flight, source = writer.flight, (writer.stage.node, "rollouts")
            for task in flight.region.readers(writer.task):
                role = self._calls.role(task.stage)[1]
                if (
                    self._calls.only_source(task.stage, task.situation) == source
                    and isinstance(role, EarlyRole)
                    and role.can_begin(task.situation.context)
                ):
                    self._note_ready(task, flight)
                    flight.early.setdefault(_key(task), Early(task=task)).parts.append(table)

    def _note_ready(self, task: Task, flight: Flight) -> None:
        flight.ready_at.setdefault(_key(task), time.monotonic())

    def _work(self, task: Task, flight: Flight) -> Work:
        """What begins now, with how long it has waited."""
        now, ready_at = time.monotonic(), flight.ready_at[_key(task)]
        free_since = self._free_since.get(task.stage.pool, flight.began)
        starved = max(0.0, ready_at - max(free_since, flight.began))
        name, role = self._calls.role(task.stage)
        work = Work(
            task=task,
            flight=flight,
            waited=Waited(starved=starved, blocked=now - ready_at),
            role=role,
            memory=role.remember(),
        )
        flight.memory.setdefault(name, (role, work.memory))
        return work

    def _has_room(self, lane: str | None) -> bool:
        busy = sum(work.stage.pool == lane for work in self._at_work.values())
        return busy < self._lanes.room(lane)

    def _start(self, work: Work) -> None:
        """Send a stage to its lane."""
        task = work.task
        call = replace(self._call(work, task.tables), begun=tuple(work.begun))
        if call.verb == "generate" and call.context.spec.schedule.stream:
            call = replace(call, hand_on=partial(self._hand_on, work))
        work.flight.region.started(task)
        self._send(work, partial(work.role.run, call))

    def _start_part(self, work: Work, table: Table) -> None:
        """Send rows that came before the others to their stage's lane."""
        task, role = work.task, work.role
        source = self._calls.only_source(task.stage, task.situation)
        assert isinstance(role, EarlyRole)
        assert source is not None
        given = {**task.tables.tables, source: table}
        call = self._call(work, Unrolled(tables=given, delivered=set(task.stage.edges)))
        work.is_part = True
        self._send(work, partial(role.begin, call))

    def _call(self, work: Work, tables: Unrolled) -> Call:
        situation = work.task.situation
        hosts = situation.context.hosts.with_tick(work.heard)
        situation = replace(situation, context=replace(situation.context, hosts=hosts))
        return self._calls.of(work.stage, situation, tables, work.tick)

    def _send(self, work: Work, do: Callable[[], Any]) -> None:
        if not work.has_begun:
            work.has_begun = True
            self._watcher.stage_started(work)
        work.began_at = time.monotonic()
        if not self._at_work:
            self._idle_seconds += work.began_at - self._idle_from
        future = self._lanes.submit(work.stage.pool, do)
        if not work.is_part:
            future.add_done_callback(work.ended)
        self._at_work[future] = work

    def _take_outcomes(self) -> None:
        """Wait for the first outcomes, for rows that come before the others, or for a tick."""
        waited_for: list[Future[Any]] = [*self._at_work, self._bell]
        done = self._lanes.wait(waited_for, TICK_SECONDS)
        ended = [(work, one) for one, work in self._at_work.items() if one in done]
        works = sorted(ended, key=_plan_order)
        for work, future in works:
            del self._at_work[future]
            self._free_since[work.stage.pool] = time.monotonic()
            if not self._at_work:
                self._idle_from = time.monotonic()
            with self._watched(work.flight):
                self._take(work, future)
        self._watcher.ticked([*self._at_work.values()])

    def _take(self, work: Work, future: Future[Outcome]) -> None:
        flight, task = work.flight, work.task
        error = future.exception()
        is_part, work.is_part = work.is_part, False
        if isinstance(error, StopRequested) and flight.is_cancelled:
            if not is_part:
                work.role.recall(work.memory)
                flight.region.put_back(task)
            return
        if isinstance(error, KeyboardInterrupt):
            raise error
        if error is not None:
            raise self._watcher.failure_of(work, error)
        if is_part:
            work.worked += time.monotonic() - work.began_at
            work.begun.append(future.result())
            return
        outcome = future.result()
        flight.region.finished(task, outcome)
        for notice in flight.region.take_notices():
            self._watcher.noticed(flight, *notice)
        flight.has_learned |= task.stage.verb == "learn"
        flight.records.append(
            Record(stage=task.stage, situation=task.situation, outcome=outcome, place=task.place)
        )
        self._watcher.stage_finished(work, outcome)


def _key(task: Task) -> tuple[str, int]:
    return task.stage.name, task.situation.turn


def _is_done(flight: Flight) -> bool:
    return flight.region.is_done and not flight.has_failed


def _plan_order(one: tuple[Work, object]) -> tuple[int, int]:
    work = one[0]
    return work.flight.situation.step, work.task.place
