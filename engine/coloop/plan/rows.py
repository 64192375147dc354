"""Row counts of stages, updates and evaluations of a plan.

Counted by `spec.lineage.counts` over the edges that deliver in these stages. A run calls `rows_of`
again when learners pause, and compares the result with the rows that arrive.
"""

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

from coloop.plan.closure import CREDITED, GIVES, Givers
from coloop.plan.settings.probes import samples_of_probe
from coloop.plan.stages import Step
from coloop.plan.types import (
    Learner,
    ProbePlan,
    Refill,
    Rows,
    Stage,
    StageRows,
    Update,
)
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lineage import Lineage
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.nodes import EvaluateNode
from coloop.spec.row_counts import NONE, Count, add_up
from coloop.spec.schedule import LearnRule

Ports = Iterable[tuple[str, str]]


def rows_of(
    spec: LoopSpec,
    lineage: Lineage,
    step: Step,
    live: Ports,
    overrides: Mapping[str, Any],
) -> tuple[tuple[StageRows, ...], tuple[Update, ...]]:
    """Rows of the stages that have any, in order, and the learners of each update. `live`: teaching
    ports (node, port) that learn in this step."""
    counting, ports = _Counting(spec, lineage, step, overrides), frozenset(live)
    learning = [stage for stage in step.stages if stage.verb == "learn"]
    updates = tuple(_update(stage, ports, spec, counting) for stage in learning)
    return tuple(counting.of_stages(ports)), updates


class _Counting:
    """Counts the rows of the stages of one step or of one evaluation."""

    def __init__(
        self,
        spec: LoopSpec,
        lineage: Lineage,
        step: Step,
        overrides: Mapping[str, Any],
        **probe: Any,
    ) -> None:
        self._spec = spec
        self._lineage = lineage
        self._stages = step.stages
        self._refills = step.refills
        self._regions = step.regions
        self._givers = Givers(lineage)
        self._edges = {edge.key: edge for edge in spec.edges}
        names = {stage.name for stage in step.stages}
        stand_ins = probe.get("stand_ins", {})
        self._delivering = {
            key
            for stage in step.stages
            for key in stage.edges
            if not names.isdisjoint(self._givers_of(self._edges[key]))
            or self._edges[key].source.node in stand_ins
        }
        self.counts = RowCounts(
            lineage,
            overrides=overrides,
            moved=spec.graph.moved_paths,
            delivers=lambda edge: edge.key in self._delivering,
            passes=self._passes_over(),
            nodes=self._nodes_at_hand(stand_ins),
            **probe,
        )

    def of_stages(self, live: frozenset[tuple[str, str]]) -> Iterable[StageRows]:
        for stage in self._stages:
            if stage.verb == "sync":
                continue
            yield StageRows(
                stage=stage.name,
                rows=as_rows(self._of_stage(stage, live)),
                edges={
                    key: as_rows(
                        self.counts.of_edge(self._edges[key]) if key in self._delivering else NONE
                    )
                    for key in stage.edges
                },
                passes=self._passes_of(stage),
            )

    def taught(self, node: str, ports: Iterable[str]) -> Count:
        """Rows that a learner's live ports give an update."""
        return add_up([self.counts.taught(node, port) for port in ports])

    def _of_stage(self, stage: Stage, live: frozenset[tuple[str, str]]) -> Count:
        match stage.verb:
            case "credit":
                return self.taught(stage.node, sorted(CREDITED))
            case "learn":
                return add_up(
                    self.counts.taught(node, port)
                    for node, port in sorted(live)
                    if node in stage.members
                )
            case "write":
                return self._written(stage)
        return self._given(stage.node, stage.verb)

    def _given(self, node: str, verb: str) -> Count:
        """Rows at the stage's widest output."""
        ports = [
            port for port, giver in GIVES[self._spec.nodes[node].kind].items() if giver == verb
        ]
        counts = [self.counts.of(node, port) for port in ports if self._lineage.levels(node, port)]
        unknown = [count for count in counts if count.rows is None]
        if unknown:
            return unknown[0]
        return max(counts, key=lambda count: count.rows or 0, default=NONE)

    def _written(self, stage: Stage) -> Count:
        """Rows that go into a buffer; scores that come with them add none."""
        edges = [self._edges[key] for key in stage.edges if key in self._delivering]
        rows = [edge for edge in edges if edge.target.port != "scores"] or edges
        return add_up([self.counts.of_edge(edge) for edge in rows])

    def _givers_of(self, edge: Edge) -> set[str]:
        return {f"{node}.{verb}" for node, verb in self._givers.of(edge)}

    def _nodes_at_hand(self, stand_ins: Iterable[str]) -> frozenset[str]:
        """Nodes of the stages and of everything upstream."""
        delivering = (self._edges[key].source.node for key in self._delivering)
        members = (node for stage in self._stages for node in (stage.node, *stage.members))
        return self._spec.graph.upstream({*members, *delivering, *stand_ins})

    def _passes_of(self, stage: Stage) -> int:
        refills = _runs(refill for refill in self._refills if stage.name in refill.stages)
        return refills * prod(
            region.rounds for region in self._regions if stage.name in region.stages
        )

    def _passes_over(self) -> Callable[[Edge], int]:
        """How often at most an edge's rows are repeated before its reader runs. Slices end before
        stages outside them start; a filter's output is complete, and a stage inside a slice sees
        one pass."""
        readers: dict[str, set[str]] = {}
        for stage in self._stages:
            for key in stage.edges:
                readers.setdefault(key, set()).add(stage.name)

        def passes(edge: Edge) -> int:
            givers, read_by = self._givers_of(edge), readers.get(edge.key, set())
            holding = [refill for refill in self._refills if not givers.isdisjoint(refill.stages)]
            if any(read_by <= set(refill.stages) for refill in holding):
                return 1
            return _runs(refill for refill in holding if refill.filter != edge.source.node)

        return passes


def _runs(refills: Iterable[Refill]) -> int:
    """How often at most a stage of these slices runs in a step; all share the first run."""
    return 1 + sum(refill.max_rounds - 1 for refill in refills)


def as_rows(count: Count) -> Rows:
    return Rows(most=count.whole, least=count.least, text=str(count), breakdown=count.breakdown)


def _update(
    stage: Stage, live: frozenset[tuple[str, str]], spec: LoopSpec, counting: _Counting
) -> Update:
    turns = [node for node in spec.schedule.order if node in stage.members]
    members = [*turns, *(node for node in stage.members if node not in turns)]
    return Update(
        stage=stage.name,
        group=stage.node,
        learners=tuple(_learner(node, live, spec, counting) for node in members),
        is_joint=len(members) > 1 and not turns,
    )


def _learner(
    node: str, live: frozenset[tuple[str, str]], spec: LoopSpec, counting: _Counting
) -> Learner:
    ports = tuple(sorted(port for name, port in live if name == node))
    rule = spec.schedule.learn.get(node) or LearnRule()
    return Learner(
        node=node,
        ports=ports,
        rows=as_rows(counting.taught(node, ports)),
        every=rule.every,
        after=rule.after,
        updates=rule.updates,
        when=rule.when,
        kept_until=rule.rows,
    )


def with_loads(probe: ProbePlan, spec: LoopSpec, lineage: Lineage) -> ProbePlan:
    """The evaluation with its row counts."""
    section = spec.nodes[probe.node]
    assert isinstance(section, EvaluateNode)
    is_greedy = section.greedy and bool(probe.stages)
    samples = samples_of_probe(section) if probe.stages else None
    each = 1 if is_greedy else samples
    overrides = (
        {}
        if each is None
        else {f"nodes.{node}.rollout.completions_per_prompt": each for node in probe.writers}
    )
    loading = Step(stages=probe.sources, regions=probe.regions)
    sources = _Counting(spec, lineage, loading, {}, is_probe=True)
    stand_ins = {}
    if probe.instead_of is not None:
        edges = spec.graph.edges_into(probe.node, "rows")
        stand_ins[probe.instead_of] = add_up([sources.counts.of_edge(edge) for edge in edges])
    stages = (*probe.sources, *(stage for stage in probe.stages if stage not in probe.sources))
    step = Step(stages=stages, regions=probe.regions)
    slice_ = _Counting(spec, lineage, step, overrides, is_probe=True, stand_ins=stand_ins)
    rows = [*slice_.of_stages(frozenset())]
    return probe.model_copy(update={"greedy": is_greedy, "samples": samples, "rows": tuple(rows)})
