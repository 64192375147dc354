"""The resolver: gives every open setting of a loop a value and a reason, once.

    spec, stages of its phases ──> survey (weights, degrees, engines, types, threads)
      ──> memory (permanent parts, room for updates)
      ──> clock (seconds of a step), on a CPU once for each number of processes
      ──> settings of each group and engine, and the decisions in words

The compiler writes the settings into the plan, a run starts its workers with them, and the estimate
is computed with them. Values that no memory limits are the fastest ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path

from coloop.plan.settings.memory import Memory, peak_of
from coloop.plan.settings.probes import ProbeLoad
from coloop.plan.settings.processor import Conditions
from coloop.plan.settings.settings import Decision, UpdateSettings
from coloop.plan.settings.survey import PhaseLoad, Survey
from coloop.plan.settings.tables import Tables
from coloop.plan.settings.throughput import Clock
from coloop.spec.dtypes import Dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import training_of, weights_groups
from coloop.spec.nodes import EvaluateNode
from coloop.spec.training import Training


class Resolved:
    """A value for every setting that the loop leaves open."""

    def __init__(
        self,
        spec: LoopSpec,
        phases: Sequence[PhaseLoad],
        probes: Mapping[str, ProbeLoad],
        root: Path | None,
        conditions: Conditions,
        tables: Tables | None = None,
    ) -> None:
        """`phases`: what each phase teaches and runs; `probes`: what each evaluation runs. Without
        `root`, the folder for relative model paths, no file is opened. `tables`: those of variants
        of the loop, counted before."""

        def survey_of(workers: int) -> Survey:
            return Survey(spec, root, phases, probes, conditions, workers, tables)

        settled, processes = settle(spec, conditions, survey_of)
        survey, memory = self.survey, self.memory = settled.survey, settled.memory
        decided = {name: update.settings for name, update in memory.updates.items()}
        self.updates = survey.updates | decided
        """Of trained weights groups."""
        self.engines = {
            key: plan.model_copy(
                update={
                    "gpu_memory_utilization": memory.shares.get(key),
                    "sleep": memory.sleeps.get(key),
                }
            )
            for key, plan in survey.settings.items()
        }
        self.decisions = (*self._decisions(), *([processes] if processes is not None else []))

    def _decisions(self) -> Iterator[Decision]:
        spec, survey = self.survey.spec, self.survey
        yield from _types(spec, survey.dtypes)
        yield from survey.decisions.values()
        for name, update in survey.updates.items():
            if name not in self.memory.updates:
                yield from _unlimited(name, update, training_of(spec, name))
            if training_of(spec, name).mini_batch is None:
                yield Decision(
                    path=f"nodes.{name}.training.mini_batch",
                    value="all rows of the step",
                    reason="one optimizer step a step, the least off-policy choice",
                )


def _unlimited(name: str, update: UpdateSettings, training: Training) -> Iterator[Decision]:
    """Decisions for weights of unknown size."""
    path = f"nodes.{name}.training"
    reason = "the fastest: how much memory it needs is not known here"
    if training.micro_batch is None:
        at_once = f"{update.tokens_at_once} tokens"
        yield Decision(path=f"{path}.micro_batch", value=at_once, reason=reason)
    if training.gradient_checkpointing is None:
        flag = update.gradient_checkpointing
        yield Decision(path=f"{path}.gradient_checkpointing", value=flag, reason=reason)


def _types(spec: LoopSpec, dtypes: dict[str, Dtypes]) -> Iterator[Decision]:
    for group in weights_groups(spec).values():
        owner, types = spec.nodes[group.name], dtypes[group.name]
        field = "training" if group.trainable else "model"
        section = getattr(owner, field, None)
        is_said = getattr(section, "dtype", None) is not None
        has_field = group.trainable or hasattr(section, "dtype")
        if has_field and not is_said:
            path = f"nodes.{group.name}.{field}.dtype"
            yield Decision(path=path, value=types.compute, reason=types.reason)


# The number of CPU processes for a loop without pools: the one that finishes the run first.
#
# Settings, memory and step time are estimated for each number of processes that the cores allow.
# One process needs no start and no transfers. Several share the rows of a step, so they pay off if
# there are enough long steps. Each has its own weights, optimizer states and activations, so it
# must save a good part of the time.

START_SECONDS = 6.0
"""Time until further processes are ready; a single one is a thread of the driver, or starts with
it. Measured with two processes on two busy cores: 5.4 to 6.1 s of CPU time for loading, and 0.2
s for each forked copy."""
WORTH = 0.75
"""More processes are used if they take at most this share of the time of fewer: a prediction is not
a measurement, and twice the memory must gain more than a tenth. On two cores, texts of 128 tokens
give 0.6; texts of 4 tokens and up to 20M parameters 0.85 and more."""
PATH = "hardware.pools"


@dataclass(frozen=True)
class Trial:
    survey: Survey

    @property
    def workers(self) -> int:
        return next(iter(self.survey.machine.pools.values())).workers

    @cached_property
    def memory(self) -> Memory:
        return Memory(self.survey)

    @cached_property
    def step_seconds(self) -> float:
        """Mean of all known steps; computed on demand."""
        survey, clock = self.survey, Clock(self.survey, self.memory)
        seconds = {stage: clock.time(stage).seconds for stage in survey.stages}
        learning = [stage for stage in survey.stages if stage.endswith(".learn")]
        probes = sum(
            seconds[f"{name}.evaluate"] / node.every
            for name, node in survey.spec.nodes.items()
            if isinstance(node, EvaluateNode)
        )
        total = 0.0
        for phase in survey.phases:
            inside = [stage for stage in learning if stage in phase.stages]
            own = seconds | {stage: clock.time(stage, phase).seconds for stage in inside}
            total += phase.steps * (probes + sum(own[stage] for stage in phase.stages))
        return total / self.steps if self.steps else 0.0

    @property
    def steps(self) -> int:
        return sum(phase.steps for phase in self.survey.phases)

    @property
    def seconds(self) -> float:
        return self.steps * self.step_seconds + (START_SECONDS if self.workers > 1 else 0.0)

    @property
    def fits(self) -> bool:
        machine = self.survey.machine
        return all(
            peak_of(pool, is_first=True)[1] <= machine.usable_bytes(pool.pool)
            for pool in self.memory.pools
        )


def settle(
    spec: LoopSpec, conditions: Conditions, survey_of: Callable[[int], Survey]
) -> tuple[Trial, Decision | None]:
    """The number of processes of a loop without pools, and why. `survey_of`: returns the survey of
    the loop on a number of processes."""
    alone = Trial(survey_of(1))
    if not alone.survey.machine.is_cpu or spec.hardware.pools:
        return alone, None
    if conditions.begun is not None and conditions.begun.workers is not None:
        workers = conditions.begun.workers
        chosen = alone if workers == 1 else Trial(survey_of(workers))
        return chosen, _decision(workers, "as at the start of the run")
    against = _against(alone, conditions)
    if against is not None:
        return alone, _decision(1, against)
    tried = [alone]
    for workers in _numbers(alone):
        trial = Trial(survey_of(workers))
        if trial.fits and trial.seconds < WORTH * tried[-1].seconds:
            tried.append(trial)
    if len(tried) == 1:
        return alone, _decision(1, _why_alone(alone, Trial(survey_of(_numbers(alone)[0]))))
    chosen = tried[-1]
    reason = (
        f"a step is predicted to take {_shown(alone.step_seconds)} in one process and "
        f"{_shown(chosen.step_seconds)} in {chosen.workers}"
    )
    return chosen, _decision(chosen.workers, reason)


def _decision(workers: int, reason: str) -> Decision:
    value = "one process" if workers == 1 else f"{workers} processes"
    return Decision(path=PATH, value=value, reason=reason)


def _numbers(alone: Trial) -> Sequence[int]:
    """Numbers of processes to try: doubling, and the maximum."""
    machine = alone.survey.machine
    most = int(min(machine.cores_for_pools, machine.preset.workers, _shares(alone.survey)))
    doubled = [2**power for power in range(1, most.bit_length()) if 2**power < most]
    return [*doubled, most]


def _shares(survey: Survey) -> float:
    """Parts into which a step's work can be divided: generated prompts, or rows of a mini-batch."""
    shares = inf
    for engine in survey.engines:
        for node in engine.writers:
            rollout = getattr(survey.spec.nodes[node], "rollout", None)
            each = max(getattr(rollout, "completions_per_prompt", 1), 1)
            rows = survey.counts.of(node, "rollouts").mean.rows
            shares = min(shares, rows / each if rows else inf)
    for weights in survey.weights.values():
        if weights.trains and weights.training.mini_batch is not None:
            shares = min(shares, weights.training.mini_batch)
    return max(shares, 1.0)


def _against(alone: Trial, conditions: Conditions) -> str | None:
    """Why a loop must stay in one process."""
    survey = alone.survey
    if conditions.threads is not None:
        return "it uses as many threads as were requested"
    if survey.machine.cores_for_pools == 1:
        return "it has one core"
    for name, backend in ((n, training_of(survey.spec, n).backend) for n in survey.updates):
        if backend is not None:
            return f"`training.backend` of {name} is set, but the number of processes is not"
    if survey.bases:
        return f"each would hold another copy of the frozen weights of {next(iter(survey.bases))}"
    if any(engine.engine == "vllm" for engine in survey.settings.values()):
        return "vLLM uses all cores by itself"
    if not alone.steps or not alone.step_seconds or any(note.is_gap for note in survey.notes):
        return "the duration of a step is not known here"
    if _shares(survey) < 2:
        return "a step has one prompt, or one row per update"
    return None


def _why_alone(alone: Trial, several: Trial) -> str:
    if not several.fits:
        return f"{several.workers} would not fit into memory"
    times = (
        f"a step is predicted to take {_shown(alone.step_seconds)} in it and "
        f"{_shown(several.step_seconds)} in {several.workers}"
    )
    gained = alone.steps * (alone.step_seconds - several.step_seconds)
    if several.seconds < alone.seconds:
        return f"{times}: too little for {several.workers} times the memory"
    if gained > 0:
        return f"{times}: {alone.steps} steps gain {_shown(gained)}, and starting takes about 6 s"
    return times


def _shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.2g} s"
