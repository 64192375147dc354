"""Puts survey, memory and times together into one estimate."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coloop.estimate.advice import advise
from coloop.estimate.report import (
    DecisionEstimate,
    Estimate,
    Explanation,
    GpuEstimate,
    NoteEstimate,
    PartEstimate,
    PhaseEstimate,
    RolloutEstimate,
    SpanEstimate,
    StageEstimate,
)
from coloop.estimate.timeline import Span, spans_of
from coloop.plan.types import Stage
from coloop.plan.unrolled import Unrolled
from coloop.sizing.memory import Part, PoolMemory, peak_of
from coloop.sizing.throughput import Clock, StageTime
from coloop.spec.graph import LoopSpec

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
        clock = Clock(self.survey, self.memory)
        self.times = {stage: clock.time(stage) for stage in self.survey.stages}
        self.phases = tuple(self._phases())
        steps = [self.unrolled.expected_steps(phase, root) for phase in self.unrolled.phases]
        seconds = [one.step_seconds * many for one, many in zip(self.phases, steps, strict=True)]
        self.main = self.phases[seconds.index(max(seconds))] if seconds else None
        self.estimate = self._estimate()

    def _phases(self) -> Iterator[PhaseEstimate]:
        pools = {
            stage: pool.name
            for stage in self.survey.stages
            if (pool := self.survey.pool_of(stage)) is not None
        }
        seconds = {stage: time.seconds for stage, time in self.times.items()}
        probes = sum(
            self.times[f"{name}.evaluate"].seconds / node.every
            for name, node in self.spec.nodes.items()
            if node.kind == "evaluate"
        )
        for phase in self.unrolled.phases:
            stages = phase.step.stages
            spans = self._spans(stages, seconds, pools)
            step = probes + max((span.end for span in spans), default=0.0)
            yield PhaseEstimate(
                name=phase.name,
                steps=phase.steps,
                step_seconds=step,
                seconds=step * phase.steps if phase.steps else None,
                stages=tuple(stage.name for stage in stages),
                spans=tuple(
                    SpanEstimate(stage=one.stage, pool=one.pool, start=one.start, end=one.end)
                    for one in spans
                ),
            )

    def _spans(
        self, stages: Sequence[Stage], seconds: Mapping[str, float], pools: Mapping[str, str]
    ) -> tuple[Span, ...]:
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
                self.main.stages if self.main else (),
                key=lambda stage: self.times[stage].seconds,
                default="",
            ),
            parameters={name: weights.total for name, weights in self.survey.weights.items()},
            gpus=tuple(gpu for pool in self.memory.pools for gpu in self._gpus(pool)),
            stages=tuple(_stage(name, time) for name, time in self.times.items()),
            rollout=self._rollout(),
        )

    def _gpus(self, memory: PoolMemory) -> Iterator[GpuEstimate]:
        pool, machine = memory.pool, self.survey.machine
        usable = machine.usable_bytes(pool)
        starts = self._engines_start(pool.name)
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
                    "fits": peak <= usable and starts,
                    "parts": parts,
                }
            yield GpuEstimate(index=index, **values[is_first])

    def _engines_start(self, pool: str) -> bool:
        """vLLM starts only with a cache for one sequence of full length."""
        return all(
            self.memory.servings[engine.writers[0]].tokens >= engine.length
            for engine in self.survey.engines
            if engine.pool.name == pool and engine.writers[0] in self.memory.servings
        )

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
        notes = dict.fromkeys((*survey.notes, *survey.flow.notes))
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
        )


def _parts(memory: PoolMemory, is_first: bool) -> Iterator[PartEstimate]:
    """Claims of one node, part and set of stages as one entry, in the order they were made."""
    sums: dict[tuple[str, Part, tuple[str, ...]], float] = {}
    for claim in memory.claims:
        if is_first or not claim.first_only:
            key = (claim.node, claim.part, claim.stages)
            sums[key] = sums.get(key, 0.0) + claim.bytes
    for (node, part, stages), size in sums.items():
        yield PartEstimate(node=node, part=part, bytes=round(size), stages=stages)


def _stage(name: str, time: StageTime) -> StageEstimate:
    return StageEstimate(
        stage=name,
        node=name.rsplit(".", 1)[0],
        seconds=time.seconds,
        samples_per_second=time.samples / time.seconds,
        tokens_per_second=time.tokens / time.seconds,
        bound=time.bound,
    )
