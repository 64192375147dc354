"""The shape of an estimate, as the command line prints it and the page draws it.

Bytes are whole numbers, times seconds; None where a number is not known, with the reason beside it.
`Estimate` is a contract: its JSON has these keys and no
others; the command line adds whether a run would take the loop. Everything else that is worth
knowing (assumptions, decisions, phases, how sure it all is) is in `Explanation`.
"""

from functools import cached_property
from typing import Any

from pydantic import Field

from coloop.plan.settings.memory import Part
from coloop.plan.settings.settings import Decision, Note, Planned
from coloop.plan.settings.throughput import Bound
from coloop.spec.presets import known_models

KNOWN_EACH = 12
"""Of the known ids every so many are named as examples."""


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
        """How to make the model known."""
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
        """Whether every GPU is known to fit."""
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
    """How an estimate came about and how far to trust it."""

    estimate: Estimate
    """The numbers."""
    phases: tuple[PhaseEstimate, ...]
    """Every phase."""
    main: str | None
    """The phase that takes most of the run: the estimate's step is one of it."""
    total_seconds: float | None
    """The whole run, where all steps and their times are known; a bound where triggers end
    phases."""
    decisions: tuple[Decision, ...]
    """Values that the loop leaves open."""
    notes: tuple[Note, ...]
    """What was assumed and what is missing."""
    memory_band: tuple[float, float]
    """The measured peak is expected between these multiples of the estimated one."""
    time_band: tuple[float, float]
    """The same for times."""
    host_bytes: int
    """What rests in the memory of the hosts, over all machines."""
    advice: tuple[str, ...]
    """Cheapest ways to relieve the bottleneck or to fit."""
    stages_in: dict[str, tuple[StageEstimate, ...]] = Field(exclude=True)
    """By phase what a step of it runs, each stage with what it does there, and evaluations;
    `Estimate.stages` has each with the most that any phase asks."""
    step_of_parts: float = Field(exclude=True)
    """Seconds of a step as if all that is known of it could run: to compare settings that do not
    fit with one another, never to be shown."""
    stage_of_parts: dict[str, float] = Field(exclude=True)
    """The same of each stage."""

    @cached_property
    def decided(self) -> dict[str, Any]:
        """Values that the loop leaves open, by path."""
        return {decision.path: decision.value for decision in self.decisions}
