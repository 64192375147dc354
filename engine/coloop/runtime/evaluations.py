"""Evaluations of a run: reads the probes that are due, times them, and passes their readings on."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from coloop.data.tables import Table
from coloop.data.tables.row import root_row
from coloop.data.tables.table import concat_tables
from coloop.plan.stages import Step
from coloop.plan.types import PhasePlan, Plan, ProbePlan, Stage
from coloop.runtime.phases.fields import Moments
from coloop.runtime.phases.phase_stages import watched_by
from coloop.runtime.phases.timeline import StepPosition, Timeline
from coloop.runtime.reporting.event_reporter import EventReporter
from coloop.runtime.reporting.readings import Readings
from coloop.runtime.roles.credit.teaching import COMPARED
from coloop.runtime.roles.evaluate import EvaluateRole
from coloop.runtime.roles.protocol import Call, Context, Inputs
from coloop.runtime.schedule.calls import StepContext, Unrolled
from coloop.runtime.schedule.in_flight import StepInFlight
from coloop.runtime.schedule.scheduler import Scheduler
from coloop.spec.graph import Edge
from coloop.spec.nodes import EvaluateNode

# Evaluations: when a probe is due, and the slice of stages that runs for it on the weights as
# they are.
#
#     probe's rows ──as rows of `instead_of`──> slice of stages, fresh tables ──> evaluate
#
# Nothing learns, no buffer is read or written, nothing refills. A probe is due at step 0, every N
# steps, and at the end.

Grades = Callable[[str, int], None]
"""Is told what each edge into a probe brought: its key, and how many rows."""


class Probes:
    """The probes of a run and where each was read last."""

    def __init__(self, plan: Plan, roles: Mapping[str, EvaluateRole]) -> None:
        self._usual = plan.probes
        self._roles = roles
        self._read_at: dict[str, int] = {}
        self._unmeasured: dict[str, list[str]] = {}
        """By probe, metrics of which was told that nothing came."""

    def due(
        self, step: int, phase: PhasePlan, context: Context, *, is_last: bool
    ) -> list[ProbePlan]:
        """Probes to be read now on rows of their own, as they run in this phase."""
        return [
            probe
            for probe in self._plans(phase)
            if (probe.instead_of or probe.of)
            and self._is_due(probe.node, step, context, is_last=is_last)
        ]

    def of_tables(self, step: int, phase: PhasePlan, context: Context) -> list[ProbePlan]:
        """Probes that read the step's own tables and are due in this step."""
        return [
            probe
            for probe in self._plans(phase)
            if not probe.instead_of and not probe.of and self._is_due(probe.node, step, context)
        ]

    def ahead(self, done: int, total: int, context: Context) -> dict[str, int]:
        """By probe, how often it will be read until a run of `total` steps ends."""
        return {
            probe.node: self._readings_ahead(probe, done, total, context) for probe in self._usual
        }

    def _readings_ahead(self, probe: ProbePlan, done: int, total: int, context: Context) -> int:
        every = _section(probe.node, context).every
        count = max(total // every - done // every, 0)
        if not probe.instead_of and not probe.of:
            return count  # it reads tables of steps, none at the end
        is_pending = self._is_due(probe.node, done, context)
        is_off_beat = total % every != 0 and self._read_at.get(probe.node) != total
        return count + is_pending + is_off_beat

    def _plans(self, phase: PhasePlan) -> list[ProbePlan]:
        other = {probe.node: probe for probe in phase.probes}
        return [other.get(probe.node, probe) for probe in self._usual]

    def mark_read(self, probe: ProbePlan, step: int) -> None:
        self._read_at[probe.node] = step

    def newly_unmeasured(
        self, node: str, metrics: Mapping[str, float], context: Context
    ) -> list[str]:
        """Metrics that a probe is asked for and this reading does not have; each is told once."""
        known = self._unmeasured.setdefault(node, [])
        fresh = [
            wanted
            for wanted in _section(node, context).metrics
            if wanted not in known
            and not any(name == wanted or name.endswith(f".{wanted}") for name in metrics)
        ]
        known += fresh
        return fresh

    def _is_due(self, node: str, step: int, context: Context, *, is_last: bool = False) -> bool:
        if self._read_at.get(node) == step:
            return False
        return is_last or step % _section(node, context).every == 0

    def read_tables(
        self, probe: ProbePlan, unrolled: Unrolled, step_context: StepContext, grades: Grades
    ) -> dict[str, float]:
        return self._roles[probe.node].measure(self._call(probe, unrolled, step_context, grades))

    def read(
        self, probe: ProbePlan, scheduler: Scheduler, step_context: StepContext, grades: Grades
    ) -> dict[str, float]:
        context = step_context.context
        section = _section(probe.node, context)
        step_context = replace(step_context, salt=f"probe:{probe.node}", is_probe=True)
        start = scheduler.run(_step(probe, probe.sources), step_context)
        if probe.instead_of is not None:
            _stand_in(probe, start, context, grades)
        metrics: dict[str, float] = {}
        last = start
        if section.greedy and probe.stages:
            once = replace(step_context, greedy=frozenset(probe.writers))
            unrolled = scheduler.run(_step(probe, probe.stages), once, start.without(()))
            call = self._call(probe, unrolled, step_context, grades)
            metrics |= self._roles[probe.node].measure(call, of_k=False)
            last = unrolled
        count = self._samples(section)
        if probe.stages and (not section.greedy or count is not None):
            several = replace(
                step_context,
                samples={} if count is None else dict.fromkeys(probe.writers, count),
                temperatures={}
                if section.temperature is None
                else dict.fromkeys(probe.writers, section.temperature),
            )
            unrolled = scheduler.run(_step(probe, probe.stages), several, start.without(()))
            call = self._call(probe, unrolled, step_context, grades)
            metrics |= self._roles[probe.node].measure(call, of_k=True if section.greedy else None)
            last = unrolled
        if probe.of:
            if probe.instead_of is None:
                _stand_in_as_taught(probe, last, context)
            unrolled = scheduler.run(Step(stages=probe.of_stages), step_context, last.without(()))
            metrics |= self._roles[probe.node].measure_ports(
                self._port_inputs(probe, unrolled, context, grades), step_context.step, context
            )
        return metrics

    def _samples(self, section: EvaluateNode) -> int | None:
        """Completions for each prompt: as written, else what the metrics of k need."""
        if section.samples is not None:
            return section.samples
        numbers = [int(m.partition("@")[2]) for m in section.metrics if "@" in m]
        return max(numbers) if numbers else None

    def _call(
        self, probe: ProbePlan, unrolled: Unrolled, step_context: StepContext, grades: Grades
    ) -> Call:
        graph = step_context.context.spec.graph
        inputs: dict[str, dict[Edge, Table]] = {}
        for edge in graph.edges_into(probe.node):
            if edge.target.port == "rows" and probe.instead_of is not None:
                continue
            if graph.is_dead(edge):
                continue
            table = _along(edge, unrolled, step_context.context)
            if table is not None:
                grades(edge.key, len(table.rows))
                inputs.setdefault(edge.target.port, {})[edge] = table
        return Call(
            stage=f"{probe.node}.evaluate",
            verb="evaluate",
            step=step_context.step,
            phase=step_context.phase,
            inputs=inputs,
            is_probe=True,
            context=step_context.context,
        )

    def _port_inputs(
        self, probe: ProbePlan, unrolled: Unrolled, context: Context, grades: Grades
    ) -> dict[tuple[str, str], Inputs]:
        """What the probe's rows would be at each teaching port named in `of`."""
        graph = context.spec.graph
        inputs: dict[tuple[str, str], Inputs] = {}
        for name in probe.of:
            learner, _, port = name.partition(".")
            edges: Sequence[Edge]
            if probe.instead_of is not None:
                edges = graph.edges_into(learner, port)
            else:
                edges = [
                    edge
                    for edge in graph.edges_into(probe.node)
                    if edge.target.port in ("rows", "pairs")
                ]
            inputs[learner, port] = _delivered(edges, unrolled, context)
            if probe.instead_of is None:
                for edge, table in inputs[learner, port].items():
                    grades(edge.key, len(table.rows))
            for serving in COMPARED:
                edges = graph.edges_into(learner, serving)
                inputs[learner, serving] = _delivered(edges, unrolled, context)
        return inputs

    def state(self) -> dict[str, Any]:
        return {"read_at": self._read_at, "unmeasured": self._unmeasured}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._read_at = dict(state["read_at"])
        self._unmeasured = {node: list(told) for node, told in state.get("unmeasured", {}).items()}


def _section(node: str, context: Context) -> EvaluateNode:
    section = context.spec.nodes[node]
    assert isinstance(section, EvaluateNode)
    return section


def _stand_in(probe: ProbePlan, start: Unrolled, context: Context, grades: Grades) -> None:
    """The probe's rows take the place of those of `instead_of`, under that node's name."""
    assert probe.instead_of is not None
    for edge in context.spec.graph.edges_into(probe.node, "rows"):
        table = start.tables[edge.source.node, edge.source.port]
        grades(edge.key, len(table.rows))
        names = ((row.id.partition(":")[2], row) for row in table.rows)
        rows = tuple(root_row(probe.instead_of, name, row.columns) for name, row in names)
        start.tables[probe.instead_of, "rows"] = Table(rows=rows)
        if rows and "chosen" in rows[0].columns:
            start.tables[probe.instead_of, "pairs"] = Table(rows=rows)


def _stand_in_as_taught(probe: ProbePlan, start: Unrolled, context: Context) -> None:
    """References see the probe's rows where they would see those of the teaching port."""
    graph = context.spec.graph
    own = [
        start.tables[edge.source.node, edge.source.port]
        for edge in graph.edges_into(probe.node)
        if edge.target.port in ("rows", "pairs")
        and (edge.source.node, edge.source.port) in start.tables
    ]
    for name in probe.of:
        learner, _, port = name.partition(".")
        for edge in graph.edges_into(learner, port):
            if own:
                key = (edge.source.node, edge.source.port)
                start.tables.setdefault(key, concat_tables(own))


def _delivered(edges: Sequence[Edge], unrolled: Unrolled, context: Context) -> Inputs:
    tables = {edge: _along(edge, unrolled, context) for edge in edges}
    return {edge: table for edge, table in tables.items() if table is not None}


def _along(edge: Edge, unrolled: Unrolled, context: Context) -> Table | None:
    foreseen = unrolled.foreseen.get((edge.source.node, edge.source.port))
    return foreseen or unrolled.along(edge, context.lineage.take(edge))


def _step(probe: ProbePlan, stages: tuple[Stage, ...]) -> Step:
    names = {stage.name for stage in stages}
    regions = tuple(one for one in probe.regions if not names.isdisjoint(one.stages))
    return Step(stages=stages, regions=regions)


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
        began = time.monotonic()
        most_rows = 0

        def grades(edge: str, rows: int) -> None:
            nonlocal most_rows
            most_rows = max(most_rows, rows)
            self.event_reporter.pace.delivered(edge, rows)

        self.event_reporter.evaluation_began(probe, phase)
        yield grades
        self.event_reporter.evaluation_finished(phase, time.monotonic() - began, most_rows)
