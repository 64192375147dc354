"""The interface between scheduler and roles: the inputs of a stage, and its outcome.

A role runs one node of the graph: tables in, tables out. It knows its own section of the spec and
the rows that it gets, but no phases, events or machines. Roles with weights use them through the
`WorkerGroup`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from coloop.algorithms.batch import Unit
from coloop.data.rewards.user_code import RowFailure
from coloop.data.tables import Row, Table
from coloop.plan.types import PhasePlan
from coloop.sandbox.process import Sandbox
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lineage import Lineage
from coloop.spec.reward import CODE_MEMORY_MIB
from coloop.workers.messages import LearnReply
from coloop.workers.worker_group import WorkerGroup

N = TypeVar("N")

Inputs = Mapping[Edge, Table]
"""What edges delivered, by edge in the order of the spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Shared by all roles in one step; each call has its own."""

    spec: LoopSpec
    """The loop with the values of the phase, anneals, triggers and edits."""
    lineage: Lineage
    """Of the live edges of the phase."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """These values by path; workers have the spec without them."""
    groups: Mapping[str, str]
    """Weights group of each node that has weights."""
    hosts: WorkerGroup
    root: Path
    """Base folder of relative paths in the spec."""
    seed: int
    folder: Path | None = None
    """Folder of the run; None: there is none, and nothing is kept between runs."""


class Tick(Protocol):
    """Called with a role's progress in rows, if known."""

    def __call__(self, done: int = 0, total: int = 0) -> None: ...


def go_on(done: int = 0, total: int = 0) -> None:
    """A tick that does nothing."""
    del done, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The inputs of one run of a stage."""

    stage: str
    verb: str
    step: int
    phase: str
    inputs: Mapping[str, Inputs] = field(default_factory=dict)
    """By input port, without ports that got nothing."""
    live: frozenset[tuple[str, str]] = frozenset()
    """Live teaching ports, (node, port), of the node or of the group's members."""
    own: Table | None = None
    """Credit: the rollouts of the learner in this step."""
    member_inputs: Mapping[tuple[str, str], Inputs] = field(default_factory=dict)
    """Learn: by (member, port)."""
    items: Mapping[tuple[str, str], tuple[Unit, ...]] = field(default_factory=dict)
    """Learn: the results of the members' credit stages, by (node, port)."""
    salt: str = ""
    """Part of the seeds: gives probes, refill passes and rounds other random draws than the
    step."""
    turn: int = 1
    """Number of this run of the stage in the step, from 1; later runs number their new rows after
    those of earlier ones."""
    past: Sequence[Mapping[str, Row]] = ()
    """For each finished round, the rows that continued, by id."""
    greedy: bool = False
    is_line: bool = False
    """One completion per prompt, whatever the node sets."""
    samples: int | None = None
    """Probes: completions per prompt, instead of the node's."""
    temperature: float | None = None
    """Probes: instead of the node's."""
    is_probe: bool = False
    context: Context
    """The loop with the values of this step."""
    tick: Tick = go_on
    """Called by a role that works in the driver, to report progress. Raises `StopRequested` if the
    run must stop."""
    hand_on: Callable[[Table], None] | None = None
    """With `stream`: called by a generate stage with rollouts of complete groups while others are
    still being generated."""
    share: float = 1.0
    """`begin`: the share of the rows to process first, from 0 to 1, from the start of the table."""
    callees: Mapping[str, "Role"] = field(default_factory=dict)
    """Nodes that the stage may call by handles, directly or indirectly."""
    asked: tuple[Row, ...] | None = None
    """If another node calls a scorer: the rows to score, instead of those at its ports."""
    begun: tuple[Any, ...] = ()
    """The results of `begin` for the first of these rows, in order."""

    def delivered(self, *ports: str) -> Inputs:
        return {edge: table for port in ports for edge, table in self.inputs.get(port, {}).items()}

    def tables(self, port: str) -> tuple[Table, ...]:
        return tuple(self.inputs.get(port, {}).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a stage."""

    outputs: Mapping[str, Table] = field(default_factory=dict)
    """By output port."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the stage's node."""
    member_metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Metrics of other nodes: learn, of the members; generate, of called nodes."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By metric of the stage's node, the cause of an abnormal value, and what to change."""
    items: Mapping[str, tuple[Unit, ...]] = field(default_factory=dict)
    """Credit: by teaching port."""
    samples: int = 0
    tokens: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)
    """For the step's line in the log: rows, groups, what each edge delivered."""
    alerts: Sequence[tuple[str, str]] = ()
    """(code, message) of each alert."""
    failures: Sequence[RowFailure] = ()
    """Rows that could not be scored, by index among the input rows."""
    printed: str = ""
    """Output that the user's code printed."""
    beside: Mapping[tuple[str, str], Table] = field(default_factory=dict)
    """By (node, port), rows that called nodes generated."""
    is_idle: bool = False
    """Learn and write: the stage had no effect."""
    reply: LearnReply | None = None
    """Learn: the workers' reply about the update."""


class Role:
    """Runs the stages of a node. This base class has no state between steps."""

    def run(self, call: Call) -> Outcome:
        """Run one stage of the node."""
        raise AssertionError(call.verb)

    def phase_starts(self, phase: PhasePlan, updates: Mapping[str, int], context: Context) -> None:
        """Called when a round of a phase begins. `updates`: number of updates in it by learner, if
        known."""

    def step_ends(self, tables: Mapping[tuple[str, str], Table], context: Context) -> None:
        """Called when a step is done. `tables`: its tables, by (node, output port)."""

    def can_begin(self, context: Context) -> bool:
        """Whether processing some groups of rows before the others are generated saves time."""
        del context
        return False

    def take_printed(self) -> str:
        """What the user's code has printed since the last call."""
        return ""

    def remember(self) -> Any:
        """The state to restore if a step is rolled back; shared, not copied."""
        return None

    def recall(self, memory: Any) -> None:
        """Restore the state that `remember` returned."""

    def state(self) -> dict[str, Any]:
        """The state for an exact resume, as JSON values; rows as `roles.rows.kept.Kept`."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the result of `state`."""

    def close(self) -> None:
        """End processes and connections that the role has started."""


class NodeRole(Role, Generic[N]):
    """The role of a node whose section has type `N`."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node
        self._sandboxes: dict[int, Sandbox] = {}
        """Sandboxes of the node's user code, by the index of its piece."""

    def _section(self, context: Context) -> N:
        """The node's section with the values of this step."""
        return cast(N, context.spec.nodes[self._node])

    def _sandbox_at(self, index: int, code: str, function: str, tick: Tick) -> Sandbox:
        """The sandbox for a piece of the user's code, started on first use."""
        if index not in self._sandboxes:
            self._sandboxes[index] = Sandbox(
                code, function=function, node=self._node, memory_mib=CODE_MEMORY_MIB
            )
        self._sandboxes[index].tick = tick
        return self._sandboxes[index]

    def take_printed(self) -> str:
        return "".join(sandbox.take_printed() for sandbox in [*self._sandboxes.values()])

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()
        self._sandboxes.clear()


@runtime_checkable
class PartRole(Protocol):
    """A role that can process some of its rows before the others. Its results for a table do not
    depend on whether, or with which rows, it has begun."""

    def begin(self, call: Call) -> Any:
        """Process a part of the rows; `run` finds the result in `Call.begun`."""
        ...
