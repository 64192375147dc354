"""Evaluations of a run: reads the probes that are due, times them, and passes their readings on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coloop.roles.protocol import Context
from coloop.runtime.calls import Situation
from coloop.runtime.flights import Flight
from coloop.runtime.foresight import watched_by
from coloop.runtime.moments import Moments
from coloop.runtime.probes import Grades, Probes
from coloop.runtime.readings import Readings
from coloop.runtime.scheduler import Scheduler
from coloop.runtime.teller import Teller
from coloop.runtime.timeline import Moment, Timeline

UNMEASURED = "evaluation.unmeasured"
_OF_SAMPLES = (
    "`{metric}` wants as many graded texts of a problem as its number says: raise `samples`"
)
_OF_CHANCES = "`{metric}` wants scores from 0 to 1: look at the scores in the samples of this run"
_OF_GRADES = (
    "`{metric}` wants scores, and labels or grades of the same rows, none of them None. Before a "
    "judge or its labels have said anything of these texts, there are none: see whether the next "
    "reading has it; else look at the rows in the samples of this run"
)


def unmeasured_hint(metric: str) -> str:
    """What a metric is measured by, and where to look."""
    if "@" in metric:
        return _OF_SAMPLES.format(metric=metric)
    is_of_chances = metric.rpartition(".")[2] in ("calibration", "brier")
    return (_OF_CHANCES if is_of_chances else _OF_GRADES).format(metric=metric)


class Evaluations:
    """See the module."""

    def __init__(
        self,
        probes: Probes,
        timeline: Timeline,
        moments: Moments,
        teller: Teller,
        readings: Readings,
        note_change: Callable[[], None],
    ) -> None:
        """
        Args:
            note_change: told where a resume needs to know that a probe was read.
        """
        self._probes = probes
        self._timeline = timeline
        self._moments = moments
        self._teller = teller
        self._readings = readings
        self._note_change = note_change

    def are_due(self, step: int) -> bool:
        """Whether probes on rows of their own are to be read after this step."""
        now = self._timeline.now()
        plan = now.phase if now else self._timeline.entries[-1].plan
        return bool(self._probes.due(step, plan, self._moments.now, is_last=False))

    def watched(self, moment: Moment, context: Context) -> frozenset[str]:
        """Nodes of which an evaluation of this step's tables asks what they say before they
        learn."""
        due = self._probes.of_tables(moment.step, moment.phase, context)
        return watched_by(context.spec, due)

    def read_due(self, scheduler: Scheduler, *, is_last: bool) -> None:
        """Read the probes that are due where the run stands, or every probe at its end."""
        step, moment = self._timeline.step, self._timeline.now()
        plan = moment.phase if moment else self._timeline.entries[-1].plan
        due = self._probes.due(step, plan, self._moments.now, is_last=is_last)
        if not due:
            return
        context = self._moments.stand_at(moment)
        situation = Situation(step=step, phase=plan.name, context=context)
        for probe in due:
            with self._timed(probe.node, plan.name) as grades:
                metrics = self._probes.read(probe, scheduler, situation, grades)
            self._probes.mark_read(probe, step)
            self._note_change()
            self._report(probe.node, metrics, situation)

    def read_tables(self, flight: Flight, moment: Moment) -> None:
        """Read the probes of a step's own tables."""
        situation = flight.situation
        for probe in self._probes.of_tables(moment.step, moment.phase, situation.context):
            with self._timed(probe.node, moment.phase.name) as grades:
                metrics = self._probes.read_tables(probe, flight.region.unrolled, situation, grades)
            self._probes.mark_read(probe, moment.step)
            self._report(probe.node, metrics, situation)

    def _report(self, node: str, metrics: dict[str, float], situation: Situation) -> None:
        for metric in self._probes.newly_unmeasured(node, metrics, situation.context):
            self._teller.alert(
                "warning",
                UNMEASURED,
                f"{node}: nothing came by which `{metric}` could be measured",
                node,
                hint=unmeasured_hint(metric),
                metric=metric,
            )
        self._teller.metrics(node, situation.step, metrics, evaluation=True)
        self._teller.findings(
            self._readings.evaluated(node, metrics, step=situation.step, phase=situation.phase)
        )

    @contextmanager
    def _timed(self, probe: str, phase: str) -> Iterator[Grades]:
        """Times an evaluation and counts what its own edges bring."""
        began = time.monotonic()
        most_rows = 0

        def grades(edge: str, rows: int) -> None:
            nonlocal most_rows
            most_rows = max(most_rows, rows)
            self._teller.pace.delivered(edge, rows)

        self._teller.evaluation_began(probe, phase)
        yield grades
        self._teller.evaluation_finished(phase, time.monotonic() - began, most_rows)
