"""Requests and responses of the check routes."""

from typing import Any, Self

from pydantic import Field, model_validator

from coloop.plan.batch_breakdown import BatchBreakdown
from coloop.plan.cost import Estimate
from coloop.plan.cost.report import Explanation, PhaseEstimate, StageCorrection
from coloop.plan.settings.settings import Decision
from coloop.spec.diagnostics import Change, Diagnostic
from coloop.spec.modes import ModeName
from coloop_server.schemas import MAX_YAML, Input, Output


class LoopInput(Input):
    """A loop, as exactly one of `yaml` and `spec`."""

    yaml: str | None = Field(default=None, max_length=MAX_YAML)
    """The loop as YAML text; findings then have line and column."""
    spec: dict[str, Any] | None = None
    """The loop as data with the keys of the YAML."""

    @model_validator(mode="after")
    def one_is_given(self) -> Self:
        if (self.yaml is None) == (self.spec is None):
            raise ValueError("either yaml or spec is expected")
        return self


class CheckReport(Output):
    ok: bool
    """Whether there are no errors. Warnings and hints are allowed."""
    diagnostics: list[Diagnostic]


class PlannedStage(Output):
    """A stage of a step or of an evaluation."""

    stage: str
    """Name of the stage: `node.verb`."""
    node: str
    rows: str | None
    """Rows in one step, as far as they are known before the run: `32`, `at most 24`, `some`,
    `unknown`; null if the stage does not work on rows."""
    breakdown: str
    """How the number comes about, e.g. `8 rows of problems x 4 completions`; may be empty."""
    passes: int
    """How often refills and rounds repeat it in a step at most. `rows` are those of one pass."""


class PlannedProbe(Output):
    """The evaluations of one probe (`evaluate` node)."""

    node: str
    every: int
    """Number of steps between evaluations."""
    text: str
    """What an evaluation loads, generates and measures, in words."""
    writers: list[str]
    """Nodes that generate first in an evaluation, to which `greedy` and `samples` apply."""
    greedy: bool
    """Whether they generate one greedy completion per row."""
    samples: int | None
    """Completions per row; null if the probe does not set them."""
    rows: list[PlannedStage]
    """Stages of an evaluation, in order."""


class PlannedPhase(Output):
    name: str
    index: int
    """Index among the phases as written, from 0; phases of groups are counted like others."""
    rounds: int
    """How often the groups around it repeat it."""
    steps: int | None
    """Number of steps of one repeat; null if not known before the run."""
    ends: str
    """When it ends, in words: `300 steps`, `until pool.full`."""
    learn: list[str]
    """Teaching ports that are learned from, as `node.port`."""
    stages: list[str]
    """Stages of a step in order, as `node.verb`."""
    rows: list[PlannedStage]
    """The same stages with their row counts."""
    updates: list[str]
    """Which nodes learn in each learn stage, together or in turns; a sentence each."""
    dead_edges: list[str]
    """Edges that deliver nothing in this phase, because their weight is 0."""


class PlanSummary(Output):
    phases: list[PlannedPhase]
    probes: list[PlannedProbe]
    decisions: list[Decision]
    """Values that the compiler chose for settings that the loop leaves open."""
    breakdowns: list[BatchBreakdown]
    """How the batch of each learner is made up in each phase, where its rows are known."""
    explain: list[str]
    """The plan in words, a line each."""


class Band(Output):
    """Expected range of measured values, as multiples of the estimated value."""

    least: float
    """Lower bound, e.g. 0.7."""
    most: float
    """Upper bound, e.g. 1.4."""


class PredictedTime(Output):
    """Estimated times of a loop, and how accurate time and memory are."""

    phases: list[PhaseEstimate]
    main: str | None
    """Phase that takes most of the run, to which the step time of the estimate belongs; null if
    there is none."""
    total_seconds: float | None
    """Seconds of the whole run; null unless steps and times of all phases are known."""
    gpu_hours: float | None
    """Hours of all GPUs for the whole run; null unless its time is known, or without GPUs."""
    cost: float | None
    """`gpu_hours` at `hardware.price_per_gpu_hour`; null unless both are known."""
    corrections: list[StageCorrection] = []
    """Stages whose times are corrected by earlier runs on this machine."""
    memory_band: Band
    """Accuracy of the memory peaks."""
    time_band: Band
    """Accuracy of the times."""

    @classmethod
    def of(cls, explanation: Explanation) -> Self:
        memory, time = explanation.memory_band, explanation.time_band
        return cls(
            phases=list(explanation.phases),
            main=explanation.main,
            total_seconds=explanation.total_seconds,
            gpu_hours=explanation.gpu_hours,
            cost=explanation.cost,
            corrections=list(explanation.corrections),
            memory_band=Band(least=memory[0], most=memory[1]),
            time_band=Band(least=time[0], most=time[1]),
        )


class CheckResult(Output):
    report: CheckReport
    estimate: Estimate | None
    """Null if the loop cannot be read or its hardware is not known. For a loop with errors, what is
    known so far."""
    time: PredictedTime | None = None
    """Times of the phases; null if `estimate` is."""
    budget: float | None = None
    """Share of each GPU's memory that the loop may use, 0 to 1; null if the loop cannot be read."""
    missing: str | None = None
    """Why a run would not find enough GPUs on this server, in a sentence; null if it would, or if
    runs go to a Ray cluster."""
    plan: PlanSummary | None
    """Null if the loop has errors or needs something that this version cannot run."""
    mode: ModeName | None
    """Mode that the loop names, or else the one that its graph suggests; null if it cannot be
    read."""
    spec_hash: str | None = None
    """Hash of the loop without layout, notes, formatting and defaults, comparable with
    `Run.spec_hash`; null if it cannot be read."""


class ParseText(Input):
    yaml: str = Field(max_length=MAX_YAML)


class ParseResult(Output):
    spec: dict[str, Any] | None
    """The loop as data; null if it is not a readable loop."""
    diagnostics: list[Diagnostic]
    layout: dict[str, Any] | None
    """Section `layout` of the text, also if the loop cannot be read; null if there is none."""


class Fragment(Output):
    """A part of a loop, with the keys of the YAML."""

    nodes: dict[str, dict[str, Any]]
    """Nodes by name; empty if the text contains none."""
    edges: list[str | dict[str, Any]]
    """Edges of the text."""
    layout: dict[str, Any]
    diagnostics: list[Diagnostic]
    """Why the text cannot be read; empty if it can."""


class PatchText(Input):
    """A text and what to change in it, as exactly one of `changes` and `spec`."""

    yaml: str = Field(max_length=MAX_YAML)
    changes: list[Change] | None = Field(default=None, max_length=1000)
    spec: dict[str, Any] | None = None
    """The loop that the text shall say afterwards, as data."""

    @model_validator(mode="after")
    def one_is_given(self) -> Self:
        if (self.changes is None) == (self.spec is None):
            raise ValueError("either changes or spec is expected")
        return self


class PatchResult(Output):
    yaml: str
    """The changed text. Comments and number formats of other parts are kept."""
    spec: dict[str, Any] | None
    """The changed loop as data; null if it is not a readable loop."""
    diagnostics: list[Diagnostic]


class DumpSpec(Input):
    spec: dict[str, Any]


class DumpResult(Output):
    yaml: str
