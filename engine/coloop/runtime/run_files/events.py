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
    """State of a run; `stopped`, `finished` and `failed` are final."""

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
    """Why a run failed, for the user who started it."""

    code: str
    message: str
    node: str | None = None
    stage: str | None = None
    """Stage that was running, as `node.verb`; null if none was."""
    hint: str | None = None
    """What to do next; null if there is no advice."""
    traceback: str | None = None


class Event(_Message):
    """Fields of all events."""

    seq: int = 0
    """Number of the event: 1, 2, 3, ... without gaps over all attempts of the run."""
    at: str = ""
    """Time in UTC, ISO 8601, e.g. `2026-01-02T03:04:05.678Z`."""
    run: str = ""
    """Id of the run."""
    attempt: int = 1
    """1, and one more with each resume."""
    node: str | None = None
    """Node that it is about; null if it is about the whole run."""
    step: int | None = None


class RunStateEvent(Event):
    """The run entered a state. If it failed, `node` and `step` say where."""

    type: Literal["run.state"] = "run.state"
    state: RunStateName
    message: str | None = None
    error: RunError | None = None


class PhaseEvent(Event):
    """A phase of the schedule began or ended."""

    type: Literal["phase"] = "phase"
    phase: str
    index: int
    """Index in the schedule with its repeats written out, from 0."""
    round: int = 1
    """Which repeat of the group around it this is, from 1."""
    learn: list[str] = []
    """Teaching ports that are learned from, as `node.port`."""
    steps: int | None = None
    """Number of steps, if it is known when the phase starts; otherwise null."""
    state: Literal["started", "finished"]


class StageStarted(Event):
    """A stage began."""

    type: Literal["stage.started"] = "stage.started"
    stage: str
    """Name of the stage: `node.verb`."""
    phase: str
    pool: str | None = None
    """Pool in which it runs; null: it runs in the driver."""
    evaluation: str | None = None
    """Probe (`evaluate` node) for whose evaluation it runs; null: it is part of a step."""
    round: int | None = None
    """Round in which it runs, from 1, if edges with `rounds` repeat it; otherwise null."""


class StageFinished(Event):
    """A stage ended."""

    type: Literal["stage.finished"] = "stage.finished"
    stage: str
    """Name of the stage: `node.verb`."""
    phase: str
    seconds: float
    """Time that it ran, in seconds."""
    samples: int = 0
    """Number of rows that it processed."""
    tokens: int = 0
    pool: str | None = None
    """Pool in which it ran; null: it ran in the driver."""
    waited_seconds: float = 0.0
    """Time that it waited before it started: the sum of `starved_seconds` and `blocked_seconds`."""
    starved_seconds: float = 0.0
    """Time that it waited for its inputs while its pool was free."""
    blocked_seconds: float = 0.0
    """Time that it waited for its pool, which ran other stages, while its inputs were ready."""
    rank_seconds: list[float] | None = None
    """Time that each rank of its pool worked on it, in seconds; null if they were not measured
    separately."""
    evaluation: str | None = None
    """Probe (`evaluate` node) for whose evaluation it ran; null: it was part of a step."""
    round: int | None = None
    """Round in which it ran, from 1, if edges with `rounds` repeat it; otherwise null."""


class MetricsEvent(Event):
    """Metrics of one node, or of the whole run, at one step."""

    type: Literal["metrics"] = "metrics"
    metrics: dict[str, float | None]
    """Values by name; null if a value is not finite."""
    evaluation: bool = False
    """Whether an evaluation measured them. Otherwise they are from the node's own stage."""


class SampleEvent(Event):
    """Sample rows of a step."""

    type: Literal["sample"] = "sample"
    path: str
    """File in the run folder with the rows, one JSON object per line."""
    tokens: str | None = None
    """File in the run folder with the tokens of some rows as the loss saw them, one JSON object per
    row; null if there is none. `coloop.runtime.reporting.samples` documents the fields."""
    rows: list[dict[str, Any]] = []
    """A few of the rows, with shortened texts."""


class CheckpointEvent(Event):
    """A checkpoint was written."""

    type: Literal["checkpoint"] = "checkpoint"
    path: str
    """Folder of the checkpoint in the run folder."""
    best: bool = False
    """Whether it is the best so far by `run.best` of the loop."""
    metrics: dict[str, float | None] = {}
    """Values of the metrics of `run.best`; empty if it is not the best."""


class EditEvent(Event):
    """Settings were changed during the run."""

    type: Literal["edit"] = "edit"
    changes: dict[str, Any]
    """New values by path."""
    by: str = "user"
    """Who changed them."""


class AlertEvent(Event):
    """A problem that a person should look at; `node` is null if it is not at one node."""

    type: Literal["alert"] = "alert"
    level: Literal["info", "warning", "error"]
    code: str
    message: str
    hint: str | None = None
    """What to do next; null if there is no advice."""
    metric: str | None = None
    """Metric of the node that shows the problem; null if it was found otherwise."""
    cleared: bool = False
    """True: the earlier alert with this code, node and metric no longer holds."""


class DiagnosticEvent(Event):
    """A finding of the checks at the start of the run."""

    type: Literal["diagnostic"] = "diagnostic"
    diagnostic: dict[str, Any]
    """The finding, with the fields of `Diagnostic`."""


class LogEvent(Event):
    """A log message of the run."""

    type: Literal["log"] = "log"
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: str
    detail: dict[str, Any] | None = None
    """Data of the message; null if there is none."""


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
    """Progress of a running stage: `done` of `total`, counted in `unit`."""

    stage: str
    done: int
    total: int
    unit: str


class NodeGauge(_Message):
    """Current speed of one node. Rates are those of its stage that takes most time."""

    samples_per_second: float | None = None
    """Rows per second while that stage runs."""
    tokens_per_second: float | None = None
    """Tokens per second while that stage runs."""
    wall_samples_per_second: float | None = None
    """Rows per second over the whole time of the last steps, waits included. Times `step_seconds`
    it gives the rows of a step."""
    wall_tokens_per_second: float | None = None
    """Tokens per second over the whole time of the last steps, waits included."""
    busy: float | None = None
    """Share of the time of the last steps in which its stages ran, 0 to 1."""
    starved: float | None = None
    """Share of that time in which it waited for its inputs while its pool was free."""
    blocked: float | None = None
    """Share of that time in which its inputs were ready, but its pool ran other nodes."""
    evaluation: bool = False
    """Whether it works only in evaluations. Its rates and shares are then over the time between
    evaluations, up to now."""
    queue: int | None = None
    """Rows that wait at its inputs; null if it has none."""
    staleness: float | None = None
    """Of a learner: how many versions its weights were ahead of the weights that generated the rows
    it learned from last; otherwise null."""


class StageGauge(_Message):
    """Mean times and speed of one stage over the last steps of the phase."""

    seconds: float
    """Mean time of one run of the stage, in seconds."""
    share: float
    """Share of the steps' time in which it ran, 0 to 1."""
    samples_per_second: float | None = None
    """Rows per second while it runs."""
    tokens_per_second: float | None = None
    """Tokens per second while it runs."""
    wall_samples_per_second: float | None = None
    """Rows per second over the whole time of the last steps, waits included. Times `step_seconds`
    it gives the rows of a step."""
    wall_tokens_per_second: float | None = None
    """Tokens per second over the whole time of the last steps, waits included."""
    starved: float = 0.0
    """Share of the steps' time in which it waited for its inputs while its pool was free."""
    blocked: float = 0.0
    """Share of the steps' time in which its inputs were ready, but its pool ran other stages."""
    evaluation: bool = False
    """Whether it runs only in evaluations. Its rates and shares are then over the time between
    evaluations, up to now. The `evaluate` stage of a probe includes the stages that ran for it."""


class EdgeGauge(_Message):
    """Rows that an edge delivers. A row counts once, even if several stages of the node read it."""

    rows_per_second: float | None = None
    """Rows per second over the whole time of the last steps of the phase. Times `step_seconds` it
    gives the rows of a step. 0 if nothing flows in this phase, null before its first step has
    ended."""
    rows: int = 0
    """Rows delivered since the run was started or resumed."""
    queue: int = 0
    """Rows that were delivered and not read yet."""
    staleness: float | None = None
    """Of an edge to a teaching port: how many versions the learner's weights were ahead of the
    weights that generated the rows it learned from last. Null for other edges, and before it has
    learned."""
    evaluation: bool = False
    """Whether rows flow only in evaluations. The rate is then over the time between evaluations, up
    to now."""


class StageAtWork(_Message):
    """A stage that is running."""

    stage: str
    """Name of the stage: `node.verb`."""
    node: str
    pool: str | None = None
    """Pool in which it runs; null: it runs in the driver."""
    step: int
    evaluation: str | None = None
    """Probe (`evaluate` node) for whose evaluation it runs; null: it is part of a step."""
    round: int | None = None
    """Round in which it runs, from 1, if edges with `rounds` repeat it; otherwise null."""
    progress: Progress | None = None
    """Null until the stage reports progress."""


class Gauges(_Message):
    """Current state and speed of a run. Each message replaces the one before."""

    at: str
    """Time in UTC, ISO 8601, e.g. `2026-01-02T03:04:05.678Z`."""
    run: str
    """Id of the run."""
    attempt: int = 1
    state: RunStateName
    step: int
    """Step that began last, from 1; 0 before the first one."""
    steps_total: int | None = None
    """Number of steps of the whole run; null if not known."""
    is_bound: bool = False
    """Whether `steps_total` is only an upper limit, because a trigger or a full buffer may end a
    phase earlier."""
    phase: str | None = None
    phase_step: int | None = None
    """Steps of the phase that have begun; null if no phase is in progress."""
    phase_steps: int | None = None
    """Number of steps of the phase; null if not known."""
    stage: str | None = None
    """Running stage that is first in the order of the plan; null if none runs."""
    at_work: list[StageAtWork] = []
    """All running stages."""
    eta_seconds: float | None = None
    """Estimated seconds until the run ends, from the mean times of the last steps and evaluations;
    null if not known."""
    step_seconds: float | None = None
    """Mean time of the last steps of the phase in seconds, without evaluations; null before the
    first step has ended. In the first step of a phase, the mean of the phases before."""
    window_steps: int = 0
    """Number of steps over which `step_seconds` is the mean."""
    phase_step_seconds: float | None = None
    """Mean time of all steps of the phase in this attempt, in seconds, without evaluations; null
    before the first has ended."""
    evaluation_share: float = 0.0
    """Share of the time spent in evaluations, 0 to 1."""
    progress: Progress | None = None
    """Progress of `stage`."""
    nodes: dict[str, NodeGauge] = {}
    """By node."""
    stages: dict[str, StageGauge] = {}
    """By name of the stage: `node.verb`."""
    edges: dict[str, EdgeGauge] = {}
    """By id of the edge, or else as `node.port->node.port`."""
    bottleneck: str | None = None
    """Stage that takes most time in a step; null before the phase's first step has ended."""
    memory: dict[str, int] = {}
    """`rss_bytes`: memory of all worker processes in bytes. Empty if not known."""


class StepGauges(_Message):
    """Gauges of a run when a step, an evaluation after it, or the run ended."""

    seq: int
    """`seq` of the newest event at that time."""
    attempt: int = 1
    step: int
    """Last step that had ended. If steps overlap, `gauges.step` is the step that began last."""
    gauges: Gauges


class StopRequest(_Message):
    """Asks the run to write a checkpoint and stop."""

    type: Literal["stop"] = "stop"
    by: str = "user"


class EditRequest(_Message):
    """Asks the run to change settings."""

    type: Literal["edit"] = "edit"
    changes: dict[str, Any]
    """New values by path."""
    by: str = "user"


class CheckpointRequest(_Message):
    """Asks the run to write a checkpoint now."""

    type: Literal["checkpoint"] = "checkpoint"
    by: str = "user"


ControlRequest = Annotated[
    StopRequest | EditRequest | CheckpointRequest, Field(discriminator="type")
]
CONTROL_ADAPTER: TypeAdapter[ControlRequest] = TypeAdapter(ControlRequest)


def utc_now() -> str:
    """The present moment as it stands in events."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
