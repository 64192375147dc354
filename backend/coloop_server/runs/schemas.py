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
from coloop.spec.placement import ControlKind
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
    """Start even if the estimate exceeds the memory budget."""
    trust: bool = False
    """Run Python code from a model's folder, if this server allows it."""


class NewRun(ResumeRun):
    yaml: str = Field(max_length=MAX_YAML)
    """The loop as text."""
    loop_id: str | None = Field(default=None, max_length=64)
    """Id of the saved loop that `yaml` is a version of."""
    name: str | None = Field(default=None, max_length=200)
    """Name of the run; null: the name of the loop."""
    tags: list[Tag] = Field(default=[], max_length=20)
    priority: int = Field(default=0, ge=-100, le=100)
    """Queued runs with a higher priority start first."""
    set: dict[str, JsonValue] = {}
    """Settings to override for this run: new values by path, e.g. `schedule.steps`."""
    seed: int | None = Field(default=None, ge=0)
    """Overrides `run.seed` of the loop; null: keep it."""
    resume: str | None = Field(default=None, max_length=128)
    """Id of a run from whose last checkpoint this run starts."""
    in_one_process: bool = False
    """Run it in a single process on the server's machine, without Ray."""


class ForkRun(ResumeRun):
    yaml: str | None = Field(default=None, max_length=MAX_YAML)
    """Loop of the new run as text; null: the loop of the run that is forked."""
    name: str | None = Field(default=None, max_length=200)
    """Name of the new run; null: the name of the run that is forked, with `(fork)`."""
    set: dict[str, JsonValue] = {}
    """Settings to override: new values by path, e.g. `schedule.steps`."""
    step: int | None = Field(default=None, ge=0)
    """Step of the checkpoint to start from; null: the last one."""


class CompareValues(Input):
    """New values of settings, as a fork of the run would have them."""

    set: dict[str, JsonValue] = Field(max_length=1000)
    """New values by path, e.g. `schedule.steps`."""


class StopRun(Input):
    force: bool = False
    """End the run at once, without a checkpoint."""


class EditRun(Input):
    changes: dict[str, JsonValue] = Field(min_length=1)
    """New values by path; only settings that can be changed during a run."""
    by: str = Field(default="user", max_length=100)
    """Who changes them, as the run's events will say."""


class ChangeRun(Input):
    """Properties to change. Those left out or null stay as they are."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    tags: list[Tag] | None = Field(default=None, max_length=20)
    priority: int | None = Field(default=None, ge=-100, le=100)
    """Queued runs with a higher priority start first. Can only be changed while the run is
    queued."""


class MoveRun(Input):
    before: str | None = Field(max_length=128)
    """Id of the queued run to start before; null: after all others."""


class AcknowledgeAlert(Input):
    seq: int = Field(ge=1)
    """`seq` of the alert."""


class RunAlert(Output):
    """The latest alert with this code, node and metric."""

    code: str
    node: str | None
    metric: str | None
    """Metric of the node that shows the problem; null if it was found otherwise."""
    state: Literal["raised", "told_again", "cleared"]
    """`raised`, `told_again` if it was reported again since, or `cleared` if it no longer holds."""
    level: Literal["warning", "error"]
    message: str
    hint: str | None
    """What to do next; null if there is no advice."""
    step: int | None
    seq: int
    """`seq` of the event that raised it."""
    raised_at: str | None
    told: int
    """How often it was reported since it was raised, from 1."""
    cleared_at: str | None
    """When it ceased to hold; null while it holds."""
    acknowledged_at: str | None
    """When a user acknowledged it; null if nobody has."""


class Run(Output):
    id: str
    name: str
    state: RunStateName
    tags: list[str]
    priority: int
    """Queued runs with a higher priority start first."""
    place: int | None = None
    """Place in the queue, 1 for the run that starts next; null if it is not queued."""
    loop_id: str | None
    """Id of the saved loop that it was started from; null if there is none."""
    loop_version: int | None
    """Version of that loop with exactly the text that was run; null if there is none."""
    parent_id: str | None
    """Id of the run from whose checkpoint it started; null if there is none."""
    spec_hash: str | None
    """Hash of the loop without layout, notes, formatting and defaults: equal for loops that run the
    same."""
    launcher: str | None
    """`process` or `ray_job`; null if it has not started, or was not started by this server."""
    folder: str
    """Path of the run folder on the server."""
    attempt: int
    """1, and one more with each resume."""
    step: int | None
    """Newest step that was reported; null if there is none."""
    steps_total: int | None
    """Number of steps of the whole run; null if not known."""
    last_seq: int | None
    """`seq` of the newest event; null if there is none."""
    metrics: dict[str, float | None]
    """Latest value of each metric, by `node.metric`."""
    alerts: list[RunAlert]
    """Alerts, the most recently reported last."""
    message: str | None
    """Message of the latest change of state; null if there is none."""
    error: RunError | None
    """Why it failed; null if it has not."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    heartbeat_at: datetime | None
    """Time of the newest event or gauges."""


class RunEvents(Output):
    events: list[RunEvent]
    last_seq: int
    """`seq` of the newest event of the run."""
    has_more: bool
    """Whether there are events after the last one of `events`."""


class RunGauges(Output):
    gauges: list[StepGauges]
    """In order: the gauges at the requested event, and those after it. If no step had ended by
    then, the first ones of the run."""
    last_seq: int
    """`seq` of the newest event of the run."""
    has_more: bool
    """Whether there are gauges after the last ones of `gauges`."""
    is_recorded: bool
    """Whether the run recorded gauges; runs of older versions did not."""


class RunMarks(Output):
    events: list[RunEvent]
    """The newest 4,000 events on states, phases, checkpoints, edits, alerts and diagnostics, in
    order."""
    seq: int
    """`seq` of the newest event that was taken into account."""


class CurveOutline(Output):
    """Facts of a curve, without its points."""

    node: str
    """`run` for metrics of the whole run."""
    metric: str
    points: int
    """Number of points."""
    first_step: int
    last_step: int
    last: float | None
    """Value of the last point; null if it is not finite."""


class RunSeries(Output):
    """A curve in buckets of steps; each list has one entry per bucket. The first and the last point
    of the requested range have a bucket of their own."""

    node: str
    """`run` for metrics of the whole run."""
    metric: str
    step: list[int]
    """Last step with a value in the bucket."""
    count: list[int]
    """Number of finite values in the bucket; if 0, `min`, `max`, `mean` and `last` are null."""
    min: list[float | None]
    """Smallest finite value of the bucket."""
    max: list[float | None]
    """Largest finite value of the bucket."""
    mean: list[float | None]
    """Mean of the finite values of the bucket."""
    last: list[float | None]
    """Last finite value of the bucket."""
    seconds: list[float | None]
    """Running time of the run up to `step`, in seconds, without breaks between attempts."""
    tokens: list[float | None]
    """Number of tokens learned from up to `step`."""


class RunCurves(Output):
    run: str
    """Id of the run."""
    seq: int
    """The curves contain all events up to this `seq` and none after it. A stream with it as `after`
    continues without a gap."""
    attempt: int
    first_step: int | None
    last_step: int | None
    width: int
    """Steps per bucket, a power of two; 1: every point is in `series`."""
    stages: dict[str, float]
    """Seconds that each stage ran, by its name. Stages that ran for an evaluation count in its
    `evaluate` stage only."""
    curves: list[CurveOutline]
    """All curves of the run."""
    series: list[RunSeries]
    """The requested curves."""


class CurvesOfRuns(Output):
    width: int
    """Steps per bucket, the same for all runs."""
    runs: list[RunCurves]


class OutcomeReading(Output):
    step: int
    value: float


class RunOutcome(Output):
    """The main metric of a run: its first, best and last reading."""

    run: str
    """Id of the run."""
    metric: str | None
    """`node.metric` by which runs of the loop are compared; null if nothing measures it."""
    title: str
    """Name of the metric in words; empty without one."""
    better: Literal["higher", "lower"]
    start: OutcomeReading | None
    """Null before the first reading, as are the others."""
    best: OutcomeReading | None
    end: OutcomeReading | None


class RunOutcomes(Output):
    outcomes: list[RunOutcome]


class FamilyRun(Output):
    """A run in a tree of forks."""

    run: str
    """Id of the run."""
    name: str
    state: RunStateName
    parent: str | None
    """Id of the run that it was forked from; null for the first one, or if that was deleted."""
    from_step: int | None
    """Step of the checkpoint that it started from; null if it began anew or the step is not
    known."""
    step: int | None
    """Newest step that was reported; null if there is none."""
    changes: list[str]
    """Differences from the loop of its parent, in words."""
    outcome: RunOutcome


class RunFamily(Output):
    runs: list[FamilyRun]
    """All runs that come from the same first run, parents before their forks."""


class SpecChange(Output):
    """One field in which two loops differ."""

    path: str
    words: str
    """The whole change in one line of text."""
    where: str
    """What is changed, in words, e.g. `actor · rollout.top_p`."""
    before: str
    """Old value as text."""
    after: str
    """New value as text."""
    old: JsonValue
    """Old value; null if it was the default, or not there."""
    new: JsonValue
    """New value; null if it is the default, or not there any more."""


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
    """A text that a model generated, with its scores. There may be further fields."""

    model_config = ConfigDict(extra="allow", from_attributes=False)

    seq: int
    """`seq` of the event with the sample."""
    step: int | None = None
    node: str | None = None
    """Node that generated it."""
    id: JsonValue = None
    prompt: JsonValue = None
    """A text, or a chat as a list of messages."""
    completion: JsonValue = None
    reward: Number = None
    advantage: Number = None
    scores: Numbers = {}
    """Scores by scorer."""
    group: JsonValue = None
    """Rows with the same group are completions of one prompt."""
    parents: JsonValue = None
    """Ids of the rows of this step that it is based on, nearest first, e.g. the answer that a
    critique judges."""
    has_tokens: bool = False
    """Whether its tokens were recorded as the loss saw them."""


class Samples(Output):
    rows: list[SampleRow]
    """Newest step first."""
    steps: list[int]
    """All steps with recorded samples, in order."""


Bits = Annotated[list[bool], BeforeValidator(lambda value: value if _is_list(value) else [])]
NumberList = Annotated[
    list[Number], BeforeValidator(lambda value: value if _is_list(value) else [])
]


def _is_list(value: object) -> bool:
    return isinstance(value, list)


class SampleTokens(Output):
    """The tokens of one completion as the loss saw them. Each list has one entry per token, or is
    empty if the loss has no such value."""

    model_config = ConfigDict(extra="ignore", from_attributes=False)

    id: JsonValue
    node: str | None = None
    """Node that generated the row."""
    by: str | None = None
    """Node that learned from the row."""
    port: str | None = None
    """Teaching port at which it learned."""
    algorithm: str | None = None
    ids: list[int] = []
    """Ids in the model's vocabulary."""
    pieces: list[str] = []
    """Text of each token, special tokens included."""
    mask: Bits = []
    """Whether the token is trained; tokens of tool results are not."""
    log_prob: NumberList = []
    advantage: NumberList = []
    log_ratio: NumberList = []
    """Log-probability under the new policy minus that under the old one."""
    kl: NumberList = []
    """KL divergence to the reference model, as the loss estimates it."""
    entropy: NumberList = []
    clipped: Bits = []
    """Whether the loss stopped the gradient of the token."""
    rewards: dict[str, NumberList] = {}
    """Scores of single tokens, by scorer; null for tokens without a score."""


class RunCheckpoints(Output):
    steps: list[int]
    """Steps with a complete checkpoint, in order."""


class TokensOfSamples(Output):
    step: int
    rows: list[SampleTokens]


class SampleSteps(Output):
    steps: list[int]
    """Steps with recorded samples, in order; a step that was repeated is listed once."""


class StageSeconds(Output):
    """Estimated or measured times and memory. There may be further fields."""

    model_config = ConfigDict(extra="allow")

    step_seconds: Number = None
    """Mean seconds per step of the report's phase, without evaluations if measured; null if not
    known."""
    steps: int = 0
    """Number of steps over which `step_seconds` is the mean; 0 for estimated times."""
    phases: Numbers = {}
    """Seconds per step of each phase, by its name."""
    stages: Numbers = {}
    """Mean seconds of one run of each stage, by its name."""
    tokens_per_second: Numbers = {}
    """Tokens per second while a stage runs, by its name."""
    memory_bytes: Numbers = {}
    """Most memory of one GPU, or without GPUs of one process, during each stage, by its name."""


class RunReference(Output):
    """A control of a run."""

    run: str
    """Id of the control's run."""
    kind: ControlKind
    seed: int
    state: RunStateName


class RunReport(Output):
    """Estimated and measured times of a run. There may be further fields."""

    model_config = ConfigDict(extra="allow")

    phase: str | None = None
    """Phase that took most of the run, to which the times belong; null if no step has ended."""
    predicted: Annotated[StageSeconds, BeforeValidator(_object_or_empty)] = StageSeconds()
    measured: Annotated[StageSeconds, BeforeValidator(_object_or_empty)] = StageSeconds()
    controls: list[RunReference] = []
    """The controls of the run, oldest first."""


class NewControl(ResumeRun):
    kind: ControlKind
    """What the control leaves out."""
    seeds: int = Field(default=3, ge=1, le=20)
    """Number of seeds, from that of the run on."""
    full: bool = True
    """Also run the whole loop over the seeds."""
    learner: str | None = Field(default=None, max_length=64)
    """The main learner; null: the one that the main metric of the loop measures."""


class ControlChoice(Output):
    kind: ControlKind
    title: str
    """What the kind changes in any loop."""
    has: bool
    """Whether the run has a control of this kind."""
    says: str
    """What is changed in this loop, in a sentence, or why there is no such control."""
    changes: list[SpecChange]
    """The differences between the two loops."""


class ControlChoices(Output):
    learner: str
    """The main learner."""
    learners: list[str]
    """All learners of the loop."""
    metric: str | None
    """`node.metric` by which runs are compared; null if nothing measures the main learner."""
    choices: list[ControlChoice]


class GroupRun(Output):
    """One run of a group over seeds."""

    run: str
    """Id of the run."""
    name: str
    seed: int
    state: RunStateName
    step: int | None
    steps_total: int | None
    steps: list[int]
    """Steps of the readings of the metric, in order."""
    values: list[float]
    """The reading at each of `steps`."""
    begins_at: int
    """Step before the phase in which the groups begin to differ; 0: from the first step on."""
    start: float | None
    """Last reading up to `begins_at`, else the first one; null without readings."""
    end: float | None
    """Last reading; null without readings."""


class ControlArm(Output):
    """The runs of one loop over seeds. Means and spread are of finished runs."""

    kind: ControlKind
    """`full`: the loop of the run itself."""
    runs: list[GroupRun]
    """By seed."""
    start: float | None
    """Mean of `start`; null without finished runs."""
    end: float | None
    """Mean of `end`; null without finished runs."""
    spread: float | None
    """Sample standard deviation of `end`; null with fewer than two finished runs."""


class NewSweep(ResumeRun):
    yaml: str = Field(max_length=MAX_YAML)
    """The loop as text."""
    tried: dict[str, list[JsonValue]] = Field(max_length=50)
    """By path, the values to try; all combinations are run."""
    seeds: int = Field(default=1, ge=1, le=20)
    """Number of seeds, from that of the loop on."""
    name: str | None = Field(default=None, max_length=150)
    """Beginning of the runs' names; null: the name of the loop."""
    tags: list[Tag] = Field(default=[], max_length=19)
    loop_id: str | None = Field(default=None, max_length=64)
    """Id of the saved loop that `yaml` is a version of."""
    in_one_process: bool = False
    """Run them in a single process each on the server's machine, without Ray."""


class StopLosers(Input):
    keep: int = Field(ge=1, le=200)
    """Number of combinations of values to keep, the best so far."""


class SweepVariant(Output):
    """The runs of one combination of values. Means and spread are of finished runs."""

    values: dict[str, JsonValue]
    """By path."""
    label: str
    """The values in words."""
    runs: list[GroupRun]
    """By seed."""
    start: float | None
    """Mean of the first readings; null without finished runs."""
    end: float | None
    """Mean of the last readings; null without finished runs."""
    spread: float | None
    """Sample standard deviation of `end`; null with fewer than two finished runs."""
    so_far: float | None
    """Mean over the seeds of the reading at `step` of the sweep; null if none has reached it."""
    rank: int | None
    """Place by `so_far`, from 1; null without it."""


class SweepOutline(Output):
    sweep: str
    """Name of the group."""
    loop: str
    """Name of the loop."""
    fields: list[str]
    """Paths of the settings that are tried."""
    runs: int
    going_on: int
    """Runs that have not ended."""
    created_at: datetime
    """When its newest run was queued."""


class RunSweep(Output):
    sweep: str
    """Name of the group."""
    loop: str
    """Name of the loop."""
    metric: str | None
    """`node.metric` by which the runs are compared; null if nothing measures the loop."""
    title: str
    """Name of the metric in words; empty without one."""
    better: Literal["higher", "lower"]
    fields: list[str]
    """Paths of the settings that are tried."""
    step: int | None
    """Last step that all combinations with readings have reached; null without readings."""
    variants: list[SweepVariant]
    """In the order in which they were queued."""


class ControlVerdict(Output):
    kind: ControlKind
    difference: float | None
    """Mean end of the loop minus that of its control."""
    leads: bool | None
    """Whether the difference is larger than the spread of either; null with fewer than two
    seeds."""


class RunControls(Output):
    run: str
    """Id of the run."""
    learner: str
    """The main learner."""
    metric: str | None
    """`node.metric` by which the arms are compared; null if nothing measures the main learner."""
    begins: str | None
    """Phase in which the arms begin to differ; null: the whole run."""
    arms: list[ControlArm]
    """The loop itself first."""
    comparisons: list[ControlVerdict]
    """One for each other arm."""


class RunSpec(Output):
    yaml: str
    """The loop that the run was started with, as text."""
    spec: dict[str, Any] | None
    """The same as data; null if it cannot be read."""


class StreamHello(Output):
    """First message of a stream: the state of the run. It is sent again when the state changes."""

    kind: Literal["hello"] = "hello"
    run: Run
    seq: int
    """`seq` of the newest event of the run."""


class StreamEvents(Output):
    """New events in order, without gaps."""

    kind: Literal["events"] = "events"
    events: list[RunEvent]


class StreamGauges(Output):
    """The latest gauges. Gauges between two messages are left out."""

    kind: Literal["gauges"] = "gauges"
    gauges: Gauges


class StreamPing(Output):
    """Sent when there is nothing new, to show that the server is alive."""

    kind: Literal["ping"] = "ping"
    at: datetime


class StreamEnd(Output):
    """The last message: the run has ended and all its events were sent."""

    kind: Literal["end"] = "end"
    run: Run


StreamMessage = Annotated[
    StreamHello | StreamEvents | StreamGauges | StreamPing | StreamEnd,
    Field(discriminator="kind"),
]
