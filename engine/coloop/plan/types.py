"""The compiled plan: what runs where, in which order, and why. It depends only on the spec and
never changes during a run."""

from typing import Any, Literal

from pydantic import AliasChoices, Field

from coloop.plan.settings.settings import Decision, EnginePlan, Planned, UpdateSettings
from coloop.spec.dtypes import Dtypes


class Stage(Planned):
    """A node and its verb, as part of a step."""

    name: str
    """`node.verb`; for a joint update `group.learn`."""
    node: str
    verb: str
    kind: str
    edges: tuple[str, ...] = ()
    """Edges that deliver to it, by key."""
    after: tuple[str, ...] = ()
    """Stages of the step that it waits for, by name."""
    members: tuple[str, ...] = ()
    """Learn stages: nodes that share the update."""
    pool: str | None = None
    within: tuple[str, ...] = ()
    """Slices (named by filter) and regions of rounds that hold it, outermost first."""
    calls: tuple[str, ...] = ()
    """Nodes that it calls by handles; their work is part of this stage."""
    foresees: bool = False
    """It scores before its node learns, for evaluations of the step's own tables only."""

    @property
    def givers(self) -> tuple[str, ...]:
        """Nodes whose tables it fills."""
        return self.node, *self.calls


class Rows(Planned):
    """Row counts of a step, as far as the spec determines them."""

    most: int | None = None
    """None: unknown before the run."""
    least: int = 0
    """Guaranteed rows."""
    text: str
    """`32`, `at most 24`, `unknown`."""
    breakdown: str = Field(default="", validation_alias=AliasChoices("breakdown", "ladder"))
    """How the number comes about, e.g. `8 rows of problems x 4 completions`. Older run
    folders call it `ladder`."""


class StageRows(Planned):
    stage: str
    rows: Rows
    edges: dict[str, Rows] = Field({})
    passes: int = 1
    """Most runs by refills and rounds; the rows are those of one."""


class Learner(Planned):
    """A node of an update, and how often it learns."""

    node: str
    ports: tuple[str, ...]
    """Live teaching ports."""
    rows: Rows
    every: int = 1
    after: int = 0
    updates: int = 1
    when: Literal["after_score", "before_score"] = "after_score"
    kept_until: int | None = None
    """Rows are collected over steps until there are this many."""


class Update(Planned):
    """The learn stage of one weights group."""

    stage: str
    group: str
    learners: tuple[Learner, ...]
    """In the order of `schedule.order` if they take turns, or else of the spec."""
    is_joint: bool
    """Several nodes share one loss and optimizer step; otherwise each has its own steps."""


class Refill(Planned):
    """A slice of stages that a filter with `fill` repeats until it has enough rows."""

    filter: str
    sources: tuple[str, ...]
    """Nodes at the start of the slice."""
    stages: tuple[str, ...]
    """Names, in order; the filter's own stage is last."""
    first_pass: tuple[str, ...]
    """Those that run in the first pass; the others have run before the slice."""
    shared: tuple[str, ...] = ()
    """Stages that several slices share. Each slice sees their single run, and no rows of other
    slices' passes."""
    once: tuple[str, ...] = ()
    """Edges that deliver in the first pass only."""
    max_rounds: int
    only_lacking: bool = False
    """`groups: all` from a node on: only rows that lack a group are repeated."""


class Rounds(Planned):
    """A region of stages that edges with `rounds` repeat within a step."""

    name: str
    """Named after the first closing edge: `rounds of a.rollouts->b.rows`."""
    edges: tuple[str, ...]
    """Closing edges, which deliver from the second round on."""
    stages: tuple[str, ...]
    once: tuple[str, ...] = ()
    """Edges that deliver in the first round only."""
    rounds: int
    branch: Literal["one", "all", "lines"]
    """How conversations continue."""


class PhasePlan(Planned):
    name: str
    index: int
    """Among the phases as written, across groups."""
    rounds: int = 1
    """How often the groups around it repeat it."""
    learn: tuple[str, ...] = ()
    """Live teaching ports, `node.port`."""
    fill: tuple[str, ...] = ()
    steps: int | None = None
    """None: not known before the run."""
    epochs: float | None = None
    epochs_of: str | None = None
    """The dataset or buffer whose passes are counted."""
    until: tuple[str, ...] = ()
    """Buffers that must be full."""
    max_steps: int | None = None
    ends: str
    """In words: `300 steps`, `1 epoch of gold`, `until pool.full`."""
    stages: tuple[Stage, ...]
    refills: tuple[Refill, ...] = ()
    regions: tuple[Rounds, ...] = ()
    rows: tuple[StageRows, ...] = ()
    updates: tuple[Update, ...] = ()
    """In stage order."""
    probes: tuple["ProbePlan", ...] = ()
    """Evaluations that differ in this phase because of edges that are live or dead only here."""
    overrides: dict[str, Any] = Field({})
    """By path, the values that the phase and its group `set`."""
    dead_edges: tuple[str, ...] = ()
    """Edges of weight 0 in this phase."""


class ProbePlan(Planned):
    """An evaluation: when it is due, and its stages."""

    node: str
    every: int
    instead_of: str | None = None
    of: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    """With `instead_of`: the slice that runs on the probe's rows."""
    writers: tuple[str, ...] = ()
    """First generating nodes of the slice, to which `greedy` and `samples` apply."""
    sources: tuple[Stage, ...] = ()
    """Stages that load the probe's rows."""
    regions: tuple[Rounds, ...] = ()
    of_stages: tuple[Stage, ...] = ()
    """With `of`: scorers that need the probe's rows."""
    greedy: bool = False
    """One greedy completion per row."""
    samples: int | None = None
    """Completions per row, if the probe or one of its metrics sets it."""
    rows: tuple[StageRows, ...] = ()
    """Rows of the stages of one evaluation; with `greedy`, of its completions."""


class WeightsPlan(Planned):
    """A set of weights, the nodes that use it, and where it is held."""

    name: str
    members: tuple[str, ...]
    trains: bool
    source: str
    backend: str | None = None
    """Trains them, or shards frozen weights over their pool; None: each process has all of them."""
    dtypes: Dtypes
    """For storage, computation and generation."""
    base: str | None = None
    """For an adapter, the group with the frozen base weights, maybe itself."""
    beside: str | None = None
    """The group of the same pool that holds them for this one; None: itself."""
    pool: str
    """Pool of the trainer, or of frozen weights."""
    update: UpdateSettings | None = None
    """If they train."""
    engines: tuple[EnginePlan, ...] = ()
    """One per pool in which members generate."""

    @property
    def is_elsewhere(self) -> bool:
        return bool(self.engines) and all(engine.engine == "remote" for engine in self.engines)

    @property
    def follows_adapter(self) -> bool:
        """Whether it is a snapshot on the frozen weights of its source, so only the adapter is
        copied."""
        return self.base is not None and not self.trains


class PoolPlan(Planned):
    """A part of the hardware and the groups on it."""

    name: str
    workers: int
    gpus: int
    threads_per_worker: int = 1
    groups: tuple[str, ...]
    """Weights groups held here."""


class Plan(Planned):
    coloop: Literal[1] = 1
    name: str
    spec_hash: str
    pools: tuple[PoolPlan, ...]
    weights: tuple[WeightsPlan, ...]
    phases: tuple[PhasePlan, ...]
    probes: tuple[ProbePlan, ...] = ()
    decisions: tuple[Decision, ...] = ()
    explain: tuple[str, ...] = ()

    def phase(self, name: str) -> PhasePlan:
        return next(phase for phase in self.phases if phase.name == name)
