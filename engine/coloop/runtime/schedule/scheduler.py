"""The scheduler: starts each stage as soon as its inputs are ready and its lane is free, in one
step or in a window of several.

    begin ──> flight (a step in flight) ──ready──> lane ──outcome──> flight ──> finish

Results do not depend on the order in which stages end: seeds come from names, tables are merged by
name, and the results of a step are reported in the order of the plan. The driver's thread starts
stages and takes their outcomes. While it waits, it reads requests; a stop reaches all lanes.

When a call returns or raises, no stage is running any more, except one that did not notice its
cancellation within `END_SECONDS`.
"""

import time
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from coloop.errors import StopRequested
from coloop.plan.overlap import DRIVER_LANES
from coloop.plan.stages import Step
from coloop.plan.types import Stage
from coloop.runtime.roles.protocol import Call, Outcome, PartRole
from coloop.runtime.schedule.calls import Calls, StepContext, Unrolled
from coloop.runtime.schedule.in_flight import StepInFlight, Work
from coloop.runtime.schedule.regions import units_of_step
from coloop.runtime.schedule.units import Notice, Task
from coloop.runtime.schedule.window import EarlyStages, Part, Window

if TYPE_CHECKING:
    from coloop.runtime.steps import Steps

TICK_SECONDS = 0.1
END_SECONDS = 10.0
"""Longest wait for cancelled stages after an interrupt or an error of the watcher."""

T = TypeVar("T")


@dataclass(eq=False)
class Scheduler:
    calls: Calls
    lanes: "Lanes"
    watcher: "Steps"
    """Notified of each stage, in the driver's thread; an exception from it ends the step."""
    window: Window
    _at_work: dict[Future[Outcome], Work] = field(default_factory=dict, init=False)
    _free_since: dict[str | None, float] = field(default_factory=dict, init=False)
    _failure: Exception | None = field(default=None, init=False)
    _is_admitting: bool = field(default=True, init=False)
    _stopped_before_start: bool = field(default=False, init=False)
    """A stop was requested before the first step."""
    _idle_from: float = field(default=0.0, init=False)
    _idle_seconds: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._early = EarlyStages(self.calls, self.window, self._work, self._has_room)

    def flight(
        self,
        step: Step,
        step_context: StepContext,
        unrolled: Unrolled | None = None,
        about: Any = None,
    ) -> StepInFlight:
        """A step that is ready to run on the tables of `unrolled`; None: on empty ones."""
        unrolled = unrolled if unrolled is not None else Unrolled()
        notices: list[Notice] = []
        return StepInFlight(
            step_context=step_context,
            unrolled=unrolled,
            units=units_of_step(step, step_context, unrolled, self.calls, notices),
            notices=notices,
            about=about,
        )

    def run(
        self, step: Step, step_context: StepContext, unrolled: Unrolled | None = None
    ) -> Unrolled:
        """Run the stages of one step and return their tables."""
        flight = self.flight(step, step_context, unrolled)
        waiting = [flight]
        self.run_steps(lambda: waiting.pop() if waiting else None, lambda done: None)
        return flight.unrolled

    def run_steps(
        self,
        begin: Callable[[], StepInFlight | None],
        finish: Callable[[StepInFlight], None],
        take_back: Callable[[StepInFlight], None] = StepInFlight.take_back,
    ) -> None:
        """Run steps, several at once as far as the window allows, until there are none.

        Args:
            begin: returns the next step, or None if none may begin before the others are done.
            finish: called with each step that is done, in the order in which they began.
            take_back: called with each step that did not finish, the latest first.

        Raises:
            StopRequested: the run was asked to stop while a step had not learned yet.
            Exception: from a stage, `begin` or `finish`; the steps before it were finished.
        """
        flights: list[StepInFlight] = []
        self._failure = None
        self._is_admitting = True
        self._stopped_before_start = self.watcher.stop_is_wanted
        self._idle_from = time.monotonic()
        try:
            while True:
                while flights and _is_done(flights[0]):
                    with self._recorded_failure():
                        finish(flights.pop(0))
                self._cancel(flights)
                self._admit(flights, begin)
                for work in self._startable(flights):
                    with self._recorded_failure(work.flight):
                        self._start(work)
                for part in self._early.parts(flights, self._at_work.values()):
                    with self._recorded_failure(part.work.flight):
                        self._start_part(part)
                if self._at_work:
                    futures: list[Future[Any]] = [*self._at_work, self._early.bell]
                    done, _ = self.lanes.wait(futures, TICK_SECONDS)
                    self._take_outcomes(done)
                elif not any(_is_done(flight) for flight in flights[:1]):
                    break
        except BaseException:
            for flight in flights:
                flight.is_cancelled = True
            self._wait_for_cancelled()
            raise
        for flight in reversed(flights):
            take_back(flight)
        if self._failure is not None:
            raise self._failure
        if flights or self._stopped_before_start:
            raise StopRequested("a step that had not learned yet was cancelled")

    def _wait_for_cancelled(self) -> None:
        """Wait until running stages have noticed that they are cancelled."""
        deadline = time.monotonic() + END_SECONDS
        running, self._at_work = set(self._at_work), {}
        while running and time.monotonic() < deadline:
            done, _ = self.lanes.wait(running, TICK_SECONDS)
            running -= done

    @property
    def is_sequential(self) -> bool:
        return self.window.size == 1

    def take_idle_seconds(self) -> float:
        """Seconds without a running stage, since the last call of this method."""
        seconds, self._idle_seconds = self._idle_seconds, 0.0
        return seconds

    @contextmanager
    def _recorded_failure(self, flight: StepInFlight | None = None) -> Iterator[None]:
        """Record an exception of the body. It ends this step and later ones, not earlier ones."""
        try:
            yield
        except Exception as error:
            self._failure = self._failure or error
            if flight is not None:
                flight.has_failed = True

    def _cancel(self, flights: Sequence[StepInFlight]) -> None:
        """Cancel steps: after a request to stop, those that have not learned; after a failure, the
        failed step and those after it, or all steps if it happened outside of them."""
        is_stopping = self.watcher.stop_is_wanted
        if is_stopping or self._failure is not None:
            self._is_admitting = False
        has_failed = self._failure is not None and not any(f.has_failed for f in flights)
        for flight in flights:
            has_failed |= flight.has_failed
            flight.is_cancelled = has_failed or (is_stopping and not flight.has_learned)

    def _admit(self, flights: list[StepInFlight], begin: Callable[[], StepInFlight | None]) -> None:
        while self._is_admitting and len(flights) < self.window.size:
            with self._recorded_failure():
                flight = begin()
                if flight is not None:
                    flights.append(flight)
                    continue
            self._is_admitting = False

    def _startable(self, flights: Sequence[StepInFlight]) -> Iterator[Work]:
        """Stages whose inputs are ready and whose lane is free, those of earlier steps first."""
        for index, flight in enumerate(flights):
            for task in () if flight.is_cancelled else flight.units.ready():
                if flight.has_failed or not self._may_start(task.stage, flights[:index]):
                    continue
                if self._waits_for_writers(task.stage, flight, flights[index + 1 :]):
                    continue
                early = flight.early.get(task.key)
                work = early.work if early is not None else None
                flight.note_ready(task)
                if self._has_room(task.stage.pool) and not (work is not None and work.is_part):
                    flight.early.pop(task.key, None)
                    yield work if work is not None else self._work(task, flight)

    def _may_start(self, stage: Stage, before: Sequence[StepInFlight]) -> bool:
        """Whether earlier steps and the running stages allow a stage to begin with all its rows."""
        at_work = (work.stage for work in self._at_work.values())
        return (
            self.window.lets(stage, before)
            and self.window.share(stage, len(before)) >= 1.0
            and not self.window.meets(stage, at_work)
        )

    def _waits_for_writers(
        self, stage: Stage, own: StepInFlight, behind: Sequence[StepInFlight]
    ) -> bool:
        def can_begin_with_some(stage: Stage) -> bool:
            return isinstance(self.calls.role(stage)[1], PartRole)

        active = [step for step in behind if not (step.is_cancelled or step.has_failed)]
        return self.window.waits_for_writers(stage, own, active, can_begin_with_some)

    def _work(self, task: Task, flight: StepInFlight) -> Work:
        now, ready_at = time.monotonic(), flight.ready_at[task.key]
        free_since = self._free_since.get(task.stage.pool, flight.began)
        starved = max(0.0, ready_at - max(free_since, flight.began))
        name, role = self.calls.role(task.stage)
        work = Work(
            task=task,
            flight=flight,
            role=role,
            memory=role.remember(),
            starved=starved,
            blocked=now - ready_at,
        )
        flight.memory.setdefault(name, (role, work.memory))
        return work

    def _has_room(self, lane: str | None) -> bool:
        busy = sum(work.stage.pool == lane for work in self._at_work.values())
        return busy < self.lanes.room(lane)

    def _start(self, work: Work) -> None:
        task = work.task
        call = replace(self._call(work, task.tables), begun=tuple(work.begun))
        if call.verb == "generate" and call.context.spec.schedule.stream:
            call = replace(call, hand_on=partial(self._early.hand_on, work))
        task.is_waiting = False
        work.flight.begun.add(work.stage.name)
        self._submit(work, partial(work.role.run, call))

    def _start_part(self, part: Part) -> None:
        work, role = part.work, part.work.role
        assert isinstance(role, PartRole)
        call = replace(self._call(work, part.tables), share=part.share)
        work.is_part = True
        work.flight.begun_parts.add(work.stage.name)
        self._submit(work, partial(role.begin, call))

    def _call(self, work: Work, tables: Unrolled) -> Call:
        step_context = work.task.step_context
        hosts = step_context.context.hosts.with_tick(work.heard)
        step_context = replace(step_context, context=replace(step_context.context, hosts=hosts))
        return self.calls.of(work.stage, step_context, tables, work.tick)

    def _submit(self, work: Work, function: Callable[[], Any]) -> None:
        if not work.has_begun:
            work.has_begun = True
            self.watcher.stage_started(work)
        work.began_at = time.monotonic()
        if not self._at_work:
            self._idle_seconds += work.began_at - self._idle_from
        future = self.lanes.submit(work.stage.pool, function)
        if not work.is_part:
            future.add_done_callback(work.ended)
        self._at_work[future] = work

    def _take_outcomes(self, done: Set[Future[Any]]) -> None:
        ended = [future for future in self._at_work if future in done]
        works = [(self._at_work.pop(future), future) for future in ended]
        works.sort(key=lambda pair: (pair[0].flight.step, pair[0].task.place))
        for work, future in works:
            self._free_since[work.stage.pool] = time.monotonic()
            if not self._at_work:
                self._idle_from = time.monotonic()
            with self._recorded_failure(work.flight):
                self._take_outcome(work, future)
        self.watcher.ticked([*self._at_work.values()])

    def _take_outcome(self, work: Work, future: Future[Outcome]) -> None:
        flight, task = work.flight, work.task
        error = future.exception()
        is_part, work.is_part = work.is_part, False
        if isinstance(error, StopRequested) and flight.is_cancelled:
            if not is_part:
                work.role.recall(work.memory)
                task.is_waiting = True
            return
        if isinstance(error, KeyboardInterrupt):
            raise error
        if error is not None:
            raise self.watcher.failure_of(work, error)
        if is_part:
            work.worked += time.monotonic() - work.began_at
            work.begun.append(future.result())
            return
        work.outcome = future.result()
        task.finished(work.outcome)
        while flight.notices:
            self.watcher.noticed(flight, *flight.notices.pop(0))
        flight.has_learned |= task.stage.verb == "learn"
        flight.ended.append(work)
        self.watcher.stage_finished(work, work.outcome)


def _is_done(flight: StepInFlight) -> bool:
    return flight.units.is_done and not flight.has_failed


class Lanes:
    """The threads in which stages run: one per pool, which runs one call at a time, and several for
    stages that run in the driver."""

    def __init__(self) -> None:
        self._threads: dict[str | None, ThreadPoolExecutor] = {}

    def room(self, lane: str | None) -> int:
        return DRIVER_LANES if lane is None else 1

    def submit(self, lane: str | None, work: Callable[[], T]) -> Future[T]:
        """Start work in a lane that has room."""
        if lane not in self._threads:
            name = "driver" if lane is None else f"lane-{lane}"
            self._threads[lane] = ThreadPoolExecutor(self.room(lane), thread_name_prefix=name)
        return self._threads[lane].submit(work)

    wait = staticmethod(partial(wait, return_when=FIRST_COMPLETED))
    """Wait for the first of the futures with a timeout; returns (done, not done)."""

    def close(self) -> None:
        """Wait for running work, then end the threads."""
        for threads in self._threads.values():
            threads.shutdown(wait=True, cancel_futures=True)
        self._threads.clear()
