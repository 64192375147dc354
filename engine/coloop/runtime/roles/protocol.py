"""The seam between time and roles: what a stage is given, and what it gives back.

A role is one node of the graph: tables in, tables out. It knows its own section of the spec and the
rows it is handed; it does not know phases, events or machines. Roles with weights reach them
through the `WorkerGroup`.
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
    """What roles share, as it is at one moment; each call carries its own."""

    spec: LoopSpec
    """The file, and the values that the phase, anneals, triggers and edits put over it."""
    lineage: Lineage
    """Of the edges that live in the phase."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """The values that lie over the file, by path; hosts keep the spec as it was given."""
    groups: Mapping[str, str]
    """Weights group of each node that has weights."""
    hosts: WorkerGroup
    root: Path
    """Folder from which relative paths in the spec are read."""
    seed: int


class Tick(Protocol):
    """Told now and then how far a role is with its rows, where it knows."""

    def __call__(self, done: int = 0, total: int = 0) -> None: ...


def go_on(done: int = 0, total: int = 0) -> None:
    """A tick that nobody hears."""
    del done, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One stage to be done."""

    stage: str
    verb: str
    step: int
    phase: str
    inputs: Mapping[str, Inputs] = field(default_factory=dict)
    """By input port; a port is missing where nothing was delivered."""
    live: frozenset[tuple[str, str]] = frozenset()
    """Live teaching ports, (node, port), of the node or of the group's members."""
    own: Table | None = None
    """Credit: what the learner itself wrote in this step."""
    member_inputs: Mapping[tuple[str, str], Inputs] = field(default_factory=dict)
    """Learn: by (member, port)."""
    items: Mapping[tuple[str, str], tuple[Unit, ...]] = field(default_factory=dict)
    """Learn: what the members' credit stages prepared."""
    salt: str = ""
    """Tells the draws of a probe, and of each pass of a refill, from those of the step."""
    turn: int = 1
    """How often the stage has run in this step, this time counted; rows that it writes anew get
    places after the old ones."""
    past: Sequence[Mapping[str, Row]] = ()
    """By id the rows that went on into the next round, for each round that is over."""
    greedy: bool = False
    is_line: bool = False
    """One completion for each prompt, whatever the node says."""
    samples: int | None = None
    """Probes: completions per prompt instead of the node's own number."""
    temperature: float | None = None
    """Probes: instead of the node's own."""
    is_probe: bool = False
    context: Context
    """The loop with the values of this moment."""
    tick: Tick = go_on
    """To be called while a role works in the driver: it shows how far the role is, and raises
    `StopRequested` where the run is to stop."""
    hand_on: Callable[[Table], None] | None = None
    """With `stream`, of a stage that writes: takes rows of its rollouts, each group whole, while
    others are still written."""
    share: float = 1.0
    """Of the rows, from 0 to 1, those that it is to begin with: the first of them."""
    callees: Mapping[str, "Role"] = field(default_factory=dict)
    """Nodes that it may call while it works, those that these call included."""
    asked: tuple[Row, ...] | None = None
    """Of a scorer that another node calls: the rows that take the place of its row ports."""
    begun: tuple[Any, ...] = ()
    """What the role gave when it began with some of these rows, as they came."""

    def delivered(self, *ports: str) -> Inputs:
        return {edge: table for port in ports for edge, table in self.inputs.get(port, {}).items()}

    def tables(self, port: str) -> tuple[Table, ...]:
        return tuple(self.inputs.get(port, {}).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a stage gave."""

    outputs: Mapping[str, Table] = field(default_factory=dict)
    """By output port."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the stage's node."""
    member_metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Learn: by role."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By metric of the stage's node, why it is not as it should be, and what to change."""
    items: Mapping[str, tuple[Unit, ...]] = field(default_factory=dict)
    """Credit: by teaching port."""
    samples: int = 0
    tokens: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)
    """For the step's line in the log: rows, groups, what each edge delivered."""
    alerts: Sequence[tuple[str, str]] = ()
    """(code, message) of what a person should look at."""
    failures: Sequence[RowFailure] = ()
    """Rows that could not be scored, by their place among those that came."""
    printed: str = ""
    """What the user's code printed."""
    beside: Mapping[tuple[str, str], Table] = field(default_factory=dict)
    """By (node, port), what nodes that it called wrote meanwhile."""
    is_idle: bool = False
    """Learn and write: the stage brought its goal no nearer."""
    reply: LearnReply | None = None
    """Learn: what the workers say of the update."""


class Role:
    """One node at work; by itself it remembers nothing between steps."""

    def run(self, call: Call) -> Outcome:
        """Do one stage of the node."""
        raise AssertionError(call.verb)

    def phase_starts(self, phase: PhasePlan, updates: Mapping[str, int], context: Context) -> None:
        """An entry of a phase begins.

        Args:
            updates: by learner, how many it will bring; missing where that is not known.
        """

    def can_begin(self, context: Context) -> bool:
        """Whether it is worth while to begin with some groups of its rows before the others are
        generated."""
        del context
        return False

    def take_printed(self) -> str:
        """What the user's code of the role printed since this was last asked."""
        return ""

    def remember(self) -> Any:
        """What it takes to undo a step that was not done; shared, not copied."""
        return None

    def recall(self, memory: Any) -> None:
        """Undo what was done since `remember`."""

    def state(self) -> dict[str, Any]:
        """What an exact resume needs, as JSON values; rows as `roles.rows.kept.Kept`."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` gave."""

    def close(self) -> None:
        """End what the role has started."""


class NodeRole(Role, Generic[N]):
    """The role of a node with a section of this kind."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node
        self._sandboxes: dict[int, Sandbox] = {}
        """In which the user's code of the node runs, by its place."""

    def _section(self, context: Context) -> N:
        """The node's section with the values of the moment."""
        return cast(N, context.spec.nodes[self._node])

    def _sandbox_at(self, index: int, code: str, function: str, tick: Tick) -> Sandbox:
        """The process in which a piece of the user's code runs, by its place."""
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
    """A role that can do some of its rows before the others. What it gives for a table does not
    depend on whether, or with which of them, it has begun."""

    def begin(self, call: Call) -> Any:
        """Work on a part of the rows; `run` finds what it gives in `Call.begun`."""
        ...
