"""Requests and responses of the check routes."""

from typing import Any, Self

from pydantic import Field, model_validator

from coloop.plan.batch_breakdown import BatchBreakdown
from coloop.plan.cost import Estimate
from coloop.plan.cost.report import Explanation, PhaseEstimate
from coloop.plan.settings.settings import Decision
from coloop.spec.diagnostics import Change, Diagnostic
from coloop.spec.modes import ModeName
from coloop_server.schemas import MAX_YAML, Input, Output


class LoopInput(Input):
    """Exactly one of the two."""

    yaml: str | None = Field(default=None, max_length=MAX_YAML)
    """The loop as text; findings have line and column then."""
    spec: dict[str, Any] | None = None
    """The loop as data, in the words of the YAML."""

    @model_validator(mode="after")
    def one_is_given(self) -> Self:
        if (self.yaml is None) == (self.spec is None):
            raise ValueError("either yaml or spec is expected")
        return self


class CheckReport(Output):
    ok: bool
    diagnostics: list[Diagnostic]


class PlannedStage(Output):
    stage: str
    node: str
    rows: str | None
    """Rows of one step, as far as they are certain: `32`, `at most 24`, `some`, `unknown`; None
    where the stage works on none."""
    breakdown: str
    """How the number comes about."""
    passes: int
    """How often at most a refill repeats it; the rows are those of one pass."""


class PlannedProbe(Output):
    node: str
    every: int
    text: str
    """What a reading loads, and how its first writers write."""
    writers: list[str]
    greedy: bool
    samples: int | None
    rows: list[PlannedStage]
    """The stages that run for a reading, in order, each with its rows."""


class PlannedPhase(Output):
    name: str
    index: int
    """Place among the phases as written, groups counted through."""
    rounds: int
    """How often the groups around it repeat it."""
    steps: int | None
    """Where they are known before the run."""
    ends: str
    """In words: `300 steps`, `until pool.full`."""
    learn: list[str]
    """Live teaching ports, `node.port`."""
    stages: list[str]
    """Names, in the order in which they run."""
    rows: list[PlannedStage]
    """The same stages, each with its rows."""
    updates: list[str]
    """Who trains in each learn stage, together or in which order, a sentence each."""
    dead_edges: list[str]
    """Edges that deliver nothing in this phase."""


class PlanSummary(Output):
    phases: list[PlannedPhase]
    probes: list[PlannedProbe]
    decisions: list[Decision]
    """What was chosen where the loop left it open."""
    breakdowns: list[BatchBreakdown]
    """The batch of every learner in every phase, from prompts to updates."""
    explain: list[str]
    """The plan in words, a line each."""


class Band(Output):
    """What is measured is expected between these multiples of what is predicted."""

    least: float
    most: float


class PredictedTime(Output):
    phases: list[PhaseEstimate]
    main: str | None
    """The phase whose step the estimate tells."""
    total_seconds: float | None
    """The whole run, where all steps are known."""
    memory_band: Band
    time_band: Band

    @classmethod
    def of(cls, explanation: Explanation) -> Self:
        memory, time = explanation.memory_band, explanation.time_band
        return cls(
            phases=list(explanation.phases),
            main=explanation.main,
            total_seconds=explanation.total_seconds,
            memory_band=Band(least=memory[0], most=memory[1]),
            time_band=Band(least=time[0], most=time[1]),
        )


class CheckResult(Output):
    report: CheckReport
    estimate: Estimate | None
    """None where the loop cannot be read; of a loop with errors, what is known already."""
    time: PredictedTime | None = None
    """How the time of a step comes about; None where there is no estimate."""
    budget: float | None = None
    """Share of each GPU's memory that the loop may use; None where it cannot be read."""
    missing: str | None = None
    """Why a run would not find its GPUs where runs go, in a sentence; None where it would."""
    plan: PlanSummary | None
    """None where the loop has errors or asks for what does not run yet."""
    mode: ModeName | None
    """What the loop names or, where it names none, what its graph shows; None where it cannot be
    read."""
    spec_hash: str | None = None
    """Of what the loop means: the same as that of a run which ran the same."""


class ParseText(Input):
    yaml: str = Field(max_length=MAX_YAML)


class ParseResult(Output):
    spec: dict[str, Any] | None
    """The loop as data, None when the text gives none."""
    diagnostics: list[Diagnostic]
    layout: dict[str, Any] | None


class Fragment(Output):
    """A piece of a loop, in the words of the YAML."""

    nodes: dict[str, dict[str, Any]]
    """Empty where the text holds no nodes."""
    edges: list[str | dict[str, Any]]
    layout: dict[str, Any]
    diagnostics: list[Diagnostic]
    """Why the text cannot be read."""


class PatchText(Input):
    """The text, and either single changes or the loop as it shall be."""

    yaml: str = Field(max_length=MAX_YAML)
    changes: list[Change] | None = Field(default=None, max_length=1000)
    spec: dict[str, Any] | None = None

    @model_validator(mode="after")
    def one_is_given(self) -> Self:
        if (self.changes is None) == (self.spec is None):
            raise ValueError("either changes or spec is expected")
        return self


class PatchResult(Output):
    yaml: str
    """The text with the changes; comments and number formats elsewhere are kept."""
    spec: dict[str, Any] | None
    diagnostics: list[Diagnostic]


class DumpSpec(Input):
    spec: dict[str, Any]


class DumpResult(Output):
    yaml: str
