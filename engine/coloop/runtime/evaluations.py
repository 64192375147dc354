"""Evaluations of a run: reads the probes that are due, times them, and passes their readings on."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from coloop.data.tables import Table
from coloop.data.tables.row import root_row
from coloop.data.tables.table import concat_tables
from coloop.plan.settings.probes import samples_of_probe
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

Grades = Callable[[str, int], None]
"""Called with the key of each edge into a probe, and its number of rows."""


class Probes:
    """The probes of a run and the step at which each was last read.

    A probe runs a slice of stages on the current weights, with its own rows in place of those of
    `instead_of`. Nothing learns, no buffer is read or written, nothing refills. A probe is due at
    step 0, every N steps and at the end.
    """

    def __init__(self, plan: Plan, roles: Mapping[str, EvaluateRole]) -> None:
        self._usual = plan.probes
        self._roles = roles
        self._read_at: dict[str, int] = {}
        self._unmeasured: dict[str, list[str]] = {}
        """By probe, metrics that were reported as unmeasured."""

    def due(
        self, step: int, phase: PhasePlan, context: Context, *, is_last: bool
    ) -> list[ProbePlan]:
        """Probes with rows of their own that are due now, as they run in this phase."""
        return [
            probe
            for probe in self._plans(phase)
            if _has_own_rows(probe) and self._is_due(probe.node, step, context, is_last=is_last)
        ]

    def of_tables(self, step: int, phase: PhasePlan, context: Context) -> list[ProbePlan]:
        """Probes that read the step's own tables and are due in this step."""
        return [
            probe
            for probe in self._plans(phase)
            if not _has_own_rows(probe) and self._is_due(probe.node, step, context)
        ]

    def ahead(self, done: int, total: int, context: Context) -> dict[str, int]:
        """By probe, how often it will be read until a run of `total` steps ends."""
        return {
            probe.node: self._readings_ahead(probe, done, total, context) for probe in self._usual
        }

    def _readings_ahead(self, probe: ProbePlan, done: int, total: int, context: Context) -> int:
        every = _section(probe.node, context).every
        count = max(total // every - done // every, 0)
        if not _has_own_rows(probe):
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
        """Metrics of the probe that this reading lacks; each is returned once."""
        known = self._unmeasured.setdefault(node, [])
        fresh = [
            metric
            for metric in _section(node, context).metrics
            if metric not in known
            and not any(name == metric or name.endswith(f".{metric}") for name in metrics)
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
        context, role = step_context.context, self._roles[probe.node]
        step_context = replace(step_context, salt=f"probe:{probe.node}", is_probe=True)
        start = last = scheduler.run(_step(probe, probe.sources), step_context)
        if probe.instead_of is not None:
            _stand_in(probe, start, context, grades)
        metrics: dict[str, float] = {}
        for sampling, of_k in _passes(probe, step_context) if probe.stages else ():
            last = scheduler.run(_step(probe, probe.stages), sampling, start.without(()))
            metrics |= role.measure(self._call(probe, last, step_context, grades), of_k=of_k)
        if probe.of:
            if probe.instead_of is None:
                _stand_in_as_taught(probe, last, context)
            unrolled = scheduler.run(Step(stages=probe.of_stages), step_context, last.without(()))
            inputs = self._port_inputs(probe, unrolled, context, grades)
            metrics |= role.measure_ports(inputs, step_context.step, context)
        return metrics

    def _call(
        self, probe: ProbePlan, unrolled: Unrolled, step_context: StepContext, grades: Grades
    ) -> Call:
        graph = step_context.context.spec.graph
        inputs: dict[str, dict[Edge, Table]] = {}
        for edge in graph.edges_into(probe.node):
            port = edge.target.port
            if graph.is_dead(edge) or (port == "rows" and probe.instead_of is not None):
                continue
            for table in _delivered([edge], unrolled, step_context.context).values():
                grades(edge.key, len(table.rows))
                inputs.setdefault(port, {})[edge] = table
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
            if probe.instead_of is not None:
                edges = graph.edges_into(learner, port)
                inputs[learner, port] = _delivered(edges, unrolled, context)
            else:
                inputs[learner, port] = _delivered(_row_edges(probe, context), unrolled, context)
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


def _has_own_rows(probe: ProbePlan) -> bool:
    return bool(probe.instead_of or probe.of)


def _passes(
    probe: ProbePlan, step_context: StepContext
) -> Iterator[tuple[StepContext, bool | None]]:
    """The greedy and the sampled pass of a probe, as far as it has them, each with the `of_k` that
    `EvaluateRole.measure` takes."""
    section = _section(probe.node, step_context.context)
    if section.greedy:
        yield replace(step_context, greedy=frozenset(probe.writers)), False
    count = samples_of_probe(section)
    if not section.greedy or count is not None:
        samples = {} if count is None else dict.fromkeys(probe.writers, count)
        temperature = section.temperature
        temperatures = {} if temperature is None else dict.fromkeys(probe.writers, temperature)
        sampling = replace(step_context, samples=samples, temperatures=temperatures)
        yield sampling, True if section.greedy else None


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
    """References use the probe's rows instead of those of the teaching port."""
    sources = [(edge.source.node, edge.source.port) for edge in _row_edges(probe, context)]
    own = [start.tables[source] for source in sources if source in start.tables]
    for name in probe.of if own else ():
        learner, _, port = name.partition(".")
        for edge in context.spec.graph.edges_into(learner, port):
            start.tables.setdefault((edge.source.node, edge.source.port), concat_tables(own))


def _row_edges(probe: ProbePlan, context: Context) -> list[Edge]:
    edges = context.spec.graph.edges_into(probe.node)
    return [edge for edge in edges if edge.target.port in ("rows", "pairs")]


def _delivered(edges: Sequence[Edge], unrolled: Unrolled, context: Context) -> Inputs:
    """What edges deliver; an edge without a table delivers nothing."""
    inputs = {}
    for edge in edges:
        foreseen = unrolled.foreseen.get((edge.source.node, edge.source.port))
        table = foreseen or unrolled.along(edge, context.lineage.take(edge))
        if table is not None:
            inputs[edge] = table
    return inputs


def _step(probe: ProbePlan, stages: tuple[Stage, ...]) -> Step:
    names = {stage.name for stage in stages}
    regions = tuple(region for region in probe.regions if not names.isdisjoint(region.stages))
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
    probes: Probes
    timeline: Timeline
    moments: Moments
    event_reporter: EventReporter
    readings: Readings
    note_change: Callable[[], None]
    """Called when a probe was read, which a resume needs to know."""

    def are_due(self, step: int) -> bool:
        return bool(self.probes.due(step, self._phase, self.moments.now, is_last=False))

    @property
    def _phase(self) -> PhasePlan:
        position = self.timeline.now()
        return position.phase if position else self.timeline.entries[-1].plan

    def watched(self, position: StepPosition, context: Context) -> frozenset[str]:
        """Nodes whose scores before learning are needed by an evaluation of this step's tables."""
        due = self.probes.of_tables(position.step, position.phase, context)
        return watched_by(context.spec, due)

    def read_due(self, scheduler: Scheduler, *, is_last: bool) -> None:
        step, phase = self.timeline.step, self._phase
        due = self.probes.due(step, phase, self.moments.now, is_last=is_last)
        if due:
            context = self.moments.stand_at(self.timeline.now())
            step_context = StepContext(step=step, phase=phase.name, context=context)
        for probe in due:
            read = partial(self.probes.read, probe, scheduler, step_context)
            self._read(probe, step_context, read)

    def read_tables(self, flight: StepInFlight, position: StepPosition) -> None:
        step_context = flight.step_context
        for probe in self.probes.of_tables(position.step, position.phase, step_context.context):
            read = partial(self.probes.read_tables, probe, flight.unrolled, step_context)
            self._read(probe, step_context, read)

    def _read(
        self,
        probe: ProbePlan,
        step_context: StepContext,
        read: Callable[[Grades], dict[str, float]],
    ) -> None:
        node, step, phase = probe.node, step_context.step, step_context.phase
        began = time.monotonic()
        most_rows = 0

        def grades(edge: str, rows: int) -> None:
            nonlocal most_rows
            most_rows = max(most_rows, rows)
            self.event_reporter.pace.delivered(edge, rows)

        self.event_reporter.evaluation_began(node, phase)
        metrics = read(grades)
        self.event_reporter.evaluation_finished(phase, time.monotonic() - began, most_rows)
        self.probes.mark_read(probe, step)
        self.note_change()
        for metric in self.probes.newly_unmeasured(node, metrics, step_context.context):
            message = f"{node}: no rows arrived from which `{metric}` can be computed"
            hint = unmeasured_hint(metric)
            self.event_reporter.alert(
                "warning", UNMEASURED, message, node, hint=hint, metric=metric
            )
        self.event_reporter.metrics(node, step, metrics, evaluation=True)
        findings = self.readings.evaluated(node, metrics, step=step, phase=phase)
        self.event_reporter.findings(findings)
