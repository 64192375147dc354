"""What a run says of itself: durable events, gauges, and the requests that reach it.

One JSON object a line. Durable events, and only they, are kept in `events.jsonl`; `seq` is gapless
over all attempts of a run, and where a step was done twice the later `attempt` counts. Gauges are
the latest state; those at the end of a step are kept in `gauges.jsonl`. This module knows the
shapes and nothing of who writes or reads them.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

MARK = "@@coloop "
"""A line on the driver's standard output that begins so carries one event, the gauges, or those of
a step, as JSON."""


class RunStateName(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self in (RunStateName.STOPPED, RunStateName.FINISHED, RunStateName.FAILED)


class _Message(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, ser_json_inf_nan="null"
    )


class RunError(_Message):
    """Why a run failed, in words for the person who started it."""

    code: str
    message: str
    node: str | None = None
    stage: str | None = None
    """The stage that was at work."""
    hint: str | None = None
    traceback: str | None = None


class Event(_Message):
    """What all events share."""

    seq: int = 0
    """1, 2, 3, ... without a gap over the whole run."""
    at: str = ""
    """UTC, ISO 8601."""
    run: str = ""
    attempt: int = 1
    node: str | None = None
    step: int | None = None


class RunStateEvent(Event):
    """The run entered a state; of a failure `node` and `step` say where."""

    type: Literal["run.state"] = "run.state"
    state: RunStateName
    message: str | None = None
    error: RunError | None = None


class PhaseEvent(Event):
    """A phase of the schedule began or ended."""

    type: Literal["phase"] = "phase"
    phase: str
    index: int
    """Place in the schedule with its repeats written out."""
    round: int = 1
    learn: list[str] = []
    steps: int | None = None
    """Steps it will take, where that is known before."""
    state: Literal["started", "finished"]


class StageStarted(Event):
    """A stage began."""

    type: Literal["stage.started"] = "stage.started"
    stage: str
    phase: str
    pool: str | None = None
    """Where it runs; null: in the driver."""
    evaluation: str | None = None
    """The probe for which it runs, outside the step."""
    round: int | None = None
    """Where edges with `rounds` repeat it: in which round."""


class StageFinished(Event):
    """A stage ended."""

    type: Literal["stage.finished"] = "stage.finished"
    stage: str
    phase: str
    seconds: float
    samples: int = 0
    tokens: int = 0
    pool: str | None = None
    """Where it ran; null: in the driver."""
    waited_seconds: float = 0.0
    """Before it began, for either of two reasons."""
    starved_seconds: float = 0.0
    """Its lane was free, what it reads was not there yet."""
    blocked_seconds: float = 0.0
    """What it reads was there, its lane was not free yet."""
    rank_seconds: list[float] | None = None
    """Where several ranks of its pool worked on it: how long each had work."""
    evaluation: str | None = None
    """The probe for which it ran, outside the step."""
    round: int | None = None
    """Where edges with `rounds` repeat it: in which round."""


class MetricsEvent(Event):
    """Numbers of one node at one step."""

    type: Literal["metrics"] = "metrics"
    metrics: dict[str, float | None]
    evaluation: bool = False
    """Read by an evaluation; else by the node's own stage."""


class SampleEvent(Event):
    """Texts of this step; the whole of them lies at `path` in the run folder."""

    type: Literal["sample"] = "sample"
    path: str
    tokens: str | None = None
    """A file of the run folder, where a line says what the loss saw of each token of a row: its
    fields are told at `coloop.runtime.reporting.samples`."""
    rows: list[dict[str, Any]] = []


class CheckpointEvent(Event):
    """A checkpoint was written."""

    type: Literal["checkpoint"] = "checkpoint"
    path: str
    best: bool = False
    metrics: dict[str, float | None] = {}


class EditEvent(Event):
    """Hot fields were changed while the run was going."""

    type: Literal["edit"] = "edit"
    changes: dict[str, Any]
    by: str = "user"


class AlertEvent(Event):
    """Something a person should look at; `node` says where, if it is at one node."""

    type: Literal["alert"] = "alert"
    level: Literal["info", "warning", "error"]
    code: str
    message: str
    hint: str | None = None
    """What to do next."""
    metric: str | None = None
    """The metric of the node that shows it."""
    cleared: bool = False
    """The alert of this code, node and metric that was raised before holds no longer."""


class DiagnosticEvent(Event):
    """A finding of the checks, as it stood when the run began."""

    type: Literal["diagnostic"] = "diagnostic"
    diagnostic: dict[str, Any]


class LogEvent(Event):
    """A line of the run's story; `detail` carries its numbers."""

    type: Literal["log"] = "log"
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: str
    detail: dict[str, Any] | None = None


RunEvent = Annotated[
    RunStateEvent
    | PhaseEvent
    | StageStarted
    | StageFinished
    | MetricsEvent
    | SampleEvent
    | CheckpointEvent
    | EditEvent
    | AlertEvent
    | DiagnosticEvent
    | LogEvent,
    Field(discriminator="type"),
]


class Progress(_Message):
    """How far the running stage is."""

    stage: str
    done: int
    total: int
    unit: str


class NodeGauge(_Message):
    """What one node does at present. Of its stages the one that takes most time gives the rates."""

    samples_per_second: float | None = None
    """While that stage runs: how fast it is, not how much the loop gets of it."""
    tokens_per_second: float | None = None
    """While that stage runs."""
    wall_samples_per_second: float | None = None
    """Over the whole time of the last steps: times `step_seconds` it is what a step brings."""
    wall_tokens_per_second: float | None = None
    """Over the whole time of the last steps."""
    busy: float | None = None
    """Share of the last steps' time that this node's stages took, 0 to 1."""
    starved: float | None = None
    """Share of that time in which it could have worked, but what it reads was not there yet."""
    blocked: float | None = None
    """Share of that time in which what it reads was there, but others were at work in its pool."""
    evaluation: bool = False
    """Works in evaluations only: time and shares are those between evaluations, up to now."""
    queue: int | None = None
    """Rows that wait to be read by it."""
    staleness: float | None = None
    """A learner: versions by which its weights were ahead of those that wrote what it learned from
    last."""


class StageGauge(_Message):
    """One stage over the last steps of the phase."""

    seconds: float
    """Mean of a run of the stage."""
    share: float
    """Share of the step, 0 to 1."""
    samples_per_second: float | None = None
    """While it runs."""
    tokens_per_second: float | None = None
    """While it runs."""
    wall_samples_per_second: float | None = None
    """Over the whole time of the last steps: times `step_seconds` it is what a step brings."""
    wall_tokens_per_second: float | None = None
    """Over the whole time of the last steps."""
    starved: float = 0.0
    """Share of the step in which its lane was free and what it reads was not there yet."""
    blocked: float = 0.0
    """Share of the step in which what it reads was there and its lane was not free yet."""
    evaluation: bool = False
    """Runs in evaluations only: time and share are those between evaluations, up to now. The
    `evaluate` of a probe is a whole evaluation, the stages that ran for it included."""


class EdgeGauge(_Message):
    """What one edge delivers; rows are counted once however many stages of a node read them."""

    rows_per_second: float | None = None
    """Over the whole time of the last steps of the phase: times `step_seconds` it is what a step
    brings, 0 where nothing flows in this phase, null before the phase's first step is done."""
    rows: int = 0
    """Since the run was started or resumed; grows while rows flow."""
    queue: int = 0
    """Rows that are there and that its reader has not taken yet."""
    staleness: float | None = None
    """Into a learner's teaching port: versions by which its weights were ahead of those that wrote
    what it learned from last; null before it learned."""
    evaluation: bool = False
    """Flows in evaluations only: a second of the time between evaluations, up to now."""


class StageAtWork(_Message):
    """A stage that is running."""

    stage: str
    node: str
    pool: str | None = None
    """Null: in the driver."""
    step: int
    evaluation: str | None = None
    round: int | None = None
    """Where edges with `rounds` repeat it: in which round."""
    progress: Progress | None = None


class Gauges(_Message):
    """The latest state of a run: replaced whole."""

    at: str
    run: str
    attempt: int = 1
    state: RunStateName
    step: int
    steps_total: int | None = None
    """Of the whole run; null where that is not known."""
    is_bound: bool = False
    """`steps_total` is the most that it can be: a trigger or a full buffer may end a phase
    before."""
    phase: str | None = None
    phase_step: int | None = None
    phase_steps: int | None = None
    stage: str | None = None
    """The first of those at work, in the order of the plan."""
    at_work: list[StageAtWork] = []
    """All that run at once."""
    eta_seconds: float | None = None
    """Steps and evaluations that are left, by the mean of those measured last."""
    step_seconds: float | None = None
    """Mean of the phase's last steps, without the evaluations between them."""
    window_steps: int = 0
    """Of how many steps `step_seconds` is the mean."""
    phase_step_seconds: float | None = None
    """Mean of all steps of the phase that this attempt took, without evaluations."""
    evaluation_share: float = 0.0
    """Share of the time that went into evaluations, 0 to 1."""
    progress: Progress | None = None
    nodes: dict[str, NodeGauge] = {}
    stages: dict[str, StageGauge] = {}
    edges: dict[str, EdgeGauge] = {}
    """By `node.port->node.port`, or the edge's id."""
    bottleneck: str | None = None
    """The stage that takes most of a step."""
    memory: dict[str, int] = {}


class StepGauges(_Message):
    """How a run stood when a step, an evaluation after it, or the run ended."""

    seq: int
    """Of the newest event by then."""
    attempt: int = 1
    step: int
    """The newest step that was done; of steps that overlap `gauges.step` is the one begun last."""
    gauges: Gauges


class StopRequest(_Message):
    """Ask the run to write a checkpoint and stop."""

    type: Literal["stop"] = "stop"
    by: str = "user"


class EditRequest(_Message):
    """Ask the run to change hot fields."""

    type: Literal["edit"] = "edit"
    changes: dict[str, Any]
    by: str = "user"


class CheckpointRequest(_Message):
    """Ask the run to write a checkpoint now."""

    type: Literal["checkpoint"] = "checkpoint"
    by: str = "user"


ControlRequest = Annotated[
    StopRequest | EditRequest | CheckpointRequest, Field(discriminator="type")
]
CONTROL_ADAPTER: TypeAdapter[ControlRequest] = TypeAdapter(ControlRequest)


def utc_now() -> str:
    """The present moment as it stands in events."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
