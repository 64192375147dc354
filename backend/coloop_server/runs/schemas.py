"""Requests and responses of the run routes, and messages of the live stream."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
)

from coloop.runtime.run_files.events import Gauges, RunError, RunEvent, RunStateName, StepGauges
from coloop_server import schemas
from coloop_server.runs.summary import finite_or_none, is_number
from coloop_server.schemas import MAX_YAML, Input


class Output(schemas.Output):
    model_config = ConfigDict(extra="forbid")


Tag = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, to_lower=True, max_length=40, pattern=r"^[\w.:/+-][\w .:/+-]*$"
    ),
]
"""Lower-case letters, digits, spaces and `_ . : / + -`."""


class ResumeRun(Input):
    force: bool = False
    """Start although the estimate is over the memory budget."""
    trust: bool = False
    """Run the Python that a model's folder brings, where this server allows it at all."""


class NewRun(ResumeRun):
    yaml: str = Field(max_length=MAX_YAML)
    """The loop, as text."""
    loop_id: str | None = Field(default=None, max_length=64)
    """The saved loop that this is a version of."""
    name: str | None = Field(default=None, max_length=200)
    """What to call the run. Default: the loop's name."""
    tags: list[Tag] = Field(default=[], max_length=20)
    priority: int = Field(default=0, ge=-100, le=100)
    """Of queued runs the greatest starts first."""
    set: dict[str, JsonValue] = {}
    """Fields to override for this run, path to value."""
    seed: int | None = Field(default=None, ge=0)
    """The seed of this run in place of the loop's own."""
    resume: str | None = Field(default=None, max_length=128)
    """A run whose last checkpoint this new run starts from."""
    in_one_process: bool = False
    """Run it in one process on the server's machine, without Ray."""


class ForkRun(ResumeRun):
    yaml: str | None = Field(default=None, max_length=MAX_YAML)
    """The loop of the new run. Default: the loop of the run that it is forked from."""
    name: str | None = Field(default=None, max_length=200)
    set: dict[str, JsonValue] = {}
    step: int | None = Field(default=None, ge=0)
    """The checkpoint to start from. Default: the last one."""


class CompareValues(Input):
    """Values by path, as a new run from this one would have them."""

    set: dict[str, JsonValue] = Field(max_length=1000)


class StopRun(Input):
    force: bool = False
    """End the run at once, without a checkpoint."""


class EditRun(Input):
    changes: dict[str, JsonValue] = Field(min_length=1)
    """Hot fields to change, path to value."""
    by: str = Field(default="user", max_length=100)


class ChangeRun(Input):
    """What is left out stays as it is."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    tags: list[Tag] | None = Field(default=None, max_length=20)
    priority: int | None = Field(default=None, ge=-100, le=100)
    """Of queued runs the greatest starts first."""


class MoveRun(Input):
    before: str | None = Field(max_length=128)
    """The queued run that it is to start before; null: after all others."""


class AcknowledgeAlert(Input):
    seq: int = Field(ge=1)
    """Of the alert, as the run has it."""


class RunAlert(Output):
    """Something that a person should look at; of each code, node and metric the newest."""

    code: str
    node: str | None
    metric: str | None
    """The metric of the node that shows it."""
    state: Literal["raised", "told_again", "cleared"]
    level: Literal["warning", "error"]
    message: str
    hint: str | None
    """What to do next."""
    step: int | None
    seq: int
    """The event that raised it."""
    raised_at: str | None
    told: int
    """How often, since it was raised."""
    cleared_at: str | None
    acknowledged_at: str | None
    """When a user took note of it."""


class Run(Output):
    id: str
    name: str
    state: RunStateName
    tags: list[str]
    priority: int
    """Of queued runs the greatest starts first."""
    place: int | None = None
    """1 for the queued run that starts next; null for runs that are not queued."""
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
    alerts: list[RunAlert]
    """The last told of at the end."""
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


class RunGauges(Output):
    gauges: list[StepGauges]
    """In order: those that held at the event that was asked for, then the following ones. Where no
    step had ended by then, the first ones of the run."""
    last_seq: int
    """`seq` of the newest event of the run."""
    has_more: bool
    """Whether there are gauges after the last ones given here."""
    is_recorded: bool
    """False for a run of a version that kept no gauges."""


class RunMarks(Output):
    events: list[RunEvent]
    """The newest 4,000 states, phases, checkpoints, edits, alerts and diagnostics, in order."""
    seq: int
    """No event after this one is counted in."""


class CurveOutline(Output):
    """What is known of a curve without its points."""

    node: str
    """`run` for metrics of no node."""
    metric: str
    points: int
    first_step: int
    last_step: int
    last: float | None


class RunSeries(Output):
    """A curve in buckets; lists of the same length. The first and the last point of what was asked
    for are buckets of their own."""

    node: str
    metric: str
    step: list[int]
    """The last step of each bucket that has a value."""
    count: list[int]
    """Values that are numbers; where there is none the next four are null."""
    min: list[float | None]
    max: list[float | None]
    mean: list[float | None]
    last: list[float | None]
    seconds: list[float | None]
    """At work since the start, up to `step`; breaks between attempts do not count."""
    tokens: list[float | None]
    """Learned from up to `step`."""


class RunCurves(Output):
    run: str
    seq: int
    """Every event up to this one is counted in, and none after it: a stream `after` it goes on
    without a gap."""
    attempt: int
    first_step: int | None
    last_step: int | None
    width: int
    """Steps in a bucket, a power of two; 1: every point."""
    stages: dict[str, float]
    """Seconds that each stage was at work; what ran for an evaluation is in its `evaluate` only."""
    curves: list[CurveOutline]
    """All that the run has."""
    series: list[RunSeries]
    """Those that were asked for."""


class CurvesOfRuns(Output):
    width: int
    """Steps in a bucket, the same for all."""
    runs: list[RunCurves]


class SpecChange(Output):
    """One field in which two loops differ."""

    path: str
    words: str
    """All of it in one line."""
    where: str
    """What it is of."""
    before: str
    after: str
    old: JsonValue
    """Null where it is left to its default, or not there."""
    new: JsonValue


class SpecChanges(Output):
    changes: list[SpecChange]


def _number_or_none(value: object) -> object:
    """Rows come from a file: a value that is no number becomes None."""
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
    group: JsonValue = None
    """Rows of one prompt have the same."""
    parents: JsonValue = None
    """Ids of rows of this step that it answers to, the nearest first: a critique names what it
    judges."""
    has_tokens: bool = False
    """Whether what the loss saw of its tokens is kept."""


class Samples(Output):
    rows: list[SampleRow]
    """Newest step first."""
    steps: list[int]
    """All steps that samples were kept of."""


Bits = Annotated[list[bool], BeforeValidator(lambda value: value if _is_list(value) else [])]
NumberList = Annotated[
    list[Number], BeforeValidator(lambda value: value if _is_list(value) else [])
]


def _is_list(value: object) -> bool:
    return isinstance(value, list)


class SampleTokens(Output):
    """What the loss saw of each token of one row's completion; every list has an entry a token, or
    is empty where the loss has no such number."""

    model_config = ConfigDict(extra="ignore", from_attributes=False)

    id: JsonValue
    node: str | None = None
    """Who wrote it."""
    by: str | None = None
    """Who learned from it."""
    port: str | None = None
    algorithm: str | None = None
    ids: list[int] = []
    pieces: list[str] = []
    """The text of each token; together they are the completion, with its marks."""
    mask: Bits = []
    """Whether the token is trained; what others said is not."""
    log_prob: NumberList = []
    advantage: NumberList = []
    log_ratio: NumberList = []
    """New policy to old."""
    kl: NumberList = []
    """To the reference, by the loss's own estimator."""
    entropy: NumberList = []
    clipped: Bits = []
    """Whether the loss stopped the token's gradient."""
    rewards: dict[str, NumberList] = {}
    """By scorer, scores that stand at tokens; null where there is none."""


class RunCheckpoints(Output):
    steps: list[int]
    """Of the checkpoints that are kept whole, in order."""


class TokensOfSamples(Output):
    step: int
    rows: list[SampleTokens]


class SampleSteps(Output):
    steps: list[int]
    """In order; where a step was done twice it is told of once."""


class StageSeconds(Output):
    """Times as they were predicted or as they were measured."""

    model_config = ConfigDict(extra="allow")

    step_seconds: Number = None
    """Mean of the steps of the report's phase, without evaluations."""
    steps: int = 0
    """Of how many steps that is the mean; 0 for what was predicted."""
    phases: Numbers = {}
    """The same of every phase, by its name."""
    stages: Numbers = {}
    """Seconds of a run of each stage."""
    tokens_per_second: Numbers = {}
    """Of each stage while it runs."""
    memory_bytes: Numbers = {}
    """By stage, the most that one GPU, or one process without a GPU, holds in it."""


class RunReport(Output):
    """What was predicted against what was measured, and whatever else the run's report says."""

    model_config = ConfigDict(extra="allow")

    phase: str | None = None
    """The phase that took most of the run: of its steps the times are told."""
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
