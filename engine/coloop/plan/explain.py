"""The plan in words, for users."""

from collections.abc import Iterable, Iterator

from coloop.plan.types import (
    Learner,
    PhasePlan,
    Plan,
    ProbePlan,
    Rounds,
    Stage,
    StageRows,
    Update,
    WeightsPlan,
)
from coloop.spec.dtypes import Dtypes


def explain(plan: Plan) -> tuple[str, ...]:
    return tuple(_lines(plan))


def stage_line(stages: Iterable[Stage], rows: Iterable[StageRows] = ()) -> str:
    """Stages of a step in order, with their rows if known."""
    counts = {
        counted.stage: f"({counted.rows.text}{' a pass' if counted.passes > 1 else ''})"
        for counted in rows
    }
    return " → ".join(f"{stage.name} {counts.get(stage.name, '')}".rstrip() for stage in stages)


def update_line(update: Update) -> str:
    """Who trains in an update: jointly, or one after another."""
    learners = [_learner(learner) for learner in update.learners]
    if update.is_joint:
        return f"{update.stage}: one joint update of {' and '.join(learners)}"
    return f"{update.stage}: {', then '.join(learners)}"


def probe_line(probe: ProbePlan) -> str:
    """What an evaluation loads, who generates and how, and which stages run."""
    often = "every step" if probe.every == 1 else f"every {probe.every} steps"
    parts = [f"probe {probe.node}, {often}"]
    loads = [stage for stage in probe.sources if stage.verb in ("load", "read")]
    if loads:
        replaced = f" instead of {probe.instead_of}" if probe.instead_of else ""
        counts = {stage.stage: stage.rows.text for stage in probe.rows}
        rows = " and ".join(
            f"{counts.get(stage.name, '?')} rows of {stage.node}" for stage in loads
        )
        parts.append(f"loads {rows}{replaced}")
    elif not probe.stages and not probe.of:
        parts.append("reads the step's own tables")
    if probe.writers:
        parts.append(f"{', '.join(probe.writers)} {_writing(probe)}")
    if probe.of:
        parts.append(f"measures {', '.join(probe.of)}")
    return "; ".join(parts)


def _writing(probe: ProbePlan) -> str:
    generate = "generates" if len(probe.writers) == 1 else "generate"
    several = f"{probe.samples} texts a row" if probe.samples else None
    if probe.greedy:
        besides = f", and {several} for metrics at k" if several else ""
        return f"{generate} greedily{besides}"
    return f"{generate} {several or 'as in a step'}"


def _learner(learner: Learner) -> str:
    facts = [", ".join(learner.ports), f"{learner.rows.text} rows"]
    if learner.every > 1:
        facts.append(f"every {learner.every} steps")
    if learner.after:
        facts.append(f"after {learner.after} steps")
    if learner.updates > 1:
        facts.append(f"{learner.updates} updates")
    if learner.when == "before_score":
        facts.append("before it scores")
    if learner.kept_until is not None:
        facts.append(f"once {learner.kept_until} rows are stored")
    return f"{learner.node} ({'; '.join(facts)})"


def _lines(plan: Plan) -> Iterator[str]:
    for pool in plan.pools:
        processes = "process" if pool.workers == 1 else "processes"
        where = f"{pool.gpus} GPUs" if pool.gpus else f"{pool.workers} {processes} on the CPU"
        threads = pool.threads_per_worker
        where += f", {threads} {'thread' if threads == 1 else 'threads'} each"
        yield f"pool {pool.name}: {where}; weights of {', '.join(pool.groups) or 'no model'}"
    for weights in plan.weights:
        state = "trains" if weights.trains else "frozen"
        roles = f", shared by {', '.join(weights.members)}" if len(weights.members) > 1 else ""
        yield f"weights {weights.name}: {weights.source}, {state}{roles}{_writing_homes(weights)}"
        yield f"  {_types(weights.dtypes)}: {weights.dtypes.reason}"
        if weights.backend is not None and not weights.trains:
            yield f"  sharded over the GPUs of its pool (`{weights.backend}`)"
        if weights.update is not None and weights.update.tensor_parallel > 1:
            several = f"{weights.update.tensor_parallel} processes"
            yield f"  {several} split each layer while they learn; engines have whole copies"
        if weights.base is not None:
            yield f"  an adapter; {_base(weights)}"
    for phase in plan.phases:
        yield from _phase_lines(phase)
    for probe in plan.probes:
        yield probe_line(probe)
        stages = (*probe.sources, *probe.stages, *probe.of_stages)
        if stages:
            yield f"  {stage_line(stages, probe.rows)}"
    for decision in plan.decisions:
        yield f"{decision.path} = {decision.value}: {decision.reason}"


def _base(weights: WeightsPlan) -> str:
    if weights.beside is not None:
        return f"the frozen weights are those of {weights.beside}, stored once"
    whose = "its" if weights.base == weights.name else f"{weights.base}'s"
    return f"{whose} frozen weights are stored here"


def _writing_homes(weights: WeightsPlan) -> str:
    """Engines that generate with the weights, and their pools if they differ."""
    engines = [
        engine.engine if engine.pool == weights.pool else f"{engine.engine} in pool {engine.pool}"
        for engine in weights.engines
    ]
    return f", generates with {' and '.join(engines)}" if engines else ""


def _region(region: Rounds) -> str:
    """Stages of a region, the number of rounds, and how conversations continue."""
    nodes = ", ".join(dict.fromkeys(name.partition(".")[0] for name in region.stages))
    on = {
        "one": "each row continues one conversation",
        "all": "every text is continued, as a tree",
        "lines": "every text is continued once",
    }
    return f"{nodes} run {region.rounds} rounds; {on[region.branch]}"


def _types(dtypes: Dtypes) -> str:
    if not dtypes.casts:
        return f"in {dtypes.compute}"
    held: str = dtypes.rest
    if dtypes.matrices != dtypes.rest:
        held = f"{dtypes.matrices}, embeddings and norms in {dtypes.rest}"
    return f"computed in {dtypes.compute}, stored in {held}"


def _phase_lines(phase: PhasePlan) -> Iterator[str]:
    times = f", {phase.rounds} times" if phase.rounds > 1 else ""
    learn = f"; learns {', '.join(phase.learn)}" if phase.learn else ""
    fill = f"; fills {', '.join(phase.fill)}" if phase.fill else ""
    yield f"phase {phase.name}: {phase.ends}{times}{learn}{fill}"
    yield f"  {stage_line(phase.stages, phase.rows)}"
    for update in phase.updates:
        yield f"  {update_line(update)}"
    for refill in phase.refills:
        start = " and ".join(refill.sources)
        yield f"  {refill.filter} refills from {start}, at most {refill.max_rounds} rounds"
    for region in phase.regions:
        yield f"  {_region(region)}"
