"""The formulas behind an estimate: for each number the expression, its values and their sources.

The estimate's own code is run once more, on traced inputs (`inputs`), so a formula is what was
computed, and its value equals the number of the estimate. Takes tens of milliseconds, so it is made
on demand.
"""

from collections.abc import Iterator
from pathlib import Path

from coloop.plan.cost.estimator import BySizes, Times, gpu_hours
from coloop.plan.settings.memory import Memory, Part, PoolMemory, peak_of
from coloop.plan.settings.settings import Planned
from coloop.plan.settings.survey import Survey
from coloop.plan.settings.throughput import Clock
from coloop.plan.settings.traced import Step, Traced, Unit, leaf, named
from coloop.plan.terms.formula import Line, added, as_weighted_sum, lines_of
from coloop.plan.terms.inputs import traced_survey
from coloop.plan.terms.sources import OF_ENGINES, PARTS, PEAK, STEP, source_of_stage
from coloop.plan.unrolled import Unrolled
from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record


class Term(Planned):
    """A number of an estimate with its formula."""

    value: float
    unit: Unit
    lines: tuple[Line, ...]
    """The formula of the number itself first; then what it refers to, in the order of reading."""
    source: str | None = None
    """Where the formula is from."""


class PartTerm(Planned):
    """Memory of one part."""

    pool: str
    node: str
    part: Part
    stages: tuple[str, ...]
    bytes: int
    """As in `PartEstimate`: that of a pool with these names and bytes."""
    term: Term


class PeakTerm(Planned):
    """The peak of the first GPU, or process, of a pool."""

    pool: str
    term: Term


class StageTerm(Planned):
    """Seconds of a stage."""

    stage: str
    phase: str | None
    """Null: in the phase with its largest load, as in `StageEstimate`; others are listed if they
    differ."""
    term: Term


class PhaseTerm(Planned):
    """Seconds of a phase's step."""

    phase: str
    term: Term


class Terms(Planned):
    """Formulas of an estimate. Numbers that are not known have none."""

    parts: tuple[PartTerm, ...]
    peaks: tuple[PeakTerm, ...]
    stages: tuple[StageTerm, ...]
    steps: tuple[PhaseTerm, ...]
    total: Term | None
    """Seconds of the whole run."""
    gpu_hours: Term | None
    cost: Term | None


def terms_of(
    spec: LoopSpec, unrolled: Unrolled | None = None, *, root: Path | None = None
) -> Terms:
    """Formulas of `explain(spec, root=root)`."""
    unrolled = unrolled if unrolled is not None else Unrolled(spec)
    resolved = unrolled.settings(root)
    times = Times(spec, resolved.survey, resolved.memory)
    traced = _Traced(times, unrolled, root)
    phases = list(_phases(traced))
    run: float | None = None
    if phases and all(phase.seconds is not None for phase in phases):
        run = added([phase.seconds for phase in phases if phase.seconds is not None])
    gpus = traced.survey.machine.preset.gpus
    hours = None
    if run is not None and gpus:
        hours = gpu_hours(named("the whole run", run, "s"), leaf(gpus, "GPUs", "", "hardware"))
    price = spec.hardware.price_per_gpu_hour
    cost = None
    if hours is not None and price is not None:
        source = "hardware.price_per_gpu_hour"
        spent = named("GPU-hours", hours, "GPU-hours")
        cost = spent * leaf(price, "price of a GPU for an hour", "money", source)
    return Terms(
        parts=tuple(part for pool in traced.memory.pools for part in _parts(pool)),
        peaks=tuple(
            _peak(pool)
            for pool in traced.memory.pools
            if not any(pool.pool.name in traced.survey.pools_of_unknown(u) for u in traced.unknown)
        ),
        stages=(
            *(
                _stage(traced.survey, stage, None, seconds)
                for stage, seconds in traced.seconds.items()
            ),
            *(one for phase in phases for one in phase.stages),
        ),
        steps=tuple(
            PhaseTerm(phase=phase.name, term=_term(phase.step, "s", STEP))
            for phase in phases
            if phase.step is not None
        ),
        total=None if run is None else _term(run, "s", None),
        gpu_hours=None if hours is None else _term(hours, "GPU-hours", None),
        cost=None if cost is None else _term(cost, "money", None),
    )


class _Traced:
    """Memory and times of a loop on traced inputs."""

    def __init__(self, times: Times, unrolled: Unrolled, root: Path | None) -> None:
        self.times, self.unrolled, self.root = times, unrolled, root
        resolved = unrolled.settings(root)
        self.survey = traced_survey(
            times.survey, {decision.path: decision for decision in resolved.decisions}
        )
        self.memory = Memory(self.survey)
        self.clock = Clock(self.survey, self.memory)
        self.unknown = tuple(self.survey.unknown)
        self.seconds = {
            stage: self.clock.time(stage).seconds
            for stage in self.survey.stages
            if stage not in times.missing
        }


@record
class _Phase:
    name: str
    step: float | None
    seconds: float | None
    stages: tuple[StageTerm, ...]
    """Those that differ from the largest."""


def _phases(traced: _Traced) -> Iterator[_Phase]:
    unrolled, root = traced.unrolled, traced.root
    sized = BySizes(unrolled, root, traced.times)
    for phase, load in zip(unrolled.phases, traced.survey.phases, strict=True):
        times = sized.times_in(phase)
        own = traced if times is traced.times else _Traced(times, unrolled, root)
        seconds = dict(own.seconds)
        for stage in phase.step.stages:
            if stage.verb == "learn" and stage.name in seconds:
                seconds[stage.name] = own.clock.time(stage.name, load).seconds
        needed = dict.fromkeys(
            (*(stage.name for stage in phase.step.stages), *times.probes_in(phase))
        )
        other = {
            name: seconds[name]
            for name in needed
            if name in seconds and seconds[name] != traced.seconds.get(name)
        }
        step = whole = None
        if not times.missing.keys() & needed.keys():
            named_seconds = {
                name: leaf(value, name, "s", "a stage of the step")
                for name, value in seconds.items()
            }
            _, counted = times.step_of(phase, named_seconds)
            step = as_weighted_sum(counted)
        if step is not None and phase.steps:
            one = named(f"a step of {phase.name}", step, "s")
            whole = one * leaf(phase.steps, f"steps of {phase.name}", "", "schedule")
        yield _Phase(
            name=phase.name,
            step=step,
            seconds=whole,
            stages=tuple(
                _stage(own.survey, name, phase.name, value) for name, value in other.items()
            ),
        )


def _parts(pool: PoolMemory) -> Iterator[PartTerm]:
    """Of the first GPU, and of the others where they differ."""
    first = _claims(pool, is_first=True)
    for key, claims in first.items():
        yield _part(pool, key, claims)
    for key, claims in _claims(pool, is_first=False).items():
        if len(claims) != len(first[key]):
            yield _part(pool, key, claims)


Key = tuple[str, Part, tuple[str, ...]]


def _claims(pool: PoolMemory, *, is_first: bool) -> dict[Key, list[float]]:
    claims: dict[Key, list[float]] = {}
    for claim in pool.claims:
        if is_first or not claim.first_only:
            claims.setdefault((claim.node, claim.part, claim.stages), []).append(claim.bytes)
    return claims


def _part(pool: PoolMemory, key: Key, claims: list[float]) -> PartTerm:
    node, part, stages = key
    size = added(claims)
    return PartTerm(
        pool=pool.pool.name,
        node=node,
        part=part,
        stages=stages,
        bytes=round(float(size)),
        term=_term(size, "B", _source_of(size) or PARTS[part]),
    )


def _source_of(size: float) -> str | None:
    made = size.made if isinstance(size, Traced) else None
    return OF_ENGINES.get(made.name) if isinstance(made, Step) else None


def _peak(pool: PoolMemory) -> PeakTerm:
    stage, _ = peak_of(pool, is_first=True)
    there = {
        (node, part, stages): added(claims)
        for (node, part, stages), claims in _claims(pool, is_first=True).items()
        if stage in stages
    }
    named_parts = [
        leaf(float(size), f"{part.replace('_', ' ')} of {node}", "B", "a part of the memory")
        for (node, part, _), size in there.items()
    ]
    return PeakTerm(pool=pool.pool.name, term=_term(added(named_parts), "B", PEAK))


def _stage(survey: Survey, stage: str, phase: str | None, seconds: float) -> StageTerm:
    node, verb = stage.rsplit(".", 1)
    models = survey.engines_in(stage) or survey.weights_of(node)
    source = source_of_stage(verb, has_model=bool(models), on_cpu=survey.machine.is_cpu)
    return StageTerm(stage=stage, phase=phase, term=_term(added([seconds]), "s", source))


def _term(number: float, unit: Unit, source: str | None) -> Term:
    return Term(value=float(number), unit=unit, lines=lines_of(number, unit), source=source)
