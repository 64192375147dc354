"""Puts survey, memory and times together into one estimate."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from coloop.plan.cost import bands
from coloop.plan.cost.report import (
    Estimate,
    Explanation,
    GpuEstimate,
    GuessedModel,
    PartEstimate,
    PhaseEstimate,
    RolloutEstimate,
    SpanEstimate,
    StageCorrection,
    StageEstimate,
    UnknownModel,
)
from coloop.plan.cost.timeline import Pace, Run, pace_of
from coloop.plan.overlap import overlap_of
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.facts import origin_of
from coloop.plan.settings.memory import Memory, Part, PoolMemory, peak_of, totals_of
from coloop.plan.settings.processor import Begun
from coloop.plan.settings.survey import PhaseLoad, Survey
from coloop.plan.settings.throughput import Clock
from coloop.plan.unrolled import Unrolled, UnrolledPhase
from coloop.spec.graph import LoopSpec
from coloop.spec.paths import apply_overrides

GIB = 2**30
PLACES_LISTED = 512
"""GPUs listed per pool; the rest are equal."""


def estimate(
    spec: LoopSpec, unrolled: Unrolled | None = None, *, root: Path | None = None
) -> Estimate:
    """What a loop costs; also for drafts, without unknown parts. Without `root`, the folder for
    relative model paths, no file is opened."""
    return explain(spec, unrolled, root=root).estimate


def explain(
    spec: LoopSpec, unrolled: Unrolled | None = None, *, root: Path | None = None
) -> Explanation:
    """The estimate and everything that it is based on."""
    unrolled = unrolled if unrolled is not None else Unrolled(spec)
    resolved = unrolled.settings(root)
    survey, memory = resolved.survey, resolved.memory
    times = Times(spec, survey, memory)
    sized = BySizes(unrolled, root, times)
    phases: list[PhaseEstimate] = []
    stages_in: dict[str, tuple[StageEstimate, ...]] = {}
    main, step_of_parts, most = None, 0.0, (False, -1.0)
    for phase, load in zip(unrolled.phases, survey.phases, strict=True):
        inside = sized.times_in(phase)
        estimated_phase, step = inside.of_phase(phase, load)
        phases.append(estimated_phase)
        stages_in[phase.name] = tuple(inside.stages_in(estimated_phase, load))
        weight = estimated_phase.step_seconds is None, step * unrolled.expected_steps(phase, root)
        if weight > most:
            main, step_of_parts, most = estimated_phase, step, weight
    known = [phase.seconds for phase in phases if phase.seconds is not None]
    total = sum(known) if len(known) == len(phases) and known else None
    hours = gpu_hours(total, survey.machine.preset.gpus)
    price = spec.hardware.price_per_gpu_hour
    estimated = _estimate(spec, times, main)
    return Explanation(
        estimate=estimated,
        phases=tuple(phases),
        main=main.name if main else None,
        total_seconds=total,
        gpu_hours=hours,
        cost=None if hours is None or price is None else hours * price,
        decisions=tuple(resolved.decisions),
        notes=tuple(dict.fromkeys(survey.notes)),
        memory_band=bands.MEMORY,
        time_band=bands.time_band(survey),
        host_bytes=round(memory.host_bytes),
        advice=tuple(
            dict.fromkeys((*_to_fit(estimated), *_to_be_faster(survey, memory, estimated)))
        ),
        corrections=tuple(
            StageCorrection(
                stage=stage,
                factor=time.correction.factor,
                runs=time.correction.runs,
                is_same=time.correction.is_exact,
            )
            for stage, time in times.of_stages.items()
            if time.correction.runs
        ),
        stages_in=stages_in,
        step_of_parts=step_of_parts,
        stage_of_parts={stage: time.seconds for stage, time in times.of_stages.items()},
        caches_of_parts={
            node: serving.tokens
            for engine in survey.engines
            if (serving := memory.servings.get(engine.writers[0])) is not None
            for node in engine.writers
        },
    )


def gpu_hours(seconds: float | None, gpus: int) -> float | None:
    """GPU-hours of a run: all GPUs are occupied until it ends."""
    return None if seconds is None or not gpus else seconds * gpus / 3600


class Times:
    """Times of a loop's stages and phases."""

    def __init__(self, spec: LoopSpec, survey: Survey, memory: Memory) -> None:
        self.spec, self.survey, self.memory = spec, survey, memory
        self._clock = Clock(survey, memory)
        self.of_stages = {stage: self._clock.time(stage) for stage in survey.stages}
        """Each with its largest load over all phases."""
        self.missing = dict(_missing_times(survey, memory))
        """Reasons for stages without a time."""
        self._pools = {
            stage: pool.name
            for stage in survey.stages
            if (pool := survey.pool_of(stage)) is not None
        }
        self._overlap = overlap_of(spec, survey.owners, survey.updates)

    def stage(self, name: str, load: PhaseLoad | None = None) -> StageEstimate:
        """Time of a stage in one phase, or in the phase with the largest load."""
        learns = load is not None and name.endswith(".learn")
        time = self._clock.time(name, load) if learns else self.of_stages[name]
        is_known = name not in self.missing
        return StageEstimate(
            stage=name,
            node=name.rsplit(".", 1)[0],
            seconds=time.seconds if is_known else None,
            samples_per_second=time.samples / time.seconds if is_known else None,
            tokens_per_second=time.tokens / time.seconds if is_known else None,
            bound=time.bound,
            reason=self.missing.get(name),
        )

    def stages_in(self, phase: PhaseEstimate, load: PhaseLoad) -> Iterator[StageEstimate]:
        probes = (stage for stage in self.of_stages if stage.endswith(".evaluate"))
        for name in dict.fromkeys((*phase.stages, *probes)):
            yield self.stage(name, load)

    def of_phase(self, phase: UnrolledPhase, load: PhaseLoad) -> tuple[PhaseEstimate, float]:
        """A phase, and the seconds of its step from the known stages alone."""
        stages = phase.step.stages
        seconds = {stage: time.seconds for stage, time in self.of_stages.items()}
        for stage in stages:
            if stage.verb == "learn":
                seconds[stage.name] = self._clock.time(stage.name, load).seconds
        pace, counted = self.step_of(phase, seconds)
        needed = {*self.probes_in(phase), *(stage.name for stage in stages)}
        is_known = not self.missing.keys() & needed
        step = counted if is_known else None
        return PhaseEstimate(
            name=phase.name,
            steps=phase.steps,
            step_seconds=step,
            seconds=step * phase.steps if step is not None and phase.steps else None,
            stages=tuple(stage.name for stage in stages),
            spans=tuple(map(_span, pace.runs)) if is_known else (),
        ), counted

    def step_of(self, phase: UnrolledPhase, seconds: Mapping[str, float]) -> tuple[Pace, float]:
        """The pace of a phase whose stages take these seconds, and its step with evaluations spread
        over the steps."""
        pace = pace_of(phase.step.stages, seconds, self._pools, self._overlap)
        probes = (seconds[probe] / every for probe, every in self.probes_in(phase).items())
        return pace, pace.seconds + sum(probes)

    def probes_in(self, phase: UnrolledPhase) -> dict[str, int]:
        """Evaluations, with the steps between two of them."""
        return {
            f"{name}.evaluate": phase.flat.overrides.get(f"nodes.{name}.every", node.every)
            for name, node in self.spec.nodes.items()
            if node.kind == "evaluate"
        }


def _span(run: Run) -> SpanEstimate:
    return SpanEstimate(stage=run.stage, pool=run.pool or "", start=run.start, end=run.end)


SIZES = frozenset(
    {
        "completions_per_prompt",
        "epochs",
        "expected_tokens",
        "max_new_tokens",
        "mini_batch",
        "rows_per_step",
        "samples",
    }
)
"""Fields that change the work of a step, where a phase sets them."""


class BySizes:
    """Stage times for phases that set sizes of their own."""

    def __init__(self, unrolled: Unrolled, root: Path | None, times: Times) -> None:
        self._unrolled, self._root = unrolled, root
        self._times: dict[tuple[tuple[str, Any], ...], Times] = {(): times}

    def times_in(self, phase: UnrolledPhase) -> Times:
        sizes = tuple(
            (path, value)
            for path, value in sorted(phase.flat.overrides.items())
            if path.startswith("nodes.") and path.rpartition(".")[2] in SIZES
        )
        if sizes not in self._times:
            spec = apply_overrides(self._unrolled.spec, dict(sizes))
            survey = self._times[()].survey
            begun = Begun(
                dtypes=tuple((name, types.compute) for name, types in survey.dtypes.items()),
                workers=next(iter(survey.machine.pools.values())).workers,
            )
            conditions = replace(survey.conditions, begun=begun)
            resolved = self._unrolled.resized(spec).settings(self._root, conditions)
            self._times[sizes] = Times(spec, resolved.survey, resolved.memory)
        return self._times[sizes]


def _estimate(spec: LoopSpec, times: Times, main: PhaseEstimate | None) -> Estimate:
    survey, memory = times.survey, times.memory
    return Estimate(
        step_seconds=main.step_seconds if main else 0.0,
        bottleneck=max(
            main.stages if main and main.step_seconds is not None else (),
            key=lambda stage: times.of_stages[stage].seconds,
            default="",
        ),
        parameters={name: weights.total for name, weights in survey.weights.items()},
        gpus=tuple(gpu for pool in memory.pools for gpu in _gpus(survey, memory, pool)),
        stages=tuple(times.stage(name) for name in times.of_stages),
        rollout={
            node: RolloutEstimate(
                kv_cache_bytes=round(serving.kv_cache),
                kv_cache_tokens=serving.tokens,
                max_concurrent_sequences=serving.sequences,
            )
            for engine in survey.engines
            if (serving := memory.servings.get(engine.writers[0])) is not None
            and not _is_starved(memory, engine)
            for node in engine.writers
        },
        unknown=tuple(_unknown(spec, survey)),
        guessed=tuple(
            GuessedModel(node=note.node or "", field=note.field or "", reason=note.message)
            for note in survey.notes
            if note.is_guess
        ),
    )


def _unknown(spec: LoopSpec, survey: Survey) -> Iterator[UnknownModel]:
    """Each unknown model, at the node that names it."""
    by_origin: dict[str, list[str]] = {}
    for group in survey.unknown:
        by_origin.setdefault(origin_of(spec, group) or group, []).append(group)
    for origin, groups in by_origin.items():
        note = survey.unknown[groups[0]]
        nodes = [node for node, owner in survey.owners.items() if owner in groups]
        yield UnknownModel(
            node=origin,
            field=note.field or "model",
            found=note.found or "",
            reason=note.message,
            suggestions=note.near,
            nodes=tuple(dict.fromkeys((origin, *nodes))),
        )


def _gpus(survey: Survey, memory: Memory, held: PoolMemory) -> Iterator[GpuEstimate]:
    pool = held.pool
    usable = survey.machine.usable_bytes(pool)
    engines = (engine for engine in survey.engines if engine.pool.name == pool.name)
    starved = next((engine for engine in engines if _is_starved(memory, engine)), None)
    unknown = [name for name in survey.unknown if pool.name in survey.pools_of_unknown(name)]

    def values(*, is_first: bool) -> dict[str, Any]:
        stage, peak = peak_of(held, is_first=is_first)
        parts = tuple(_parts(held, is_first))
        facts: dict[str, Any] = {
            "pool": pool.name,
            "capacity_bytes": survey.machine.capacity_bytes(pool),
            "usable_bytes": usable,
            "peak_bytes": sum(part.bytes for part in parts if stage in part.stages),
            "peak_stage": stage,
            "fits": peak <= usable and starved is None,
            "reason": _starved_words(memory, starved) if starved else None,
            "parts": parts,
        }
        if unknown:
            models = " and ".join(f"`{name}`" for name in unknown)
            facts |= {"peak_bytes": None, "peak_stage": "", "fits": None}
            facts["reason"] = f"the model of {models} is not known"
        return facts

    first = values(is_first=True)
    others = values(is_first=False) if any(claim.first_only for claim in held.claims) else first
    for index in range(min(pool.places, PLACES_LISTED)):
        yield GpuEstimate(index=index, **(others if index else first))


def _parts(memory: PoolMemory, is_first: bool) -> Iterator[PartEstimate]:
    """Claims with equal node, part and stages merged into one, in order."""
    sums: dict[tuple[str, Part, tuple[str, ...]], float] = {}
    for claim in memory.claims:
        if is_first or not claim.first_only:
            key = (claim.node, claim.part, claim.stages)
            sums[key] = sums.get(key, 0.0) + claim.bytes
    for (node, part, stages), size in sums.items():
        yield PartEstimate(node=node, part=part, bytes=round(size), stages=stages)


# The cheapest ways to make a loop fit or to relieve its bottleneck, in words.


def _to_fit(estimate: Estimate) -> Iterator[str]:
    for gpu in estimate.gpus:
        if gpu.fits is not False or gpu.peak_bytes is None:
            continue
        over = (gpu.peak_bytes - gpu.usable_bytes) / GIB
        largest = _largest_part(gpu)
        if over <= 0:
            yield f"pool {gpu.pool}: {gpu.reason}"
        elif largest is not None:
            yield (
                f"pool {gpu.pool}: {gpu.peak_stage} needs {over:.1f} GiB too much; most of it is "
                f"{largest}"
            )


def _largest_part(gpu: GpuEstimate) -> str | None:
    there = [part for part in gpu.parts if gpu.peak_stage in part.stages]
    if not there:
        return None
    part = max(there, key=lambda p: p.bytes)
    return f"{part.part.replace('_', ' ')} of {part.node} ({part.bytes / GIB:.1f} GiB)"


def _to_be_faster(survey: Survey, memory: Memory, estimate: Estimate) -> Iterator[str]:
    if not estimate.bottleneck:
        return
    node, verb = estimate.bottleneck.rsplit(".", 1)
    stage = next(s for s in estimate.stages if s.stage == estimate.bottleneck)
    name = estimate.bottleneck
    if verb == "generate":
        engine = survey.engine_of(node)
        if stage.bound == "latency":
            yield (
                f"{name} waits for its longest completions: lower `max_new_tokens`, or use more "
                "rows a step"
            )
        elif engine is not None and engine.rows > engine.max_sequences * engine.copies:
            yield f"{name} generates in several waves: raise `rollout.max_num_seqs`"
        elif stage.bound == "bandwidth":
            yield f"{name} is bound by memory bandwidth: more rows at once cost little"
    if verb == "learn" and (update := memory.updates.get(node)) is not None:
        if stage.bound == "network":
            yield f"{name} waits for weights to be transferred: raise `training.micro_batch`"
        elif update.settings.gradient_checkpointing and not survey.machine.is_cpu:
            yield (
                f"{name} computes activations twice: it is faster without "
                "`gradient_checkpointing`, if that fits"
            )
        elif update.work.passes > 1:
            passes = f"{update.work.passes:g} times"
            yield f"{name} passes over its rows {passes}: use fewer `training.epochs`"
    if stage.bound == "service":
        yield f"{name} waits for a service: raise its concurrency"


# Stages without a time and pools without a peak: a model is unknown, or the stage does not fit.


def _missing_times(survey: Survey, memory: Memory) -> Iterator[tuple[str, str]]:
    """Stages without a time, with the reason."""
    over: dict[str, str] = {}
    for pool in memory.pools:
        usable = survey.machine.usable_bytes(pool.pool)
        for stage, size in totals_of(pool.claims, pool.stages, is_first=True).items():
            if size > usable:
                over[stage] = (
                    f"it does not fit: {size / GIB:.1f} of {usable / GIB:.1f} GiB of "
                    f"`{pool.pool.name}`"
                )
    for stage in survey.stages:
        group = survey.unknown_group(stage)
        if group is not None:
            yield stage, f"the model of `{group}` is not known"
        elif stage in over:
            yield stage, over[stage]
        else:
            for engine in survey.engines_in(stage):
                if _is_starved(memory, engine):
                    yield stage, _starved_words(memory, engine)
                    break


def _is_starved(memory: Memory, engine: Engine) -> bool:
    """Whether an engine's cache cannot hold one full-length text, so vLLM does not start."""
    serving = memory.servings.get(engine.writers[0])
    return serving is not None and serving.tokens < engine.length


def _starved_words(memory: Memory, engine: Engine) -> str:
    serving = memory.servings[engine.writers[0]]
    return (
        f"the engine of `{engine.writers[0]}` has a cache of {serving.tokens:,} tokens, and a text "
        f"may have {engine.length:,}"
    )
