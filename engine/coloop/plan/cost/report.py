"""The shape of an estimate, as the command line prints it and the page draws it.

Bytes are whole numbers, times seconds; None where a number is not known, with the reason beside it.
`Estimate` is a contract: its JSON has these keys and no
others; the command line adds whether a run would take the loop. Everything else that is worth
knowing (assumptions, decisions, phases, how sure it all is) is in `Explanation`.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, PrivateAttr

from coloop.plan.settings.memory import Part
from coloop.plan.settings.throughput import Bound


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class PartEstimate(_Value):
    """Bytes of one kind that one node holds on a GPU."""

    node: str
    """Whose they are; of a weights group its owner."""
    part: Part
    """What they are."""
    bytes: int
    """How many."""
    stages: tuple[str, ...]
    """In which stages they are there."""


class GpuEstimate(_Value):
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


class StageEstimate(_Value):
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


class RolloutEstimate(_Value):
    """The cache of one engine."""

    kv_cache_bytes: int
    """On one GPU."""
    kv_cache_tokens: int
    """Tokens it holds."""
    max_concurrent_sequences: int
    """Sequences of full length at once."""


class UnknownModel(_Value):
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


class GuessedModel(_Value):
    """A model whose numbers are a guess."""

    node: str
    """Whose model it is."""
    field: str
    """Which field of it names the model."""
    reason: str
    """What was guessed."""


class Estimate(_Value):
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

    _step: float = PrivateAttr(default=0.0)
    _stages: Mapping[str, float] = PrivateAttr(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether every GPU is known to fit."""
        return all(gpu.fits is True for gpu in self.gpus)

    @property
    def step_of_parts(self) -> float:
        """Seconds of a step as if all that is known of it could run: to compare settings that do
        not fit with one another, never to be shown."""
        return self._step

    def stage_of_parts(self, stage: str) -> float:
        """The same of one stage."""
        return self._stages.get(stage, 0.0)

    def with_parts(self, step: float, stages: Mapping[str, float]) -> "Estimate":
        """With the seconds of `step_of_parts` and `stage_of_parts`."""
        self._step, self._stages = step, stages
        return self


class NoteEstimate(_Value):
    """Something assumed, or not known."""

    message: str
    """What."""
    node: str | None = None
    """Which node it is about."""
    field: str | None = None
    """Which field of it, or a full path."""
    is_gap: bool = False
    """Whether numbers are missing for it."""


class DecisionEstimate(_Value):
    """A value that the loop leaves to the compiler."""

    path: str
    """Where it would be written."""
    value: Any
    """What is counted with."""
    reason: str
    """Why."""


class SpanEstimate(_Value):
    """When a stage runs in a step."""

    stage: str
    """`node.verb`."""
    pool: str
    """Where; empty: on no GPU."""
    start: float
    """Seconds from the start of the step."""
    end: float
    """The same."""


class PhaseEstimate(_Value):
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


class Explanation(_Value):
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
    decisions: tuple[DecisionEstimate, ...]
    """Values that the loop leaves open."""
    notes: tuple[NoteEstimate, ...]
    """What was assumed and what is missing."""
    memory_band: tuple[float, float]
    """The measured peak is expected between these multiples of the estimated one."""
    time_band: tuple[float, float]
    """The same for times."""
    host_bytes: int
    """What rests in the memory of the hosts, over all machines."""
    advice: tuple[str, ...]
    """Cheapest ways to relieve the bottleneck or to fit."""

    _stages: Mapping[str, tuple[StageEstimate, ...]] = PrivateAttr(default_factory=dict)

    def stages_in(self, phase: str) -> tuple[StageEstimate, ...]:
        """What a step of a phase runs, each stage with what it does there, and evaluations; none of
        a phase that there is not. `Estimate.stages` has each with the most that any phase asks."""
        return self._stages.get(phase, ())

    def with_stages(self, stages: Mapping[str, tuple[StageEstimate, ...]]) -> "Explanation":
        """With the stages of each phase."""
        self._stages = stages
        return self
