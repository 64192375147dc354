"""The steps of a run: begins them, tells what their stages do, and finishes or takes them back.

    begin ──> stages ──> finish    what the run counts, reads and shows of a step
                    └──> take back where it ends before anything was learned

What a step has brought counts when it is finished, in the order of its plan.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from coloop.errors import ColoopError
from coloop.plan.types import Stage
from coloop.runtime.actions import Actions
from coloop.runtime.checkpoints.checkpoint_manager import CheckpointManager
from coloop.runtime.control import Control
from coloop.runtime.evaluations import Evaluations
from coloop.runtime.health.checks import Idleness
from coloop.runtime.phases.fields import Fields, Moments
from coloop.runtime.phases.phase_stages import PhaseStages
from coloop.runtime.phases.timeline import StepPosition, Timeline
from coloop.runtime.reporting.event_reporter import EventReporter, Notices
from coloop.runtime.reporting.readings import Readings
from coloop.runtime.reporting.samples import Samples
from coloop.runtime.roles.protocol import Outcome, Role
from coloop.runtime.run_files.events import SampleEvent
from coloop.runtime.schedule.arrivals import AT_END, AT_START, Arrivals, Missing, StepArrivals
from coloop.runtime.schedule.arrivals import CODE as MISSING_ROWS
from coloop.runtime.schedule.calls import StepContext, stage_failure
from coloop.runtime.schedule.in_flight import StepInFlight, Work
from coloop.runtime.schedule.scheduler import Scheduler

logger = logging.getLogger(__name__)

GOALS = ("learn", "write")
"""Verbs of the stages for whose sake a step runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """What the run knows of a step on its way."""

    position: StepPosition
    arrivals: StepArrivals
    alerts: list[str] = field(default_factory=list)
    """What it has told that a person should look at."""


@dataclass(eq=False, kw_only=True)
class Steps:
    """Starts the steps of a run, reports their stages, and finishes or rolls them back.

    The scheduler tells it of every stage, those of probes among them."""

    timeline: Timeline
    moments: Moments
    fields: Fields
    phase_stages: PhaseStages
    actions: Actions
    evaluations: Evaluations
    readings: Readings
    arrivals: Arrivals
    samples: Samples
    control: Control
    checkpoint_manager: CheckpointManager
    event_reporter: EventReporter
    notices: Notices
    roles: Mapping[str, Role]
    """By node."""
    step_done: Callable[[], None]
    """Told of each step that is whole."""
    must_pause: Callable[[int], bool] = field(init=False)
    """Whether something is to be done between this step and the next."""
    idleness: Idleness = field(default_factory=Idleness, init=False)
    _begun: int = field(default=0, init=False)
    _on_way: int = field(default=0, init=False)
    _flights: list[StepInFlight] = field(default_factory=list, init=False)
    """Steps on their way."""
    _last_at: float = field(default=0.0, init=False)
    failed_stage: Stage | None = field(default=None, init=False)
    are_whole: bool = field(default=True, init=False)
    """No step broke off half learned."""

    @property
    def is_between(self) -> bool:
        """Whether the run stands between two steps."""
        return self._on_way == 0 and self.are_whole

    def stretch_begins(self) -> None:
        """Steps follow, up to the next thing that lies between two of them."""
        self._begun = 0
        self._flights.clear()
        self._last_at = time.monotonic()

    @property
    def have_begun(self) -> bool:
        return self._begun > 0

    # --- one step

    def begin(self, scheduler: Scheduler) -> StepInFlight | None:
        """The next step of the stretch, if there is one."""
        if self._begun and (scheduler.is_sequential or self.must_pause(self.timeline.step)):
            return None
        position = self.timeline.next_position()
        if position is None:
            return None
        self._begun += 1
        self._on_way += 1
        try:
            return self._flight(scheduler, position)
        except Exception as error:
            self._undo(position)
            if isinstance(error, ColoopError):
                raise
            raise stage_failure(error, None, position.step) from error

    def _flight(self, scheduler: Scheduler, position: StepPosition) -> StepInFlight:
        context = self.moments.stand_at(position)
        if self._on_way == 1:
            self.event_reporter.pace.step_began(position.phase.name)
        due = self.phase_stages.due(position, self.evaluations.watched(position, context))
        self.fields.step_begins(position)
        self.phase_stages.step_begins(position)
        step_context = StepContext(
            step=position.step, phase=position.phase.name, context=context, live=due.live
        )
        state = StepState(position=position, arrivals=self.arrivals.of_step(due.rows))
        flight = scheduler.flight(due.step, step_context, about=state)
        self._flights.append(flight)
        return flight

    def finish(self, scheduler: Scheduler, flight: StepInFlight) -> None:
        state: StepState = flight.about
        position = state.position
        self.are_whole = False
        self._flights.remove(flight)
        self.actions.step_done(flight.step_context.context.spec)
        self._on_way -= 1
        self.are_whole = True
        self.step_done()
        self.checkpoint_manager.note_change()
        self.arrivals.step_finished(position.phase.name, state.arrivals)
        self._hear(flight)
        self.event_reporter.findings(
            self.readings.step_finished(position.step, position.phase.name)
        )
        now = time.monotonic()
        seconds, self._last_at = now - self._last_at, now
        self.event_reporter.step_finished(position.step, seconds, scheduler.take_idle_seconds())
        self.evaluations.read_tables(flight, position)
        every = (work.outcome.reply for work in flight.in_order)
        replies = [reply for reply in every if reply is not None]
        self._show(partial(self.samples.of_step, flight.step, flight.unrolled, replies))
        self.event_reporter.keep_gauges(position.step)
        goals = [
            (work.stage.name, work.outcome.is_idle)
            for work in flight.in_order
            if work.stage.verb in GOALS
        ]
        self.idleness.step_finished(position.step, position.phase.name, goals, state.alerts)

    def _hear(self, flight: StepInFlight) -> None:
        for work in flight.in_order:
            for node, metrics in _metrics_of(work.stage, work.outcome):
                reasons = work.outcome.reasons if node == work.stage.node else {}
                self.readings.learned(node, metrics, reasons)
                self.readings.read(node, metrics, step=flight.step, phase=flight.step_context.phase)

    def show_last_samples(self) -> None:
        """What the last step wrote, which may have come too soon after another to be shown."""
        self._show(self.samples.of_last)

    def _show(self, write: Callable[[], SampleEvent | None]) -> None:
        try:
            event = write()
        except OSError as error:
            logger.warning("samples were not written: %s", error)
            return
        if event is not None:
            self.event_reporter.sample(event)

    def take_back(self, flight: StepInFlight) -> None:
        """Undo a step, unless something was learned in it: that cannot be undone."""
        state: StepState = flight.about
        self._flights.remove(flight)
        if flight.has_learned or (flight.has_failed and self._has_changed_weights(flight)):
            self._on_way -= 1
            self.are_whole = False
            return
        flight.take_back()
        self.fields.take_back_step(state.position)
        self.phase_stages.take_back_step(state.position)
        self._undo(state.position)

    def _undo(self, position: StepPosition) -> None:
        del position
        self.timeline.take_back_step()
        self._on_way -= 1

    def _has_changed_weights(self, flight: StepInFlight) -> bool:
        """Whether the stage that failed has changed weights, or nobody can tell."""
        stage = self.failed_stage
        if stage is None or stage.verb != "learn":
            return stage is not None and stage.verb == "sync"
        try:
            return flight.step_context.context.hosts.has_changed(stage.node)
        except ColoopError:
            return True

    # --- what the scheduler tells

    @property
    def stop_is_wanted(self) -> bool:
        return self.control.stop_is_wanted

    def noticed(self, flight: StepInFlight, node: str, code: str, message: str) -> None:
        self.event_reporter.alert("warning", code, message, node=node)
        if flight.about is not None:
            flight.about.alerts.append(message)

    def stage_started(self, work: Work) -> None:
        self.event_reporter.stage_started(work)
        state: StepState | None = work.flight.about
        if state is not None:
            # rows that came before the others have come
            has_some = work.is_part and not work.has_all_rows
            missing = (
                [] if has_some else state.arrivals.stage_starts(work.stage, work.task.step_context)
            )
            self._tell_missing(work, AT_START, missing)

    def stage_finished(self, work: Work, outcome: Outcome) -> None:
        stage, step_context, state = work.stage, work.task.step_context, work.flight.about
        self.event_reporter.stage_finished(work, outcome)
        for code, message in outcome.alerts:
            self.noticed(work.flight, stage.node, code, message)
        self.event_reporter.detail_of(stage, step_context, outcome)
        self.event_reporter.printed(stage.node, step_context.step, outcome.printed)
        self._tell_printed(work, stage.calls)
        if state is not None:
            for node, metrics in _metrics_of(stage, outcome):
                self.event_reporter.metrics(node, step_context.step, metrics)
            missing = state.arrivals.stage_finished(stage, step_context, outcome)
            self._tell_missing(work, AT_END, missing)

    def failure_of(self, work: Work, error: BaseException) -> Exception:
        self.failed_stage = self.failed_stage or work.stage
        self._tell_printed(work, work.stage.givers)
        if isinstance(error, ColoopError):
            return error
        failure = stage_failure(error, work.stage, work.task.step_context.step)
        failure.__cause__ = error
        return failure

    def _tell_printed(self, work: Work, nodes: Sequence[str]) -> None:
        """What code of these nodes printed that no outcome of a stage of theirs brought."""
        for node in nodes:
            role = self.roles.get(node)
            text = "" if role is None else role.take_printed()
            self.event_reporter.printed(node, work.task.step_context.step, text)

    def ticked(self, at_work: Sequence[Work]) -> None:
        self.control.read()
        self.tell_notices()
        self.event_reporter.at_work(at_work)
        self.event_reporter.pace.queued(self._queues())
        self.event_reporter.show_if_due()

    def _queues(self) -> dict[str, int]:
        waiting: Counter[str] = Counter()
        for flight in self._flights:
            unrolled, edges = flight.unrolled, flight.step_context.context.spec.edges
            sources = {edge.key: (edge.source.node, edge.source.port) for edge in edges}
            due = {key for stage in flight.units.open_stages() for key in stage.edges}
            for key in due - unrolled.delivered:
                table = unrolled.tables.get(sources[key])
                waiting[key] += 0 if table is None else len(table.rows)
        return dict(waiting)

    def tell_notices(self) -> None:
        """What came up in lanes since this was asked last."""
        for node, code, message in self.notices.take():
            self.event_reporter.alert("warning", code, message, node=node)

    def _tell_missing(self, work: Work, whats: Sequence[str], missing: Sequence[Missing]) -> None:
        """An alert at once; an error where they never came."""
        if work.task.step_context.turn > 1:
            return
        for one in self.arrivals.note(work.stage, whats, missing):
            self.event_reporter.alert(
                "error", MISSING_ROWS, one.message, node=one.node, hint=one.hint
            )
            work.flight.about.alerts.append(one.message)
        self.arrivals.check_first(missing, work.task.step_context.phase)


def _metrics_of(stage: Stage, outcome: Outcome) -> list[tuple[str, dict[str, float]]]:
    """Readings of a stage by node; what is foreseen is for evaluations alone."""
    if stage.foresees:
        return []
    members = ((node, dict(metrics)) for node, metrics in outcome.member_metrics.items())
    return [(stage.node, dict(outcome.metrics)), *members]
