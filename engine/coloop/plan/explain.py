"""The plan in words: what a person reads to know what will happen and why."""

from collections.abc import Iterator

from coloop.plan.types import PhasePlan, Plan, Stage


def explain(plan: Plan) -> tuple[str, ...]:
    """Lines of text."""
    return tuple(_lines(plan))


def stage_line(stages: tuple[Stage, ...]) -> str:
    """Stages of a step in their order."""
    return " → ".join(stage.name for stage in stages)


def _lines(plan: Plan) -> Iterator[str]:
    for pool in plan.pools:
        where = f"{pool.gpus} GPUs" if pool.gpus else f"{pool.workers} process on the CPU"
        yield f"pool {pool.name}: {where}; weights of {', '.join(pool.groups) or 'nobody'}"
    for weights in plan.weights:
        state = "trains" if weights.trains else "frozen"
        roles = f", shared by {', '.join(weights.members)}" if len(weights.members) > 1 else ""
        engine = f", writes with {weights.engine}" if weights.engine else ""
        yield f"weights {weights.name}: {weights.source}, {state}{roles}{engine}"
    for phase in plan.phases:
        yield from _phase_lines(phase)
    for probe in plan.probes:
        slice_ = f": {stage_line(probe.stages)}" if probe.stages else ""
        yield f"probe {probe.node}, every {probe.every} steps{slice_}"
    for decision in plan.decisions:
        yield f"{decision.path} = {decision.value}: {decision.reason}"


def _phase_lines(phase: PhasePlan) -> Iterator[str]:
    times = f", {phase.rounds} times" if phase.rounds > 1 else ""
    learn = f"; learns {', '.join(phase.learn)}" if phase.learn else ""
    fill = f"; fills {', '.join(phase.fill)}" if phase.fill else ""
    yield f"phase {phase.name}: {phase.ends}{times}{learn}{fill}"
    yield f"  {stage_line(phase.stages)}"
    for refill in phase.refills:
        yield f"  {refill.filter} refills from {refill.source}, at most {refill.max_rounds} rounds"
