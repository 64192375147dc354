"""Evaluations of a run: reads the probes that are due, times them, and passes their readings on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from coloop.runtime.phases.fields import Moments
from coloop.runtime.phases.phase_stages import watched_by
from coloop.runtime.phases.timeline import StepPosition, Timeline
from coloop.runtime.probes import Grades, Probes
from coloop.runtime.reporting.event_reporter import EventReporter
from coloop.runtime.reporting.readings import Readings
from coloop.runtime.roles.protocol import Context
from coloop.runtime.schedule.calls import StepContext
from coloop.runtime.schedule.in_flight import StepInFlight
from coloop.runtime.schedule.scheduler import Scheduler

UNMEASURED = "evaluation.unmeasured"
_OF_SAMPLES = "`{metric}` needs at least that many graded texts per problem: raise `samples`"
_OF_CHANCES = "`{metric}` needs scores from 0 to 1: check the scores in the samples of this run"
_OF_GRADES = (
    "`{metric}` needs scores, and labels or grades of the same rows, none of them None. They are "
    "missing until a judge has graded these texts: if the next evaluation also lacks them, check "
    "the rows in the samples of this run"
)


def unmeasured_hint(metric: str) -> str:
    """What a metric is measured by, and where to look."""
    if "@" in metric:
        return _OF_SAMPLES.format(metric=metric)
    is_of_chances = metric.rpartition(".")[2] in ("calibration", "brier")
    return (_OF_CHANCES if is_of_chances else _OF_GRADES).format(metric=metric)


@dataclass(eq=False)
class Evaluations:
    """Runs the probes that are due and passes on their readings."""

    probes: Probes
    timeline: Timeline
    moments: Moments
    event_reporter: EventReporter
    readings: Readings
    note_change: Callable[[], None]
    """Told where a resume needs to know that a probe was read."""

    def are_due(self, step: int) -> bool:
        now = self.timeline.now()
        plan = now.phase if now else self.timeline.entries[-1].plan
        return bool(self.probes.due(step, plan, self.moments.now, is_last=False))

    def watched(self, position: StepPosition, context: Context) -> frozenset[str]:
        """Nodes of which an evaluation of this step's tables asks what they say before they
        learn."""
        due = self.probes.of_tables(position.step, position.phase, context)
        return watched_by(context.spec, due)

    def read_due(self, scheduler: Scheduler, *, is_last: bool) -> None:
        """Read the probes that are due where the run stands, or every probe at its end."""
        step, position = self.timeline.step, self.timeline.now()
        plan = position.phase if position else self.timeline.entries[-1].plan
        due = self.probes.due(step, plan, self.moments.now, is_last=is_last)
        if not due:
            return
        context = self.moments.stand_at(position)
        step_context = StepContext(step=step, phase=plan.name, context=context)
        for probe in due:
            with self._timed(probe.node, plan.name) as grades:
                metrics = self.probes.read(probe, scheduler, step_context, grades)
            self.probes.mark_read(probe, step)
            self.note_change()
            self._report(probe.node, metrics, step_context)

    def read_tables(self, flight: StepInFlight, position: StepPosition) -> None:
        step_context = flight.step_context
        for probe in self.probes.of_tables(position.step, position.phase, step_context.context):
            with self._timed(probe.node, position.phase.name) as grades:
                metrics = self.probes.read_tables(probe, flight.unrolled, step_context, grades)
            self.probes.mark_read(probe, position.step)
            self._report(probe.node, metrics, step_context)

    def _report(self, node: str, metrics: dict[str, float], step_context: StepContext) -> None:
        for metric in self.probes.newly_unmeasured(node, metrics, step_context.context):
            self.event_reporter.alert(
                "warning",
                UNMEASURED,
                f"{node}: no rows arrived from which `{metric}` can be computed",
                node,
                hint=unmeasured_hint(metric),
                metric=metric,
            )
        self.event_reporter.metrics(node, step_context.step, metrics, evaluation=True)
        self.event_reporter.findings(
            self.readings.evaluated(node, metrics, step=step_context.step, phase=step_context.phase)
        )

    @contextmanager
    def _timed(self, probe: str, phase: str) -> Iterator[Grades]:
        """Times an evaluation and counts what its own edges bring."""
        began = time.monotonic()
        most_rows = 0

        def grades(edge: str, rows: int) -> None:
            nonlocal most_rows
            most_rows = max(most_rows, rows)
            self.event_reporter.pace.delivered(edge, rows)

        self.event_reporter.evaluation_began(probe, phase)
        yield grades
        self.event_reporter.evaluation_finished(phase, time.monotonic() - began, most_rows)
