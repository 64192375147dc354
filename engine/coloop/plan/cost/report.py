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
    """Bytes of one kind that one node holds on a GPU."""

    node: str
    """Whose they are; of a weights group its owner."""
    part: Part
    """What they are."""
    bytes: int
    """How many."""
    stages: tuple[str, ...]
    """In which stages they are there."""


class GpuEstimate(Planned):
    """One GPU, or on a CPU one worker process."""

    pool: str
    """Its pool."""
    index: int
    """Its place in the pool."""
    capacity_bytes: int
    """What the vendor prints."""
    usable_bytes: int
    """What may be planned for: the budget's share of what a process can use."""
    peak_bytes: int | None
    """Most that is resident at once; None: not known."""
    peak_stage: str
    """When that is; empty where nothing runs, or where the peak is not known."""
    fits: bool | None
    """Whether the peak stays within what may be planned for, and every engine can start; None: not
    known."""
    reason: str | None = None
    """Why the peak is not known, or what does not fit where the peak is within the budget."""
    parts: tuple[PartEstimate, ...]
    """Everything that is ever resident. The peak is the sum over the parts of its stage."""


class StageEstimate(Planned):
    """One run of one stage."""

    stage: str
    """`node.verb`."""
    node: str
    """Whose stage it is."""
    seconds: float | None
    """How long it takes; None: not known, or it cannot run."""
    samples_per_second: float | None
    """Rows that pass through it; None as `seconds` is."""
    tokens_per_second: float | None
    """Tokens of completions and targets that it writes, scores or learns from, each once, as a run
    counts them; 0 where there are none, None as `seconds` is."""
    bound: Bound
    """What holds it back."""
    reason: str | None = None
    """Why there is no time."""


class RolloutEstimate(Planned):
    """The cache of one engine."""

    kv_cache_bytes: int
    """On one GPU."""
    kv_cache_tokens: int
    """Tokens it holds."""
    max_concurrent_sequences: int
    """Sequences of full length at once."""


class UnknownModel(Planned):
    """A model of which nothing is known here: what rests on it has no numbers."""

    node: str
    """Whose model it is."""
    field: str
    """Which field of it names the model, e.g. `model.path`."""
    found: str
    """What the field says."""
    reason: str
    """What is not known, in a sentence."""
    suggestions: tuple[str, ...]
    """Names of known models that look like it, the nearest first."""
    nodes: tuple[str, ...]
    """Every node whose weights are that model's, itself included."""

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
    """A model whose numbers are a guess."""

    node: str
    """Whose model it is."""
    field: str
    """Which field of it names the model."""
    reason: str
    """What was guessed."""


class Estimate(Planned):
    """What a loop costs in memory and time."""

    step_seconds: float | None
    """Time of one step of the phase that takes most of the run, evaluations spread over steps;
    None: one of its stages has no time."""
    bottleneck: str
    """The stage that takes longest in it; empty where nothing runs, or where that is not known."""
    parameters: dict[str, int]
    """Weights group to its number of parameters."""
    gpus: tuple[GpuEstimate, ...]
    """Every GPU, pool by pool."""
    stages: tuple[StageEstimate, ...]
    """Every stage of every phase."""
    rollout: dict[str, RolloutEstimate]
    """By node that writes."""
    unknown: tuple[UnknownModel, ...] = ()
    """Models of which nothing is known."""
    guessed: tuple[GuessedModel, ...] = ()
    """Models whose numbers are a guess."""

    @property
    def fits(self) -> bool:
        return all(gpu.fits is True for gpu in self.gpus)


class SpanEstimate(Planned):
    """When a stage runs in a step."""

    stage: str
    """`node.verb`."""
    pool: str
    """Where; empty: on no GPU."""
    start: float
    """Seconds from the start of the step."""
    end: float
    """The same."""


class PhaseEstimate(Planned):
    """One phase."""

    name: str
    """Its name."""
    steps: int | None
    """Steps over the whole run, where they are known; a trigger may end the phase earlier."""
    step_seconds: float | None
    """Time of one step; None: one of its stages has no time."""
    seconds: float | None
    """Time of all of them."""
    stages: tuple[str, ...]
    """What runs in a step."""
    spans: tuple[SpanEstimate, ...]
    """When it runs; evaluations, which are spread over steps, are not in it. Empty where a step has
    no time."""


class Explanation(Planned):
    """How an estimate was made and how reliable it is."""

    estimate: Estimate
    phases: tuple[PhaseEstimate, ...]
    main: str | None
    """The phase that takes most of the run; `estimate` is based on it."""
    total_seconds: float | None
    """The whole run, if all steps and times are known; an upper bound if triggers end phases."""
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
    stages_in: dict[str, tuple[StageEstimate, ...]] = Field(exclude=True)
    """By phase, the stages of a step with its own load, and evaluations. `Estimate.stages` has the
    largest load of all phases instead."""
    step_of_parts: float = Field(exclude=True)
    """Seconds of a step from the known stages alone. Only for comparing settings that do not fit;
    never shown."""
    stage_of_parts: dict[str, float] = Field(exclude=True)
    """The same by stage."""

    @cached_property
    def decided(self) -> dict[str, Any]:
        return {decision.path: decision.value for decision in self.decisions}
