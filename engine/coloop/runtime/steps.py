"""The steps of a run: begins them, reports their stages, and finishes or rolls them back.

    begin_step ──> stages ──> finish_step      what the run counts, reads and shows of a step
                        └──> take_back_step   if it ends before anything was learned

Readings of a step count when it is finished, in the order of its plan.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from coloop.errors import ColoopError, NothingLearned
from coloop.plan.types import Stage
from coloop.runtime.actions import Actions
from coloop.runtime.checkpoints.checkpoint_manager import CheckpointManager
from coloop.runtime.checkpoints.pinned_settings import Edit
from coloop.runtime.control import Control
from coloop.runtime.evaluations import Evaluations
from coloop.runtime.phases.fields import Fields, Moments
from coloop.runtime.phases.phase_stages import PhaseStages
from coloop.runtime.phases.timeline import StepPosition, Timeline
from coloop.runtime.reporting.event_reporter import EventReporter, Notices
from coloop.runtime.reporting.readings import Readings
from coloop.runtime.reporting.samples import Samples
from coloop.runtime.roles.protocol import Outcome, Role
from coloop.runtime.run_files.events import LogEvent, SampleEvent
from coloop.runtime.schedule.arrivals import AT_END, AT_START, Arrivals, Missing, StepArrivals
from coloop.runtime.schedule.arrivals import CODE as MISSING_ROWS
from coloop.runtime.schedule.calls import StepContext, stage_failure
from coloop.runtime.schedule.in_flight import StepInFlight, Work
from coloop.runtime.schedule.scheduler import Scheduler

logger = logging.getLogger(__name__)

GOALS = ("learn", "write")
"""Verbs of the stages that a step runs for; it is idle if all of them had no effect."""
LONGEST_IDLE_STEPS = 20
NO_ROWS_HINT = (
    "loosen the rules (`keep`) of filters that pass nothing, or train the nodes that write their "
    "rows on demonstrations first"
)
"""What to do about steps without rows where no health check knows more."""
LONGEST_PRINTED = 4000
"""Most characters of a stage's printed output in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    position: StepPosition
    arrivals: StepArrivals
    alerts: list[str] = field(default_factory=list)


@dataclass(eq=False, kw_only=True)
class Steps:
    """The steps of a run. The scheduler reports every stage to it, also those of evaluations."""

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
    """Called after each step that is whole."""
    scheduler: Scheduler = field(init=False)
    idle_steps: int = field(default=0, init=False)
    failed_stage: Stage | None = field(default=None, init=False)
    edits: list[Edit] = field(default_factory=list, init=False)
    """Edits that are to be applied again."""
    _is_whole: bool = field(default=True, init=False)
    """Whether neither a step nor the actions between two steps broke off halfway."""
    _begun: int = field(default=0, init=False)
    """Steps that began since something was done between two of them."""
    _flights: list[StepInFlight] = field(default_factory=list, init=False)
    _last_at: float = field(default=0.0, init=False)

    def begin_step(self) -> StepInFlight | None:
        """The next step, unless something is due before it."""
        if self._begun and (self.scheduler.is_sequential or self._must_pause(self.timeline.step)):
            return None
        position = self.timeline.next_position()
        if position is None:
            return None
        self._begun += 1
        try:
            flight = self._flight(position)
        except Exception as error:
            self.timeline.take_back_step()
            if isinstance(error, ColoopError):
                raise
            raise stage_failure(error, None, position.step) from error
        self._flights.append(flight)
        return flight

    def _must_pause(self, step: int) -> bool:
        """Whether something is to be done between this step and the next."""
        every = self.moments.now.spec.run.checkpoint_every
        return bool(
            self.readings.fired
            or self.checkpoint_manager.has_best
            or self.control.has_requests
            or any(edit.step <= step for edit in self.edits)
            or self.checkpoint_manager.is_due(step, every)
            or self.evaluations.are_due(step)
        )

    def _flight(self, position: StepPosition) -> StepInFlight:
        context = self.moments.stand_at(position)
        if not self._flights:
            self.event_reporter.pace.step_began(position.phase.name)
        due = self.phase_stages.due(position, self.evaluations.watched(position, context))
        self.fields.step_begins(position)
        self.phase_stages.step_begins(position)
        step_context = StepContext(
            step=position.step, phase=position.phase.name, context=context, live=due.live
        )
        state = StepState(position=position, arrivals=self.arrivals.of_step(due.rows))
        return self.scheduler.flight(due.step, step_context, about=state)

    def finish_step(self, flight: StepInFlight) -> None:
        state: StepState = flight.about
        step, phase = flight.step, flight.step_context.phase
        self._is_whole = False
        self._flights.remove(flight)
        self.actions.step_done(flight.step_context.context.spec)
        self._is_whole = True
        self.step_done()
        for role in self.roles.values():
            role.step_ends(flight.unrolled.tables, flight.step_context.context)
        self.checkpoint_manager.note_change()
        self.arrivals.step_finished(phase, state.arrivals)
        self._read_metrics(flight)
        self.event_reporter.findings(self.readings.step_finished(step, phase))
        now = time.monotonic()
        seconds, self._last_at = now - self._last_at, now
        self.event_reporter.step_finished(step, seconds, self.scheduler.take_idle_seconds())
        self.evaluations.read_tables(flight, state.position)
        every = (work.outcome.reply for work in flight.in_order)
        replies = [reply for reply in every if reply is not None]
        self._show(partial(self.samples.of_step, step, flight.unrolled, replies))
        self.event_reporter.keep_gauges(step)
        self._count_idle(flight, state.alerts)

    def _count_idle(self, flight: StepInFlight, alerts: Sequence[str]) -> None:
        """Raises `NothingLearned` after too many steps in a row in which no goal made progress. A
        step without goals, in which every learner pauses, does not count."""
        goals = [work for work in flight.in_order if work.stage.verb in GOALS]
        if not goals:
            return
        self.idle_steps = self.idle_steps + 1 if all(work.outcome.is_idle for work in goals) else 0
        if self.idle_steps < LONGEST_IDLE_STEPS:
            return
        self.idle_steps = 0  # a resumed run counts again
        stages = ", ".join(work.stage.name for work in goals)
        reasons = "; ".join(dict.fromkeys(alerts))
        causes = [one for one in self.readings.unresolved if one.level == "error"]
        raise NothingLearned(
            f"{stages} had no effect in {LONGEST_IDLE_STEPS} steps in a row, up to step "
            f"{flight.step} of phase {flight.step_context.phase}"
            + (f": {reasons}" if reasons else ""),
            "; ".join(f"{one.message}: {one.hint}" for one in causes) or NO_ROWS_HINT,
        )

    def _read_metrics(self, flight: StepInFlight) -> None:
        for work in flight.in_order:
            for node, metrics in _metrics_of(work.stage, work.outcome):
                reasons = work.outcome.reasons if node == work.stage.node else {}
                self.readings.learned(node, metrics, reasons)
                self.readings.read(node, metrics, step=flight.step, phase=flight.step_context.phase)

    def show_last_samples(self) -> None:
        """The rows of the last step, if it came too soon after another to be shown."""
        self._show(self.samples.of_last)

    def _show(self, write: Callable[[], SampleEvent | None]) -> None:
        try:
            event = write()
        except OSError as error:
            logger.warning("samples were not written: %s", error)
            return
        if event is not None:
            self.event_reporter.record(event)

    def take_back_step(self, flight: StepInFlight) -> None:
        state: StepState = flight.about
        self._flights.remove(flight)
        if flight.has_learned or (flight.has_failed and self._has_changed_weights(flight)):
            self._is_whole = False
            return
        flight.take_back()
        self.fields.take_back_step(state.position)
        self.phase_stages.take_back_step(state.position)
        self.timeline.take_back_step()

    def _has_changed_weights(self, flight: StepInFlight) -> bool:
        """Whether the failed stage has changed weights, or may have."""
        stage = self.failed_stage
        if stage is None or stage.verb != "learn":
            return stage is not None and stage.verb == "sync"
        try:
            return flight.step_context.context.hosts.has_changed(stage.node)
        except ColoopError:
            return True

    # --- called by the scheduler

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
            has_some, starts = work.is_part and not work.has_all_rows, state.arrivals.stage_starts
            missing = [] if has_some else starts(work.stage, work.task.step_context)
            self._report_missing(work, AT_START, missing)

    def stage_finished(self, work: Work, outcome: Outcome) -> None:
        stage, step_context, state = work.stage, work.task.step_context, work.flight.about
        self.event_reporter.stage_finished(work, outcome)
        for code, message in outcome.alerts:
            self.noticed(work.flight, stage.node, code, message)
        if outcome.detail:
            self.event_reporter.record(
                LogEvent(
                    level="debug",
                    message=f"{stage.name} in step {step_context.step}",
                    node=stage.node,
                    step=step_context.step,
                    detail=dict(outcome.detail),
                )
            )
        self._report_printed(stage.node, step_context.step, outcome.printed)
        self._take_printed(work, stage.calls)
        if state is not None:
            for node, metrics in _metrics_of(stage, outcome):
                self.event_reporter.metrics(node, step_context.step, metrics)
            missing = state.arrivals.stage_finished(stage, step_context, outcome)
            self._report_missing(work, AT_END, missing)

    def failure_of(self, work: Work, error: BaseException) -> Exception:
        self.failed_stage = self.failed_stage or work.stage
        self._take_printed(work, work.stage.givers)
        if isinstance(error, ColoopError):
            return error
        failure = stage_failure(error, work.stage, work.task.step_context.step)
        failure.__cause__ = error
        return failure

    def _take_printed(self, work: Work, nodes: Sequence[str]) -> None:
        for node in nodes:
            role = self.roles.get(node)
            if role is not None:
                self._report_printed(node, work.task.step_context.step, role.take_printed())

    def _report_printed(self, node: str, step: int, text: str) -> None:
        text = text.rstrip()
        if not text:
            return
        cut = len(text) - LONGEST_PRINTED
        message = text[:LONGEST_PRINTED] + (f"\n... {cut:,} characters more" if cut > 0 else "")
        self.event_reporter.record(
            LogEvent(message=message, node=node, step=step, detail={"printed": True})
        )

    def ticked(self, at_work: Sequence[Work]) -> None:
        self.control.read()
        self.report_notices()
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

    def report_notices(self) -> None:
        while self.notices:
            node, code, message = self.notices.popleft()
            self.event_reporter.alert("warning", code, message, node=node)

    def _report_missing(self, work: Work, whats: Sequence[str], missing: Sequence[Missing]) -> None:
        """Report missing rows; raises if they have never arrived."""
        if work.task.step_context.turn > 1:
            return
        for rows in self.arrivals.note(work.stage, whats, missing):
            self.event_reporter.alert(
                "error", MISSING_ROWS, rows.message, node=rows.node, hint=rows.hint
            )
            work.flight.about.alerts.append(rows.message)
        self.arrivals.check_first(missing, work.task.step_context.phase)


def _metrics_of(stage: Stage, outcome: Outcome) -> list[tuple[str, dict[str, float]]]:
    """Metrics of a stage by node; those of a foreseeing stage are for evaluations alone."""
    if stage.foresees:
        return []
    members = ((node, dict(metrics)) for node, metrics in outcome.member_metrics.items())
    return [(stage.node, dict(outcome.metrics)), *members]
