"""The compiler: turns a valid spec into a plan for a machine. It reads nothing but the state of
this machine, and it is fast, as the page calls it at every edit."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coloop.errors import PlanInconsistent
from coloop.plan.closure import GIVES
from coloop.plan.explain import explain
from coloop.plan.phases import FlatPhase, buffers_until_full, epochs_of
from coloop.plan.rows import rows_of, with_loads
from coloop.plan.settings.machine import Machine
from coloop.plan.settings.processor import Conditions
from coloop.plan.settings.resolver import Resolved
from coloop.plan.stages import Step
from coloop.plan.types import (
    PhasePlan,
    Plan,
    PoolPlan,
    ProbePlan,
    Refill,
    Stage,
    StageRows,
    WeightsPlan,
)
from coloop.plan.unrolled import Unrolled, UnrolledPhase
from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import (
    DEFAULT_POOL,
    WeightsGroup,
    holding_pool,
    weights_groups,
    writing_pools,
)
from coloop.spec.io import content_hash
from coloop.spec.lean import record
from coloop.spec.nodes import model_of


def compile_plan(
    spec: LoopSpec,
    unrolled: Unrolled | None = None,
    *,
    root: Path | None = None,
    conditions: Conditions | None = None,
) -> Plan:
    """Compile a valid spec, even one that a run refuses.

    Args:
        unrolled: where the caller has it already; else it is made here.
        root: folder for relative model paths; without it no file is opened, and what follows from
            the size of such a model is not known.
        conditions: on which open settings are decided; None: of a run that begins on this machine.

    Raises:
        PlanInconsistent: no order of the stages fits.
    """
    if unrolled is None:
        unrolled = Unrolled(spec)
    settings, compiler = unrolled.settings(root, conditions), Compiler(unrolled)
    usual = unrolled.lineages.at({})
    placed = place_weights(spec, settings)
    plan = Plan(
        name=spec.name,
        spec_hash=content_hash(spec),
        pools=placed.pools,
        weights=placed.weights,
        phases=tuple(compiler.phase(phase) for phase in unrolled.phases),
        probes=tuple(with_loads(probe, spec, usual) for probe in compiler.probes({})),
        decisions=settings.decisions,
    )
    return plan.model_copy(update={"explain": explain(plan)})


@record
class Placed:
    """The part of a plan that no phase changes."""

    pools: tuple[PoolPlan, ...]
    weights: tuple[WeightsPlan, ...]


def place_weights(spec: LoopSpec, settings: Resolved) -> Placed:
    groups = weights_groups(spec).values()
    return Placed(
        pools=pools_of(spec, settings.survey.machine),
        weights=tuple(_weights_plan(spec, group, settings) for group in groups),
    )


class Compiler:
    """Stages of phases and probes for one spec; a run uses it again when learners pause."""

    def __init__(self, unrolled: Unrolled) -> None:
        self._spec, self._unrolled = unrolled.spec, unrolled

    def unroll(
        self,
        live: Iterable[tuple[str, str]],
        fills: Iterable[str],
        overrides: Mapping[str, Any],
    ) -> Step:
        """A step with these live ports and buffers. Raises `PlanInconsistent` if its stages cannot
        be ordered."""
        step = self._unrolled.step(live, fills, overrides)
        self._check(step)
        return step

    def _check(self, step: Step) -> None:
        if self._unrolled.problems:
            raise PlanInconsistent(self._unrolled.problems[0])
        check_stages(self._spec, step.stages, step.refills)

    def rows(
        self, step: Step, live: Iterable[tuple[str, str]], overrides: Mapping[str, Any]
    ) -> tuple[StageRows, ...]:
        lineage = self._unrolled.lineages.at(overrides)
        return rows_of(self._spec, lineage, step, live, overrides)[0]

    def phase(self, unrolled: UnrolledPhase) -> PhasePlan:
        """The plan of one phase. Raises `PlanInconsistent` if its stages cannot be ordered."""
        spec, flat, step = self._spec, unrolled.flat, unrolled.step
        phase = flat.section
        self._check(step)
        epochs, _ = epochs_of(phase)
        source = unrolled.epochs_source
        lineage = self._unrolled.lineages.at(flat.overrides)
        rows, updates = rows_of(spec, lineage, step, flat.live, flat.overrides)
        probes = self._other_probes(flat.overrides)
        return PhasePlan(
            name=phase.name,
            index=flat.index,
            rounds=flat.rounds,
            learn=tuple(sorted(f"{node}.{port}" for node, port in flat.live)),
            fill=flat.fills,
            steps=phase.steps,
            epochs=epochs,
            epochs_of=source if epochs is not None else None,
            until=buffers_until_full(phase),
            max_steps=phase.max_steps,
            ends=_ends(flat, source),
            stages=step.stages,
            refills=step.refills,
            regions=step.regions,
            rows=rows,
            updates=updates,
            probes=tuple(with_loads(probe, spec, lineage) for probe in probes),
            overrides=dict(flat.overrides),
            dead_edges=tuple(
                edge.key for edge in spec.edges if spec.graph.is_dead(edge, flat.overrides)
            ),
        )

    def probes(self, overrides: Mapping[str, Any]) -> tuple[ProbePlan, ...]:
        probes = self._unrolled.probes(overrides)
        for probe in probes:
            for stages in (probe.sources, probe.stages, probe.of_stages):
                check_stages(self._spec, stages)
        return probes

    def _other_probes(self, overrides: Mapping[str, Any]) -> tuple[ProbePlan, ...]:
        """Probes that differ from those without overrides."""
        graph = self._spec.graph
        if graph.dead_edges(overrides) == graph.dead_edges():
            return ()
        usual = self.probes({})
        return tuple(probe for probe in self.probes(overrides) if probe not in usual)


def _weights_plan(spec: LoopSpec, group: WeightsGroup, settings: Resolved) -> WeightsPlan:
    update = settings.updates.get(group.name)
    base = settings.survey.bases.get(group.name)
    return WeightsPlan(
        name=group.name,
        members=group.members,
        trains=group.trainable,
        source=_source(spec, group.name),
        backend=update.backend if update else settings.survey.settling.spreads_frozen(group.name),
        dtypes=settings.survey.dtypes[group.name],
        base=None if base is None else base.holder,
        beside=None if base is None else base.beside,
        pool=holding_pool(spec, group),
        update=update,
        engines=tuple(plan for (name, _), plan in settings.engines.items() if name == group.name),
    )


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
        case "shared":
            return f"adapter on {model.with_}"
    return str(model.type)


def _ends(flat: FlatPhase, source: str | None) -> str:
    phase = flat.section
    if phase.steps is not None:
        return f"{phase.steps} steps"
    if phase.until is not None:
        cap = f", at most {phase.max_steps} steps" if phase.max_steps else ""
        return f"until {' and '.join(as_tuple(phase.until))}{cap}"
    epochs, of = epochs_of(phase)
    return f"{epochs:g} epochs of {of or source or '?'}"


# Invariants of plans, checked for every compiled one: a stage that ran before its inputs would get
# no rows, without an error.
#
# The checks read the edges themselves, not the result of the ordering.


def check_stages(spec: LoopSpec, stages: Sequence[Stage], refills: Sequence[Refill] = ()) -> None:
    """Check that every stage comes after all its givers, after the whole slice if a giver is in a
    slice that it is not part of, and after the stages in its `after`; and that a slice is
    contiguous.

    Raises:
        PlanInconsistent: with the stages that break it.
    """
    positions = {stage.name: position for position, stage in enumerate(stages)}
    if len(positions) < len(stages):
        names = sorted({s.name for s in stages if sum(o.name == s.name for o in stages) > 1})
        raise PlanInconsistent(f"planned twice: {', '.join(names)}")
    for stage in stages:
        givers = _givers(spec, stage)
        waits = {*stage.after, *givers, *_ends_of_slices(stage, givers, refills)}
        for giver in sorted(waits & positions.keys()):
            if positions[giver] >= positions[stage.name]:
                raise PlanInconsistent(
                    f"{stage.name} is planned before {giver}, whose rows it needs"
                )
    for refill in refills:
        _check_slice(refill, [stage.name for stage in stages])


def _givers(spec: LoopSpec, stage: Stage) -> set[str]:
    """Stages that fill what this stage's edges deliver."""
    sources = [spec.graph.edge(key) for key in stage.edges]
    givers = set()
    for edge in sources:
        if edge is not None:
            source = edge.source
            verb = GIVES[spec.nodes[source.node].kind].get(source.port)
            if verb is not None:
                givers.add(f"{source.node}.{verb}")
    return givers - {stage.name}


def _ends_of_slices(
    stage: Stage, givers: Iterable[str], refills: Sequence[Refill]
) -> Iterable[str]:
    """Filters whose slices give rows to this stage from outside."""
    wanted = set(givers)
    inside = {name for r in refills if stage.name in r.stages for name in r.stages}
    for refill in refills:
        if stage.name not in refill.stages and wanted & set(refill.stages) - inside:
            yield refill.stages[-1]


def _check_slice(refill: Refill, names: Sequence[str]) -> None:
    if not refill.first_pass or refill.first_pass[-1] != refill.stages[-1]:
        raise PlanInconsistent(f"the slice of {refill.filter} does not end with its filter")
    at = names.index(refill.first_pass[0])
    if tuple(names[at : at + len(refill.first_pass)]) != refill.first_pass:
        among = ", ".join(names[at : at + len(refill.first_pass)])
        raise PlanInconsistent(
            f"the slice of {refill.filter} is not contiguous: {', '.join(refill.first_pass)} are "
            f"spread among {among}"
        )
    early = set(refill.stages) - set(refill.first_pass)
    late = [name for name in early if names.index(name) > at]
    if late:
        raise PlanInconsistent(f"{', '.join(sorted(late))} run after the slice of {refill.filter}")


def pools_of(spec: LoopSpec, machine: Machine) -> tuple[PoolPlan, ...]:
    """The pools in order; if the loop has none, one with all the hardware."""
    groups = weights_groups(spec)
    homes = {
        name: {holding_pool(spec, group), *writing_pools(spec, group)}
        for name, group in groups.items()
    }
    written = {name: pool.gpus or 0 for name, pool in spec.hardware.pools.items()}
    return tuple(
        PoolPlan(
            name=name,
            workers=machine.pool(name).workers,
            gpus=gpus,
            threads_per_worker=machine.pool(name).threads,
            groups=tuple(group for group in groups if name in homes[group] or not written),
        )
        for name, gpus in (written or {DEFAULT_POOL: machine.preset.gpus}).items()
    )
