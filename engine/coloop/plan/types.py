"""The compiled plan: what runs where, in which order, and why. Machine-written, complete, plain
values.

The plan of a phase is a pure function of the spec; nothing here moves while a run goes on.
"""

from typing import Any, Literal

from pydantic import AliasChoices, Field

from coloop.plan.settings.settings import Decision, EnginePlan, Planned, UpdateSettings
from coloop.spec.dtypes import Dtypes


class Stage(Planned):
    """One part of a step: a node and what it does."""

    name: str
    """`node.verb`; for a joint update `group.learn`."""
    node: str
    verb: str
    kind: str
    edges: tuple[str, ...] = ()
    """Keys of the edges that deliver to this stage."""
    after: tuple[str, ...] = ()
    """Names of the stages of its step that it waits for."""
    members: tuple[str, ...] = ()
    """Learn stages: the roles that share the update."""
    pool: str | None = None
    """None: in the driver."""
    within: tuple[str, ...] = ()
    """Slices (by their filter) and regions of rounds (by their name) that hold it, outermost
    first."""
    calls: tuple[str, ...] = ()
    """Nodes that it calls by handles: what they do happens in this stage, under their names."""
    foresees: bool = False
    """It scores before its node learns, for evaluations of the step's own tables alone."""

    @property
    def givers(self) -> tuple[str, ...]:
        """Nodes whose tables it fills."""
        return self.node, *self.calls


class Rows(Planned):
    """How many rows there are in one step, as far as the spec is certain of it."""

    most: int | None = None
    """None: nobody knows before the run."""
    least: int = 0
    """So many come whatever the models write and the rules cut."""
    text: str
    """`32`, `at most 24`, `unknown`."""
    breakdown: str = Field(default="", validation_alias=AliasChoices("breakdown", "ladder"))
    """How the number comes about, e.g. `8 rows of problems x 4 completions`. Older run
    folders call it `ladder`."""


class StageRows(Planned):
    """The rows of one stage: what it loads, writes, scores, keeps, credits, learns or stores."""

    stage: str
    rows: Rows
    edges: dict[str, Rows] = Field({})
    """What each edge brings to it, by the edge's key."""
    passes: int = 1
    """How often at most refills and rounds repeat it; the rows are those of one pass."""


class Learner(Planned):
    """One role of an update, and its rhythm."""

    node: str
    ports: tuple[str, ...]
    """Its live teaching ports."""
    rows: Rows
    every: int = 1
    after: int = 0
    updates: int = 1
    when: Literal["after_score", "before_score"] = "after_score"
    kept_until: int | None = None
    """Rows are kept over steps until there are as many."""


class Update(Planned):
    """The learn stage of one weights group: who trains in it, and in which order."""

    stage: str
    group: str
    learners: tuple[Learner, ...]
    """In the order of `schedule.order` where they take turns, else of the spec."""
    is_joint: bool
    """Several roles are one loss and one optimizer step; else each has steps of its own."""


class Refill(Planned):
    """A slice of stages that a filter with `fill` repeats until it has enough."""

    filter: str
    sources: tuple[str, ...]
    """The nodes from which the slice starts."""
    stages: tuple[str, ...]
    """Names, in order; the filter's own stage is the last."""
    first_pass: tuple[str, ...]
    """Those of them that run in the first pass; the others have run before the slice."""
    shared: tuple[str, ...] = ()
    """Of the others, those with which several slices begin: each sees that one run of theirs, and
    none of what the passes of another slice add."""
    once: tuple[str, ...] = ()
    """Keys of edges that deliver in the first pass alone."""
    max_rounds: int
    only_lacking: bool = False
    """`groups: all` from a node on: only rows that still lack a group go round again."""


class Rounds(Planned):
    """A region of stages that edges with `rounds` repeat within a step."""

    name: str
    """After the first edge that closes it: `rounds of a.rollouts->b.rows`."""
    edges: tuple[str, ...]
    """Keys of the edges that close it: they deliver from the second round on."""
    stages: tuple[str, ...]
    """Names, in order."""
    once: tuple[str, ...] = ()
    """Keys of edges that deliver in the first round alone."""
    rounds: int
    branch: Literal["one", "all", "lines"]
    """How conversations go on."""


class PhasePlan(Planned):
    """One phase of the schedule."""

    name: str
    index: int
    """Among the phases as written, groups counted through."""
    rounds: int = 1
    """How often the groups around it repeat it."""
    learn: tuple[str, ...] = ()
    """Live teaching ports, `node.port`."""
    fill: tuple[str, ...] = ()
    """Buffers that it writes."""
    steps: int | None = None
    """Where they are known before the run."""
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
    """Of the stages that run for several rounds."""
    rows: tuple[StageRows, ...] = ()
    """Of the stages that have rows, in their order."""
    updates: tuple[Update, ...] = ()
    """Of the learn stages, in their order."""
    probes: tuple["ProbePlan", ...] = ()
    """Evaluations that run otherwise in this phase, because edges of theirs are dead or alive in it
    alone."""
    overrides: dict[str, Any] = Field({})
    """The values that the phase and its group `set`."""
    dead_edges: tuple[str, ...] = ()
    """Edges of weight 0 in this phase."""


class ProbePlan(Planned):
    """An evaluation: when it is due and what runs for it."""

    node: str
    every: int
    instead_of: str | None = None
    of: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    """With `instead_of`: the slice that runs once more on the probe's rows."""
    writers: tuple[str, ...] = ()
    """The first actors of the slice: `greedy` and `samples` are set on these."""
    sources: tuple[Stage, ...] = ()
    """What loads the probe's own rows."""
    regions: tuple[Rounds, ...] = ()
    """Of its stages that run for several rounds."""
    of_stages: tuple[Stage, ...] = ()
    """With `of`: scorers that must see the probe's rows."""
    greedy: bool = False
    """The writers write one greedy text for each row."""
    samples: int | None = None
    """Completions of the writers for each row, where the probe or a metric of it says so."""
    rows: tuple[StageRows, ...] = ()
    """Of the stages that run for one reading; with `greedy`, of the greedy texts."""


class WeightsPlan(Planned):
    """A set of weights, the roles that use it, and its homes."""

    name: str
    members: tuple[str, ...]
    trains: bool
    source: str
    """`scratch tiny-qwen3`, `copy of actor`, `snapshot of policy`, ..."""
    backend: str | None = None
    """What trains them, or what spreads those that do not train over their pool; None: they are
    whole in each process."""
    dtypes: Dtypes
    """How they are held, computed with and written with."""
    base: str | None = None
    """Of an adapter: the group that brings the frozen weights that it stands on, maybe itself."""
    beside: str | None = None
    """The group of the same pool that holds these for it; None: it holds them itself."""
    pool: str
    """Where they are held: the home of the trainer, or of weights that do not train."""
    update: UpdateSettings | None = None
    """How they learn, where they train."""
    engines: tuple[EnginePlan, ...] = ()
    """Homes of rollout engines, one a pool in which members write."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether a service has them, and nothing of them is here."""
        return bool(self.engines) and all(engine.engine == "remote" for engine in self.engines)

    @property
    def follows_adapter(self) -> bool:
        """Whether it is a snapshot on the frozen weights of its source: the adapter is all that it
        is given."""
        return self.base is not None and not self.trains


class PoolPlan(Planned):
    """A part of the hardware and who lives there."""

    name: str
    workers: int
    gpus: int
    threads_per_worker: int = 1
    groups: tuple[str, ...]
    """Weights groups with a home here."""


class Plan(Planned):
    """A whole compiled loop."""

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
