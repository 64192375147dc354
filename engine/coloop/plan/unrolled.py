"""An unrolled loop: the step of every phase and the slice of every probe, computed once and used by
plan, estimate and run.

Works on incomplete loops: what is missing yields no stages, and stages that cannot be ordered are
reported in `problems`. Callers decide whether that is an error.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from coloop.plan.closure import WRITES, Goals
from coloop.plan.phases import FlatPhase, epochs_of, flat_phases
from coloop.plan.settings.probes import ProbeLoad
from coloop.plan.settings.processor import Conditions, conditions_here
from coloop.plan.settings.resolver import Resolved
from coloop.plan.settings.rows import steps_of_epochs
from coloop.plan.settings.survey import PhaseLoad
from coloop.plan.settings.tables import Tables
from coloop.plan.stages import Step, Unrolling
from coloop.plan.types import ProbePlan, Refill, Stage
from coloop.spec.algorithm import node_algorithms, reads
from coloop.spec.base import as_tuple
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.groups import holding_pool, owner_of, rollout_of, weights_groups, writing_pools
from coloop.spec.lean import record
from coloop.spec.lineage import Lineages
from coloop.spec.nodes import DatasetNode, EvaluateNode

Ports = Iterable[tuple[str, str]]
UNKNOWN_STEPS = 100


@record
class UnrolledPhase:
    flat: FlatPhase
    step: Step

    @property
    def name(self) -> str:
        return self.flat.name

    @property
    def steps(self) -> int | None:
        """The most steps that it takes over the whole run; None if not known."""
        each = self.flat.section.steps or self.flat.section.max_steps
        return each * self.flat.rounds if each else None

    @property
    def epochs_source(self) -> str | None:
        """The node that its epochs are passes over: as written, or the only one that loads or reads
        rows."""
        _, named = epochs_of(self.flat.section)
        nodes = {stage.node for stage in self.step.stages if stage.verb in ("load", "read")}
        return named or (nodes.pop() if len(nodes) == 1 else None)


class Unrolled:
    """The steps and probes of one spec."""

    def __init__(
        self, spec: LoopSpec, lineages: Lineages | None = None, tables: Tables | None = None
    ) -> None:
        self.spec = spec
        self.lineages = lineages if lineages is not None else Lineages(spec)
        self.tables = tables if tables is not None else Tables(self.lineages)
        self._conditions: Conditions | None = None
        """Of this machine, once they were looked at."""
        self.problems: list[str] = []
        """Messages on why stages cannot be ordered."""
        self._groups = {node: owner_of(spec, node) or node for node in spec.nodes}
        self._weights_groups = weights_groups(spec)
        self._serves = {
            (node, port): frozenset(name for entry in entries for name in reads(entry))
            for node in spec.nodes
            for port, entries in node_algorithms(spec, node).items()
        }
        self._probes: dict[frozenset[str], tuple[ProbePlan, ...]] = {}
        self._settings: dict[tuple[Path | None, Conditions], Resolved] = {}

    def again(self, spec: LoopSpec) -> "Unrolled":
        """The same steps for a spec that differs only in how they are executed."""
        other = copy(self)
        other.__dict__["phases"] = self.phases
        other.spec, other.problems, other._settings = spec, [], {}
        return other

    def resized(self, spec: LoopSpec) -> "Unrolled":
        """The same steps for a spec with other numbers of rows or tokens."""
        other = self.again(spec)
        other.tables = Tables(Lineages(spec))
        return other

    def settings(self, root: Path | None = None, conditions: Conditions | None = None) -> Resolved:
        """Values for open settings of these steps; by default for a run that starts on this
        machine. Without `root` no file is opened."""
        if conditions is None:
            conditions = self._conditions = self._conditions or conditions_here()
        if (root, conditions) not in self._settings:
            loads = [
                PhaseLoad(
                    live=tuple(sorted(phase.flat.live)),
                    stages=tuple(stage.name for stage in phase.step.stages),
                    steps=self.expected_steps(phase, root),
                )
                for phase in self.phases
            ]
            probes = {probe.node: _load_of(probe) for probe in self.probes({})}
            self._settings[root, conditions] = Resolved(
                self.spec, loads, probes, root, conditions, self.tables
            )
        return self._settings[root, conditions]

    def expected_steps(self, phase: UnrolledPhase, root: Path | None = None) -> int:
        """Expected steps of a phase over the whole run: `UNKNOWN_STEPS` if unknown, and at most
        that many if a trigger may end it early. Without `root` no file is opened."""
        limits = [limit for limit in (phase.steps, self._steps_of_epochs(phase, root)) if limit]
        steps = min(limits, default=UNKNOWN_STEPS)
        for trigger in self.spec.schedule.triggers:
            phases = as_tuple(trigger.in_)
            if trigger.do.next_phase and (not phases or phase.name in phases):
                return min(steps, UNKNOWN_STEPS)
        return steps

    def _steps_of_epochs(self, phase: UnrolledPhase, root: Path | None) -> int | None:
        epochs, _ = epochs_of(phase.flat.section)
        section = self.spec.nodes.get(phase.epochs_source or "")
        if epochs is None or not isinstance(section, DatasetNode):
            return None
        each = steps_of_epochs(section, epochs, root)
        return each * phase.flat.rounds if each else None

    @cached_property
    def phases(self) -> tuple[UnrolledPhase, ...]:
        return tuple(
            UnrolledPhase(flat=flat, step=self.step(flat.live, flat.fills, flat.overrides))
            for flat in flat_phases(self.spec)
        )

    def probes(self, overrides: Mapping[str, Any]) -> tuple[ProbePlan, ...]:
        """The evaluations, over the live edges under these overrides; rows are not counted."""
        dead = self.spec.graph.dead_edges(overrides)
        if dead not in self._probes:
            unrolling = self._unrolling(overrides)
            self._probes[dead] = tuple(
                plan_probe(name, unrolling)
                for name, node in self.spec.nodes.items()
                if isinstance(node, EvaluateNode)
            )
            self.problems += unrolling.problems
        return self._probes[dead]

    def step(self, live: Ports, fills: Iterable[str], overrides: Mapping[str, Any]) -> Step:
        """The step that trains on these live ports and fills these buffers."""
        unrolling = self._unrolling(overrides)
        step = unrolling.step(Goals(teaching=frozenset(live), fills=frozenset(fills)))
        stages = self._with_readings(step, unrolling)
        self.problems += unrolling.problems
        return replace(step, stages=stages)

    def _unrolling(self, overrides: Mapping[str, Any]) -> Unrolling:
        return Unrolling(
            self.spec,
            self.lineages.at(overrides),
            serves=lambda node, port: self._serves.get((node, port), frozenset()),
            pool_of=self._pool_of_stage,
            groups=self._groups,
        )

    def _pool_of_stage(self, node: str, verb: str) -> str | None:
        """Pool of a stage; a sync involves two pools and runs in the one that holds the weights."""
        group = self._weights_groups.get(self._groups.get(node, node))
        if group is None or verb not in ("generate", "score", "learn", "sync"):
            return None
        is_writing = rollout_of(self.spec, node) is not None and verb in ("generate", "score")
        if is_writing:
            pools = writing_pools(self.spec, group)
            return next((pool for pool, writers in pools.items() if node in writers), None)
        return holding_pool(self.spec, group)

    def _with_readings(self, step: Step, unrolling: Unrolling) -> tuple[Stage, ...]:
        """Append the stages without weights that only evaluations of the step's own tables need, if
        the stages that they read from are in the step."""
        added = list(step.stages)
        names = {stage.name for stage in added}
        for name, node in self.spec.nodes.items():
            if not isinstance(node, EvaluateNode) or node.instead_of or node.of:
                continue
            edges = self.spec.graph.edges_into(name)
            for port in dict.fromkeys(edge.target.port for edge in edges):
                for edge in unrolling.live_edges(name, port):
                    for stage in unrolling.sources_of([(edge.source.node, edge.source.port)]):
                        is_light = stage.pool is None and stage.verb in ("score", "prepare")
                        if stage.name not in names and is_light and names.issuperset(stage.after):
                            added.append(_after_slices(stage, step.refills))
                            names.add(stage.name)
        return tuple(added)


def _load_of(probe: ProbePlan) -> ProbeLoad:
    running = (*probe.stages, *probe.sources)
    return ProbeLoad(
        stages=tuple(stage.name for stage in probe.stages),
        compared=tuple(stage.name for stage in probe.of_stages),
        writers=probe.writers,
        edges=frozenset(key for stage in running for key in stage.edges),
    )


def _after_slices(stage: Stage, refills: tuple[Refill, ...]) -> Stage:
    """A stage outside all slices, which also waits for the filters of the slices that it reads."""
    filters = [
        refill.stages[-1] for refill in refills if not set(refill.stages).isdisjoint(stage.after)
    ]
    return stage.model_copy(update={"after": tuple(dict.fromkeys((*stage.after, *filters)))})


# What an evaluation runs: the slice of the graph from the node whose rows it replaces
# (`instead_of`) to its own inputs, and the stages that load its rows.
#
#     held_out.load ──as rows of problems──> actor.generate ── exact.score ──> probe
#
# Where rows of the slice would be combined with others (`concat`, `spare`), the others are left
# out: metrics are of the probe's rows alone. No buffer is read, so paths through a buffer are not
# part of a slice.

Port = tuple[str, str]

SLICED = ("generate", "score", "prepare", "credit")
"""Verbs of the stages that run for a probe; `credit` if the returns of its rows are needed."""


def plan_probe(name: str, unrolling: Unrolling) -> ProbePlan:
    """The plan of one evaluation, over the live edges of the unrolling."""
    spec = unrolling.spec
    node = spec.nodes[name]
    assert isinstance(node, EvaluateNode)
    edges = [
        edge
        for port in dict.fromkeys(edge.target.port for edge in spec.graph.edges_into(name))
        for edge in unrolling.live_edges(name, port)
    ]
    has_rows = bool(node.instead_of or node.of)
    rows = [_source(edge) for edge in edges if has_rows and edge.target.port in ("rows", "pairs")]
    sources = unrolling.sources_of(rows) if rows else ()
    plan = ProbePlan(
        node=name,
        every=node.every,
        instead_of=node.instead_of,
        of=tuple(node.of or ()),
        of_stages=_serving_stages(node, unrolling),
        sources=sources,
    )
    if node.instead_of is None:
        return plan
    graded = [_source(edge) for edge in edges]
    taught = [_source(edge) for edge in _taught(node, unrolling)]
    below = unrolling.below(node.instead_of)
    wanted = [port for port in (*graded, *taught) if port not in rows and port[0] in below]
    step, beside = unrolling.slice_after(node.instead_of, wanted)
    names = {stage.name for stage in sources}
    others = tuple(
        stage for stage in beside.stages if stage.verb != "read" and stage.name not in names
    )
    stages = tuple(stage for stage in step.stages if stage.verb in SLICED)
    return plan.model_copy(
        update={
            "stages": stages,
            "regions": step.regions + beside.regions,
            "writers": _first_writers(spec, stages),
            "sources": sources + others,
        }
    )


def _source(edge: Edge) -> Port:
    return edge.source.node, edge.source.port


def _taught(node: EvaluateNode, unrolling: Unrolling) -> Iterable[Edge]:
    for name in node.of or ():
        learner, _, port = name.partition(".")
        yield from unrolling.live_edges(learner, port)


def _serving_stages(node: EvaluateNode, unrolling: Unrolling) -> tuple[Stage, ...]:
    """Reference stages that the teaching ports named in `of` read."""
    serving = []
    for name in node.of or ():
        learner, _, port = name.partition(".")
        for reading in unrolling.serves(learner, port):
            serving += [_source(edge) for edge in unrolling.serving_edges(learner, port, reading)]
    if not serving:
        return ()
    return tuple(stage for stage in unrolling.sources_of(serving) if stage.verb == "score")


PLAYED: Final = frozenset({"environment"})
"""Kinds in whose stage policies write with the sampling of the evaluation."""


def _first_writers(spec: LoopSpec, stages: tuple[Stage, ...]) -> tuple[str, ...]:
    """Nodes that generate in the slice, without those downstream of another such node."""
    sources = {edge.key: edge.source.node for edge in spec.edges}
    above: dict[str, set[str]] = {}
    for stage in stages:
        givers = {sources[key] for key in stage.edges}
        above[stage.node] = givers.union(*(above.get(giver, set()) for giver in givers))
    writers = [
        stage.node
        for stage in stages
        if (rollout_of(spec, stage.node) is not None or spec.kind_of(stage.node) in PLAYED)
        and stage.verb == WRITES.get(spec.nodes[stage.node].kind)
    ]
    return tuple(node for node in writers if above[node].isdisjoint(writers))
