"""The shape of an estimate, as the command line prints it and the page draws it.

Bytes are whole numbers, times seconds. `Estimate` is a contract: its JSON has these keys and no
others; the command line adds whether a run would take the loop. Everything else that is worth
knowing (assumptions, decisions, phases, how sure it all is) is in `Explanation`.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

from coloop.sizing.memory import Part
from coloop.sizing.throughput import Bound


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
    peak_bytes: int
    """Most that is resident at once."""
    peak_stage: str
    """When that is; empty where nothing runs."""
    fits: bool
    """Whether the peak stays within what may be planned for, and every engine can start."""
    parts: tuple[PartEstimate, ...]
    """Everything that is ever resident. The peak is the sum over the parts of its stage."""


class StageEstimate(_Value):
    """One run of one stage."""

    stage: str
    """`node.verb`."""
    node: str
    """Whose stage it is."""
    seconds: float
    """How long it takes."""
    samples_per_second: float
    """Rows that pass through it."""
    tokens_per_second: float
    """Tokens written or read; 0 where there are none."""
    bound: Bound
    """What holds it back."""


class RolloutEstimate(_Value):
    """The cache of one engine."""

    kv_cache_bytes: int
    """On one GPU."""
    kv_cache_tokens: int
    """Tokens it holds."""
    max_concurrent_sequences: int
    """Sequences of full length at once."""


class Estimate(_Value):
    """What a loop costs in memory and time."""

    step_seconds: float
    """Time of one step of the phase that takes most of the run, evaluations spread over steps."""
    bottleneck: str
    """The stage that takes longest in it; empty where nothing runs."""
    parameters: dict[str, int]
    """Weights group to its number of parameters."""
    gpus: tuple[GpuEstimate, ...]
    """Every GPU, pool by pool."""
    stages: tuple[StageEstimate, ...]
    """Every stage of every phase."""
    rollout: dict[str, RolloutEstimate]
    """By node that writes."""

    @property
    def fits(self) -> bool:
        """Whether every GPU fits."""
        return all(gpu.fits for gpu in self.gpus)


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
    step_seconds: float
    """Time of one step."""
    seconds: float | None
    """Time of all of them."""
    stages: tuple[str, ...]
    """What runs in a step."""
    spans: tuple[SpanEstimate, ...]
    """When it runs; evaluations, which are spread over steps, are not in it."""


class Explanation(_Value):
    """How an estimate came about and how far to trust it."""

    estimate: Estimate
    """The numbers."""
    phases: tuple[PhaseEstimate, ...]
    """Every phase."""
    main: str | None
    """The phase that takes most of the run: the estimate's step is one of it."""
    total_seconds: float | None
    """The whole run, where all steps are known; a bound where triggers end phases."""
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
