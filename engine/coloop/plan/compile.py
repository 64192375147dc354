"""The compiler: a valid spec becomes a plan. Pure; called at every edit of the page, so it is
quick."""

from collections.abc import Iterable, Mapping
from typing import Any

from coloop.errors import PlanRefused
from coloop.plan.decisions import backend_of, decide, engine_of
from coloop.plan.explain import explain
from coloop.plan.invariants import check_stages
from coloop.plan.needs import GIVES
from coloop.plan.phases import (
    FlatPhase,
    buffers_until_full,
    epochs_of,
    flat_phases,
    live_ports,
)
from coloop.plan.placement import (
    gpus_of,
    holding_pool,
    pools_of,
    rollout_of,
    writing_pools,
)
from coloop.plan.probes import plan_probe
from coloop.plan.rows import rows_of, with_rows
from coloop.plan.runnable import check_compiles
from coloop.plan.stages import Goals, Unrolling
from coloop.plan.types import (
    EnginePlan,
    PhasePlan,
    Plan,
    ProbePlan,
    Refill,
    Stage,
    StageRows,
    WeightsPlan,
)
from coloop.spec.algorithm import node_algorithms, reads
from coloop.spec.base import as_tuple
from coloop.spec.dtypes import resolve_dtypes
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.groups import owner_of, weights_groups
from coloop.spec.io import content_hash
from coloop.spec.lineage import Lineages
from coloop.spec.nodes import EvaluateNode, model_of
from coloop.spec.rollout import Engine


def compile_plan(spec: LoopSpec, lineages: Lineages | None = None) -> Plan:
    """Compile a spec that validates.

    Raises:
        PlanRefused: with a diagnostic for each part that does not run yet.
    """
    refusals = check_compiles(spec)
    if refusals:
        raise PlanRefused(refusals[0].message, refusals)
    if lineages is None:
        lineages = Lineages(spec)
    compiler = Compiler(spec, lineages)
    plan = Plan(
        name=spec.name,
        spec_hash=content_hash(spec),
        pools=pools_of(spec),
        weights=compiler.weights(),
        phases=tuple(compiler.phase(flat) for flat in flat_phases(spec)),
        probes=compiler.probes({}),
        decisions=decide(spec),
    )
    plan = with_rows(plan, spec, lineages)
    return plan.model_copy(update={"explain": explain(plan)})


class Compiler:
    """Stages of phases and probes over one spec; the driver asks it again where learners pause."""

    def __init__(self, spec: LoopSpec, lineages: Lineages) -> None:
        self._spec = spec
        self._lineages = lineages
        self._groups = {node: owner_of(spec, node) or node for node in spec.nodes}
        self._weights_groups = weights_groups(spec)
        self._givers = {edge.key: _giver(spec, edge) for edge in spec.edges}
        self._serves = {
            (node, port): frozenset(name for entry in entries for name in reads(entry))
            for node in spec.nodes
            for port, entries in node_algorithms(spec, node).items()
        }

    def unroll(
        self,
        live: Iterable[tuple[str, str]],
        fills: Iterable[str],
        overrides: Mapping[str, Any],
    ) -> tuple[tuple[Stage, ...], tuple[Refill, ...]]:
        """Stages of a step with these live ports and buffers, and the slices that are repeated."""
        unrolling = self._unrolling(overrides)
        goals = Goals(
            teaching=frozenset(live),
            fills=frozenset(fills),
        )
        stages, refills = unrolling.step(goals)
        stages = self._with_readings(stages, refills, unrolling, overrides)
        check_stages(self._spec, stages, refills)
        return stages, refills

    def rows(
        self,
        stages: tuple[Stage, ...],
        refills: tuple[Refill, ...],
        live: Iterable[tuple[str, str]],
        overrides: Mapping[str, Any],
    ) -> tuple[StageRows, ...]:
        """Rows of the stages of a step with these live ports."""
        lineage = self._lineages.at(overrides)
        return rows_of(self._spec, lineage, stages, refills, live, overrides)

    def phase(self, flat: FlatPhase) -> PhasePlan:
        spec, phase = self._spec, flat.phase
        live = live_ports(spec, phase)
        fills = (*as_tuple(phase.fill), *buffers_until_full(phase))
        stages, refills = self.unroll(live, fills, flat.overrides)
        epochs, of = epochs_of(phase)
        source = of or _only_source(stages)
        return PhasePlan(
            name=phase.name,
            index=flat.index,
            rounds=flat.rounds,
            learn=tuple(sorted(f"{node}.{port}" for node, port in live)),
            fill=tuple(dict.fromkeys(fills)),
            steps=phase.steps,
            epochs=epochs,
            epochs_of=source if epochs is not None else None,
            until=buffers_until_full(phase),
            max_steps=phase.max_steps,
            ends=_ends(flat, source),
            stages=stages,
            refills=refills,
            probes=self._other_probes(flat.overrides),
            overrides=dict(flat.overrides),
            dead_edges=tuple(
                edge.key for edge in spec.edges if spec.graph.is_dead(edge, flat.overrides)
            ),
        )

    def probes(self, overrides: Mapping[str, Any]) -> tuple[ProbePlan, ...]:
        """The evaluations, over the edges that live under these overrides."""
        unrolling = self._unrolling(overrides)
        found = tuple(
            plan_probe(self._spec, name, unrolling, self._serves_of)
            for name, node in self._spec.nodes.items()
            if isinstance(node, EvaluateNode)
        )
        for probe in found:
            for stages in (probe.sources, probe.stages, probe.of_stages):
                check_stages(self._spec, stages)
        return found

    def _other_probes(self, overrides: Mapping[str, Any]) -> tuple[ProbePlan, ...]:
        """Those that run otherwise than where nothing is overridden."""
        graph = self._spec.graph
        if graph.dead_edges(overrides) == graph.dead_edges():
            return ()
        usual = self.probes({})
        return tuple(probe for probe in self.probes(overrides) if probe not in usual)

    def weights(self) -> tuple[WeightsPlan, ...]:
        spec = self._spec
        plans = []
        dtypes = resolve_dtypes(spec, gpus=gpus_of(spec))
        for group in weights_groups(spec).values():
            owner = spec.nodes[group.name]
            training = getattr(owner, "training", None)
            plans.append(
                WeightsPlan(
                    name=group.name,
                    members=group.members,
                    trains=group.trainable,
                    source=_source(spec, group.name),
                    backend=backend_of(spec, training) if group.trainable else None,
                    dtypes=dtypes[group.name],
                    pool=holding_pool(spec, group),
                    engines=tuple(
                        EnginePlan(pool=pool, engine=_engine(spec, writers[0]), writers=writers)
                        for pool, writers in writing_pools(spec, group).items()
                    ),
                )
            )
        return tuple(plans)

    def _serves_of(self, node: str, port: str) -> frozenset[str]:
        return self._serves.get((node, port), frozenset())

    def _unrolling(self, overrides: Mapping[str, Any]) -> Unrolling:
        return Unrolling(
            self._spec,
            self._lineages.at(overrides),
            serves=self._serves_of,
            is_dead=lambda edge: self._spec.graph.is_dead(edge, overrides),
            pool_of=self._pool_of_stage,
            groups=self._groups,
        )

    def _pool_of_stage(self, node: str, verb: str) -> str | None:
        """A sync works at both its ends; its stage stands where the weights are held."""
        group = self._weights_groups.get(self._groups[node])
        if group is None or verb not in ("generate", "score", "learn", "sync"):
            return None
        if verb == "generate":
            pools = writing_pools(self._spec, group)
            return next((pool for pool, writers in pools.items() if node in writers), None)
        return holding_pool(self._spec, group)

    def _with_readings(
        self,
        stages: tuple[Stage, ...],
        refills: tuple[Refill, ...],
        unrolling: Unrolling,
        overrides: Mapping[str, Any],
    ) -> tuple[Stage, ...]:
        """Evaluations that only read the step's own tables come last; scorers without weights that
        are missing for them are added where their rows are there."""
        added = list(stages)
        given = {stage.name for stage in added}
        for name, node in self._spec.nodes.items():
            if not isinstance(node, EvaluateNode) or node.instead_of or node.of:
                continue
            for edge in self._spec.graph.edges_into(name):
                if self._spec.graph.is_dead(edge, overrides):
                    continue
                for stage in unrolling.sources_of([(edge.source.node, edge.source.port)]):
                    is_light = stage.pool is None and stage.verb in ("score", "prepare")
                    has_rows = given.issuperset(self._givers[key] for key in stage.edges)
                    if stage.name not in given and is_light and has_rows:
                        added.append(_after_slices(stage, refills))
                        given.add(stage.name)
        return tuple(added)


def _giver(spec: LoopSpec, edge: Edge) -> str | None:
    """The stage that fills the port from which an edge leads."""
    source = edge.source
    verb = GIVES[spec.nodes[source.node].kind].get(source.port)
    return None if verb is None else f"{source.node}.{verb}"


def _engine(spec: LoopSpec, writer: str) -> Engine:
    rollout = rollout_of(spec, writer)
    assert rollout is not None
    return engine_of(spec, rollout)


def _after_slices(stage: Stage, refills: tuple[Refill, ...]) -> Stage:
    """A stage that is part of no slice, with the filters of those whose rows it reads."""
    filters = [r.stages[-1] for r in refills if not set(r.stages).isdisjoint(stage.after)]
    return stage.model_copy(update={"after": tuple(dict.fromkeys((*stage.after, *filters)))})


def _only_source(stages: tuple[Stage, ...]) -> str | None:
    sources = {stage.node for stage in stages if stage.verb in ("load", "read")}
    return sources.pop() if len(sources) == 1 else None


def _source(spec: LoopSpec, node: str) -> str:
    model = model_of(spec.nodes[node])
    assert model is not None
    match model.type:
        case "scratch":
            return f"scratch {model.architecture}"
        case "pretrained":
            return f"pretrained {model.path}"
        case "copy":
            return f"copy of {model.of}"
        case "snapshot":
            return f"snapshot of {model.of}"
        case "run":
            return f"run {model.run}, {model.node}"
    return str(model.type)


def _ends(flat: FlatPhase, source: str | None) -> str:
    phase = flat.phase
    if phase.steps is not None:
        return f"{phase.steps} steps"
    if phase.until is not None:
        cap = f", at most {phase.max_steps} steps" if phase.max_steps else ""
        return f"until {' and '.join(as_tuple(phase.until))}{cap}"
    epochs, of = epochs_of(phase)
    return f"{epochs:g} epochs of {of or source or '?'}"
