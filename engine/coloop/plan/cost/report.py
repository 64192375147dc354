"""The estimate, as the command line prints it and the page shows it.

Bytes are integers, times seconds; a number is None if it is unknown, with the reason beside it. The
JSON of `Estimate` is a contract and has no other keys; the command line adds whether a run would
accept the loop. Assumptions, decisions, phases and error bands are in `Explanation`.
"""

from functools import cached_property
from typing import Any

from pydantic import Field

from coloop.plan.settings.memory import Part
from coloop.plan.settings.settings import Decision, Note, Planned
from coloop.plan.settings.throughput import Bound
from coloop.spec.presets import known_models

KNOWN_EACH = 12
"""Every so many known model ids, one is named as an example."""


class PartEstimate(Planned):
    """Memory that one node uses on a GPU for one purpose."""

    node: str
    """Node that uses it; for the weights of a weights group, the group's owner."""
    part: Part
    """What it is used for."""
    bytes: int
    """Size in bytes."""
    stages: tuple[str, ...]
    """Stages during which it is allocated, as `node.verb`."""


class GpuEstimate(Planned):
    """Memory of one GPU, or without GPUs of one worker process."""

    pool: str
    """Name of its pool."""
    index: int
    """Index in the pool, from 0."""
    capacity_bytes: int
    """Nominal memory of the GPU, or the process's share of the machine's memory."""
    usable_bytes: int
    """Memory that the loop may use: the memory budget's share of what a process can allocate."""
    peak_bytes: int | None
    """Most memory in use at once; null if not known."""
    peak_stage: str
    """Stage with the peak; empty if nothing runs or the peak is not known."""
    fits: bool | None
    """Whether the peak is within `usable_bytes` and every engine can start; null if not known."""
    reason: str | None = None
    """Why the peak is not known, or what does not fit although the peak is within `usable_bytes`;
    otherwise null."""
    parts: tuple[PartEstimate, ...]
    """All memory that the loop uses here. The peak is the sum of the parts that are allocated in
    `peak_stage`."""


class StageEstimate(Planned):
    """Estimated time of one run of a stage."""

    stage: str
    """Name of the stage: `node.verb`."""
    node: str
    """Node of the stage."""
    seconds: float | None
    """Null if not known, or if the stage cannot run."""
    samples_per_second: float | None
    """Rows processed per second; null if `seconds` is."""
    tokens_per_second: float | None
    """Tokens of completions and targets that are generated, scored or learned from per second, each
    counted once as in the metrics of a run. 0 if there are none, null if `seconds` is."""
    bound: Bound
    """What limits its speed."""
    reason: str | None = None
    """Why there is no time; otherwise null."""


class RolloutEstimate(Planned):
    """Key-value cache of the engine with which a node generates."""

    kv_cache_bytes: int
    """Size on one GPU, in bytes."""
    kv_cache_tokens: int
    """Number of tokens that it can hold."""
    max_concurrent_sequences: int
    """Number of sequences of full length that it can hold at once."""


class UnknownModel(Planned):
    """A model that is not known here, so that nothing that depends on it can be estimated."""

    node: str
    """Node that names the model."""
    field: str
    """Field of the node with the model's name, e.g. `model.path`."""
    found: str
    """Value of the field."""
    reason: str
    """What is not known, in a sentence."""
    suggestions: tuple[str, ...]
    """Names of similar known models, most similar first."""
    nodes: tuple[str, ...]
    """All nodes with weights of the model, including `node`."""

    @property
    def hint(self) -> str:
        near = " or ".join(self.suggestions)
        if self.field == "model.architecture":
            return f"did you mean {near}?" if near else "use one of the known architectures"
        if self.field == "model.run":
            return "the run's folder has it: estimates come with the first steps"
        give = "save the model's `config.json` in a folder and give that folder as `path`"
        if near:
            return f"did you mean {near}? Otherwise {give}"
        return f"{give}, or use a known id, such as {', '.join(known_models()[::KNOWN_EACH])}"


class GuessedModel(Planned):
    """A model for which the estimate rests on a guess."""

    node: str
    """Node that names the model."""
    field: str
    """Field of the node with the model's name, e.g. `model.path`."""
    reason: str
    """What was guessed, in a sentence."""


class Estimate(Planned):
    """Estimated memory and time of a loop."""

    step_seconds: float | None
    """Seconds per step in the phase that takes most of the run, with evaluations spread over the
    steps; null if the time of a stage is not known."""
    bottleneck: str
    """Stage that takes longest in that phase; empty if nothing runs or the times are not known."""
    parameters: dict[str, int]
    """Number of parameters of each weights group."""
    gpus: tuple[GpuEstimate, ...]
    """GPUs, pool by pool; at most 512 of each pool are listed."""
    stages: tuple[StageEstimate, ...]
    """All stages of the loop, each with its largest load over all phases."""
    rollout: dict[str, RolloutEstimate]
    """Caches of the engines that can start, by the node that generates."""
    unknown: tuple[UnknownModel, ...] = ()
    """Models that are not known."""
    guessed: tuple[GuessedModel, ...] = ()
    """Models for which the estimate rests on a guess."""

    @property
    def fits(self) -> bool:
        return all(gpu.fits is True for gpu in self.gpus)


class SpanEstimate(Planned):
    """When a stage runs within a step."""

    stage: str
    """Name of the stage: `node.verb`."""
    pool: str
    """Pool in which it runs; empty: in the driver."""
    start: float
    """Seconds from the start of the step."""
    end: float
    """Seconds from the start of the step."""


class PhaseEstimate(Planned):
    """Estimated times of one phase."""

    name: str
    """Name of the phase."""
    steps: int | None
    """Number of steps over the whole run; null if not known. A trigger may end the phase
    earlier."""
    step_seconds: float | None
    """Seconds per step, with evaluations spread over the steps; null if the time of a stage is not
    known."""
    seconds: float | None
    """Seconds of all steps; null if `steps` or `step_seconds` is."""
    stages: tuple[str, ...]
    """Stages of a step, in order."""
    spans: tuple[SpanEstimate, ...]
    """When the stages run within a step, without evaluations; empty if `step_seconds` is null."""


class StageCorrection(Planned):
    """What the time of a stage was multiplied by."""

    stage: str
    """Name of the stage: `node.verb`."""
    factor: float
    """Earlier runs on this machine took so many times their prediction."""
    runs: int
    """Number of measurements that the factor is the median of."""
    is_same: bool
    """Whether they are of the same model or code; otherwise of others of its kind."""


class Explanation(Planned):
    """How an estimate was made and how reliable it is."""

    estimate: Estimate
    phases: tuple[PhaseEstimate, ...]
    main: str | None
    """The phase that takes most of the run; `estimate` is based on it."""
    total_seconds: float | None
    """The whole run, if all steps and times are known; an upper bound if triggers end phases."""
    gpu_hours: float | None
    """`total_seconds` of all GPUs, in hours; None if it is not known, or without GPUs."""
    cost: float | None
    """`gpu_hours` at `hardware.price_per_gpu_hour`; None if either is not known."""
    decisions: tuple[Decision, ...]
    """Values chosen for settings that the loop leaves open."""
    notes: tuple[Note, ...]
    """Assumptions and gaps."""
    memory_band: tuple[float, float]
    """Expected range of measured / estimated peak."""
    time_band: tuple[float, float]
    """Expected range of measured / estimated time."""
    host_bytes: int
    """Host memory used, over all machines."""
    advice: tuple[str, ...]
    """Cheapest ways to speed up the bottleneck, or to fit."""
    corrections: tuple[StageCorrection, ...] = ()
    """Stages whose times were corrected."""
    stages_in: dict[str, tuple[StageEstimate, ...]] = Field(exclude=True)
    """By phase, the stages of a step with its own load, and evaluations. `Estimate.stages` has the
    largest load of all phases instead."""
    step_of_parts: float = Field(exclude=True)
    """Seconds of a step from the known stages alone. Only for comparing settings that do not fit;
    never shown."""
    stage_of_parts: dict[str, float] = Field(exclude=True)
    """The same by stage."""
    caches_of_parts: dict[str, int] = Field(exclude=True)
    """Tokens that the cache of each engine has room for, by the node that generates, also where
    the engine cannot start. Only for comparing settings; never shown."""

    @cached_property
    def decided(self) -> dict[str, Any]:
        return {decision.path: decision.value for decision in self.decisions}
