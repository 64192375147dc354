"""Puts survey, memory and times together into one estimate."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coloop.plan.cost.advice import advise
from coloop.plan.cost.missing import missing_times, starved_engines, starved_words, unknown_in
from coloop.plan.cost.report import (
    DecisionEstimate,
    Estimate,
    Explanation,
    GpuEstimate,
    GuessedModel,
    NoteEstimate,
    PartEstimate,
    PhaseEstimate,
    RolloutEstimate,
    SpanEstimate,
    StageEstimate,
    UnknownModel,
)
from coloop.plan.settings.facts import origin_of
from coloop.plan.settings.memory import Part, PoolMemory, peak_of
from coloop.plan.settings.survey import PhaseLoad
from coloop.plan.settings.throughput import Clock, StageTime
from coloop.plan.types import Stage
from coloop.plan.unrolled import Unrolled, UnrolledPhase
from coloop.spec.graph import LoopSpec

# From stage times to a step: who waits for whom.
#
# Stages of one pool take turns, stages of different pools and of the driver run side by side as
# soon as what they wait for is done. With staleness a step takes as long as its busiest pool.
# Knows times and orders only.

DRIVER = ""


def spans_of(
    stages: Iterable[Stage],
    seconds: Mapping[str, float],
    pools: Mapping[str, str],
    *,
    is_asynchronous: bool = False,
) -> tuple[SpanEstimate, ...]:
    """When the stages of one step run, which come in an order in which they can run; `pools` maps
    their names to pools, the driver's are left out. Where steps overlap, no stage waits for those
    of the same step."""
    spans: list[SpanEstimate] = []
    ends: dict[str, float] = {}
    free: dict[str, float] = {}
    for stage in stages:
        pool = pools.get(stage.name, DRIVER)
        ready = max((ends.get(before, 0.0) for before in stage.after), default=0.0)
        if is_asynchronous:
            start = free.get(pool, 0.0)
        else:
            start = ready if pool == DRIVER else max(ready, free.get(pool, 0.0))
        ends[stage.name] = free[pool] = start + seconds[stage.name]
        spans.append(SpanEstimate(stage=stage.name, pool=pool, start=start, end=ends[stage.name]))
    return tuple(spans)


PLACES_LISTED = 512
"""GPUs of a pool that are listed one by one; all are alike."""
MEMORY_BAND = (0.85, 1.3)
TIME_BAND_GPU = (0.7, 1.4)
TIME_BAND_CPU = (0.4, 2.5)


def estimate(
    spec: LoopSpec, unrolled: Unrolled | None = None, *, root: Path | None = None
) -> Estimate:
    """What a loop costs. Works on half-drawn loops: what is not known is left out.

    Args:
        unrolled: the loop's steps, where the caller has them already; else they are made here.
        root: folder for relative model paths; without it no file is opened.
    """
    return _Estimator(spec, unrolled, root).estimate


def explain(
    spec: LoopSpec, unrolled: Unrolled | None = None, *, root: Path | None = None
) -> Explanation:
    """The estimate with everything that it rests on."""
    return _Estimator(spec, unrolled, root).explanation()


class _Estimator:
    def __init__(self, spec: LoopSpec, unrolled: Unrolled | None, root: Path | None) -> None:
        self.spec = spec
        self.unrolled = unrolled if unrolled is not None else Unrolled(spec)
        self.resolved = self.unrolled.settings(root)
        self.survey, self.memory = self.resolved.survey, self.resolved.memory
        self.clock = Clock(self.survey, self.memory)
        self.times = {stage: self.clock.time(stage) for stage in self.survey.stages}
        self.missing = dict(missing_times(self.survey, self.memory))
        """By stage without a time, why."""
        steps = [self.unrolled.expected_steps(phase, root) for phase in self.unrolled.phases]
        self.phases: tuple[PhaseEstimate, ...] = ()
        self.main: PhaseEstimate | None = None
        self.step_of_parts, most = 0.0, (False, -1.0)
        loads = self.survey.phases
        for phase, load, many in zip(self.unrolled.phases, loads, steps, strict=True):
            found, step = self._phase(phase, load)
            self.phases += (found,)
            weight = found.step_seconds is None, step * many
            if weight > most:
                self.main, self.step_of_parts, most = found, step, weight
        self.estimate = self._estimate()

    def _phase(self, phase: UnrolledPhase, load: PhaseLoad) -> tuple[PhaseEstimate, float]:
        """A phase, and the seconds of its step as if all of it could run."""
        pools = {
            stage: pool.name
            for stage in self.survey.stages
            if (pool := self.survey.pool_of(stage)) is not None
        }
        seconds = {stage: time.seconds for stage, time in self.times.items()}
        probes = {
            f"{name}.evaluate": node.every
            for name, node in self.spec.nodes.items()
            if node.kind == "evaluate"
        }
        stages = phase.step.stages
        learned = [stage.name for stage in stages if stage.verb == "learn"]
        seconds |= {stage: self.clock.time(stage, load).seconds for stage in learned}
        spans = self._spans(stages, seconds, pools)
        counted = sum(seconds[probe] / every for probe, every in probes.items())
        counted += max((span.end for span in spans), default=0.0)
        is_known = not self.missing.keys() & {*probes, *(stage.name for stage in stages)}
        step = counted if is_known else None
        found = PhaseEstimate(
            name=phase.name,
            steps=phase.steps,
            step_seconds=step,
            seconds=step * phase.steps if step is not None and phase.steps else None,
            stages=tuple(stage.name for stage in stages),
            spans=spans if is_known else (),
        )
        return found, counted

    def _spans(
        self, stages: Sequence[Stage], seconds: Mapping[str, float], pools: Mapping[str, str]
    ) -> tuple[SpanEstimate, ...]:
        """When the stages of a step run. Where only a share of the rows is written ahead, the
        others are written in turn with what waits for them; what takes longer counts."""
        ahead = min(self.spec.schedule.max_staleness, 1.0)
        late = {stage.name for stage in stages if stage.verb == "generate"}
        rest = {name: s * (1.0 - ahead * (name in late)) for name, s in seconds.items()}
        in_turn = spans_of(stages, rest, pools) if ahead < 1.0 else ()
        side_by_side = spans_of(stages, seconds, pools, is_asynchronous=True) if ahead else ()
        return max(in_turn, side_by_side, key=lambda s: max((one.end for one in s), default=0.0))

    def _estimate(self) -> Estimate:
        return Estimate(
            step_seconds=self.main.step_seconds if self.main else 0.0,
            bottleneck=max(
                self.main.stages if self.main and self.main.step_seconds is not None else (),
                key=lambda stage: self.times[stage].seconds,
                default="",
            ),
            parameters={name: weights.total for name, weights in self.survey.weights.items()},
            gpus=tuple(gpu for pool in self.memory.pools for gpu in self._gpus(pool)),
            stages=tuple(
                _stage(name, time, self.missing.get(name)) for name, time in self.times.items()
            ),
            rollout=self._rollout(),
            unknown=tuple(self._unknown()),
            guessed=tuple(
                GuessedModel(node=note.node or "", field=note.field or "", reason=note.message)
                for note in self.survey.notes
                if note.is_guess
            ),
        ).with_parts(
            self.step_of_parts, {stage: time.seconds for stage, time in self.times.items()}
        )

    def _unknown(self) -> Iterator[UnknownModel]:
        """One for each model, at the node that names it."""
        found: dict[str, list[str]] = {}
        for group in self.survey.unknown:
            found.setdefault(origin_of(self.spec, group) or group, []).append(group)
        for origin, groups in found.items():
            note = self.survey.unknown[groups[0]]
            nodes = [node for node, owner in self.survey.owners.items() if owner in groups]
            yield UnknownModel(
                node=origin,
                field=note.field or "model",
                found=note.found or "",
                reason=note.message,
                suggestions=note.near,
                nodes=tuple(dict.fromkeys((origin, *nodes))),
            )

    def _gpus(self, memory: PoolMemory) -> Iterator[GpuEstimate]:
        pool, machine = memory.pool, self.survey.machine
        usable = machine.usable_bytes(pool)
        starved = list(starved_engines(self.survey, self.memory, pool.name))
        unknown = unknown_in(self.survey, pool.name)
        is_even = not any(claim.first_only for claim in memory.claims)
        values: dict[bool, dict[str, Any]] = {}
        for index in range(min(pool.places, PLACES_LISTED)):
            is_first = index == 0 or is_even
            if is_first not in values:
                stage, peak = peak_of(memory, is_first=is_first)
                parts = tuple(_parts(memory, is_first))
                values[is_first] = {
                    "pool": pool.name,
                    "capacity_bytes": machine.capacity_bytes(pool),
                    "usable_bytes": usable,
                    "peak_bytes": sum(p.bytes for p in parts if stage in p.stages),
                    "peak_stage": stage,
                    "fits": peak <= usable and not starved,
                    "reason": starved_words(self.memory, starved[0]) if starved else None,
                    "parts": parts,
                }
                if unknown:
                    reason = (
                        f"the model of {' and '.join(f'`{one}`' for one in unknown)} is not known"
                    )
                    values[is_first] |= {
                        "peak_bytes": None,
                        "peak_stage": "",
                        "fits": None,
                        "reason": reason,
                    }
            yield GpuEstimate(index=index, **values[is_first])

    def _rollout(self) -> dict[str, RolloutEstimate]:
        found = {}
        for engine in self.survey.engines:
            serving = self.memory.servings.get(engine.writers[0])
            if serving is not None:
                for node in engine.writers:
                    found[node] = RolloutEstimate(
                        kv_cache_bytes=round(serving.kv_cache),
                        kv_cache_tokens=serving.tokens,
                        max_concurrent_sequences=serving.sequences,
                    )
        return found

    def explanation(self) -> Explanation:
        survey = self.survey
        notes = dict.fromkeys(survey.notes)
        seconds = [phase.seconds for phase in self.phases]
        known = [value for value in seconds if value is not None]
        return Explanation(
            estimate=self.estimate,
            phases=self.phases,
            main=self.main.name if self.main else None,
            total_seconds=sum(known) if len(known) == len(seconds) and known else None,
            decisions=tuple(
                DecisionEstimate(path=d.path, value=d.value, reason=d.reason)
                for d in self.resolved.decisions
            ),
            notes=tuple(
                NoteEstimate(message=n.message, node=n.node, field=n.field, is_gap=n.is_gap)
                for n in notes
            ),
            memory_band=MEMORY_BAND,
            time_band=TIME_BAND_CPU if survey.machine.is_cpu else TIME_BAND_GPU,
            host_bytes=round(self.memory.host_bytes),
            advice=advise(survey, self.memory, self.estimate),
        ).with_stages(
            {
                phase.name: tuple(self._stages_in(phase, load))
                for phase, load in zip(self.phases, survey.phases, strict=True)
            }
        )

    def _stages_in(self, phase: PhaseEstimate, load: PhaseLoad) -> Iterator[StageEstimate]:
        probes = (stage for stage in self.times if stage.endswith(".evaluate"))
        for stage in dict.fromkeys((*phase.stages, *probes)):
            learns = stage.endswith(".learn")
            time = self.clock.time(stage, load) if learns else self.times[stage]
            yield _stage(stage, time, self.missing.get(stage))


def _parts(memory: PoolMemory, is_first: bool) -> Iterator[PartEstimate]:
    """Claims of one node, part and set of stages as one entry, in the order they were made."""
    sums: dict[tuple[str, Part, tuple[str, ...]], float] = {}
    for claim in memory.claims:
        if is_first or not claim.first_only:
            key = (claim.node, claim.part, claim.stages)
            sums[key] = sums.get(key, 0.0) + claim.bytes
    for (node, part, stages), size in sums.items():
        yield PartEstimate(node=node, part=part, bytes=round(size), stages=stages)


def _stage(name: str, time: StageTime, missing: str | None) -> StageEstimate:
    is_known = missing is None
    return StageEstimate(
        stage=name,
        node=name.rsplit(".", 1)[0],
        seconds=time.seconds if is_known else None,
        samples_per_second=time.samples / time.seconds if is_known else None,
        tokens_per_second=time.tokens / time.seconds if is_known else None,
        bound=time.bound,
        reason=missing,
    )
