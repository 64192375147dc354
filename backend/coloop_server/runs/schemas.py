"""What the routes of runs take and give, and the messages of the live stream."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from coloop.events import Gauges, RunError, RunEvent, RunStateName
from coloop_server.runs.summary import finite_or_none, is_number

MAX_YAML = 4 * 1024 * 1024


class Input(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Output(BaseModel):
    model_config = ConfigDict(extra="forbid", from_attributes=True, use_attribute_docstrings=True)


class NewRun(Input):
    yaml: str = Field(max_length=MAX_YAML)
    """The loop, as text."""
    loop_id: str | None = Field(default=None, max_length=64)
    """The saved loop that this is a version of."""
    name: str | None = Field(default=None, max_length=200)
    """What to call the run. Default: the loop's name."""
    set: dict[str, JsonValue] = {}
    """Fields to override for this run, path to value."""
    seed: int | None = Field(default=None, ge=0)
    """The seed of this run in place of the loop's own."""
    force: bool = False
    """Start although the estimate is over the memory budget."""
    trust: bool = False
    """Run the Python that a model's folder brings, where this server allows it at all."""
    resume: str | None = Field(default=None, max_length=128)
    """A run whose last checkpoint this new run starts from."""


class ForkRun(Input):
    yaml: str | None = Field(default=None, max_length=MAX_YAML)
    """The loop of the new run. Default: the loop of the run that it is forked from."""
    name: str | None = Field(default=None, max_length=200)
    set: dict[str, JsonValue] = {}
    step: int | None = Field(default=None, ge=0)
    """The checkpoint to start from. Default: the last one."""
    force: bool = False
    trust: bool = False
    """Run the Python that a model's folder brings, where this server allows it at all."""


class ResumeRun(Input):
    force: bool = False
    """Start although the estimate is over the memory budget."""
    trust: bool = False
    """Run the Python that a model's folder brings, where this server allows it at all."""


class StopRun(Input):
    force: bool = False
    """End the run at once, without a checkpoint."""


class EditRun(Input):
    changes: dict[str, JsonValue] = Field(min_length=1)
    """Hot fields to change, path to value."""
    by: str = Field(default="user", max_length=100)


class RenameRun(Input):
    name: str = Field(min_length=1, max_length=200)


class ImportRun(Input):
    path: str = Field(max_length=4096)
    """Folder of a run that `coloop run` wrote, inside the allowed roots."""


class Run(Output):
    id: str
    name: str
    state: RunStateName
    loop_id: str | None
    loop_version: int | None
    """The version of that loop which was run, where it is one."""
    parent_id: str | None
    """The run whose checkpoint this one started from."""
    spec_hash: str | None
    launcher: str | None
    """`process` or `ray_job`; null for a run that the server did not start."""
    folder: str
    attempt: int
    """1, and one more with each resume."""
    step: int | None
    steps_total: int | None
    last_seq: int | None
    """`seq` of the newest event."""
    metrics: dict[str, float | None]
    """The latest value of each metric, as `node.metric`."""
    message: str | None
    error: RunError | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    heartbeat_at: datetime | None
    """The newest sign of life: the time of the last event or gauges."""


class RunEvents(Output):
    events: list[RunEvent]
    last_seq: int
    """`seq` of the newest event of the run."""
    has_more: bool
    """Whether there are events after the last one given here."""


def _number_or_none(value: object) -> object:
    """Rows come from a file: what is no number counts as none."""
    return finite_or_none(value) if isinstance(value, int | float) and is_number(value) else None


def _object_or_empty(value: object) -> object:
    return value if isinstance(value, dict) else {}


Number = Annotated[float | None, BeforeValidator(_number_or_none)]
Numbers = Annotated[dict[str, Number], BeforeValidator(_object_or_empty)]


class SampleRow(Output):
    """What a model wrote and what it was worth, and whatever else the run gave the row."""

    model_config = ConfigDict(extra="allow", from_attributes=False)

    seq: int
    """The event that told of it."""
    step: int | None = None
    node: str | None = None
    """Who wrote it."""
    id: JsonValue = None
    prompt: JsonValue = None
    """A text, or a chat as a list of turns."""
    completion: JsonValue = None
    reward: Number = None
    advantage: Number = None
    scores: Numbers = {}
    """By scorer."""


class Samples(Output):
    rows: list[SampleRow]
    """Newest step first."""
    steps: list[int]
    """All steps that samples were kept of."""


class SampleSteps(Output):
    steps: list[int]
    """In order; where a step was done twice it is told of once."""


class StageSeconds(Output):
    """Times as they were predicted or as they were measured."""

    model_config = ConfigDict(extra="allow")

    step_seconds: Number = None
    stages: Numbers = {}
    """Seconds of each stage in a step."""


class RunReport(Output):
    """What was predicted against what was measured, and whatever else the run's report says."""

    model_config = ConfigDict(extra="allow")

    predicted: Annotated[StageSeconds, BeforeValidator(_object_or_empty)] = StageSeconds()
    measured: Annotated[StageSeconds, BeforeValidator(_object_or_empty)] = StageSeconds()


class RunSpec(Output):
    yaml: str
    """The loop as this run was given it."""
    spec: dict[str, Any] | None


class StreamHello(Output):
    """The first message: how the run stands, and up to where there are events. Sent again when the
    state changes."""

    kind: Literal["hello"] = "hello"
    run: Run
    seq: int


class StreamEvents(Output):
    """Durable events in order, without a gap."""

    kind: Literal["events"] = "events"
    events: list[RunEvent]


class StreamGauges(Output):
    """The latest gauges; whatever came between two messages is left out."""

    kind: Literal["gauges"] = "gauges"
    gauges: Gauges


class StreamPing(Output):
    """Nothing new; the connection and the server are alive."""

    kind: Literal["ping"] = "ping"
    at: datetime


class StreamEnd(Output):
    """The run is over and every event of it was sent."""

    kind: Literal["end"] = "end"
    run: Run


StreamMessage = Annotated[
    StreamHello | StreamEvents | StreamGauges | StreamPing | StreamEnd,
    Field(discriminator="kind"),
]
