"""State of the scheduler for steps in flight and running stages.

StepInFlight   a step ─┬─> Work    a stage in its lane, then with its outcome
                       └─> Early   a stage that may start before its turn
"""

import time
from dataclasses import dataclass, field
from operator import add
from typing import Any

from coloop.data.tables import Table
from coloop.errors import StopRequested
from coloop.plan.types import Stage
from coloop.runtime.roles.protocol import Outcome, Role
from coloop.runtime.schedule.calls import StepContext, Unrolled
from coloop.runtime.schedule.units import Notice, Task, Together
from coloop.workers.messages import Poll


@dataclass(slots=True, kw_only=True)
class StepInFlight:
    """A step that has started and is not finished."""

    step_context: StepContext
    unrolled: Unrolled
    """What its stages gave."""
    units: Together
    notices: list[Notice] = field(default_factory=list)
    """What came up and nobody has told yet."""
    about: Any = None
    """What the one who began it wants to know when it is done."""
    began: float = field(default_factory=time.monotonic)
    has_learned: bool = False
    """A learner has taken its update: from there on the step is finished, whatever is asked."""
    is_cancelled: bool = False
    has_failed: bool = False
    memory: dict[str, tuple[Role, Any]] = field(default_factory=dict)
    """What the roles that have worked for it remembered before."""
    ready_at: dict[tuple[str, int], float] = field(default_factory=dict)
    ended: "list[Work]" = field(default_factory=list)
    early: dict[tuple[str, int], "Early"] = field(default_factory=dict)
    """Stages that may begin, or have begun, before their turn, by name and turn."""
    begun: set[str] = field(default_factory=set)
    """Names of the stages that have begun with all their rows."""
    begun_parts: set[str] = field(default_factory=set)
    """Names of those that have begun with some of them."""

    @property
    def step(self) -> int:
        return self.step_context.step

    @property
    def in_order(self) -> "list[Work]":
        """Stages that have ended, in the order of the plan."""
        return sorted(self.ended, key=lambda work: work.task.place)

    def note_ready(self, task: Task) -> None:
        """What a stage reads is there, for the first time."""
        self.ready_at.setdefault(task.key, time.monotonic())

    def take_back(self) -> None:
        """Roles remember nothing of it."""
        for role, memory in self.memory.values():
            role.recall(memory)
        self.memory.clear()


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """A stage at work in its lane."""

    task: Task
    flight: StepInFlight
    role: Role
    memory: Any
    """What the role remembered before."""
    starved: float = 0.0
    """Seconds for which its lane was free and what it reads was not there."""
    blocked: float = 0.0
    """Seconds for which what it reads was there and its lane was not free."""
    has_begun: bool = False
    begun: list[Any] = field(default_factory=list)
    """What the role gave for rows that came before the others."""
    is_part: bool = False
    """Such rows are in its lane now."""
    has_all_rows: bool = False
    """They are the first of a table that is whole."""
    worked: float = 0.0
    """Seconds for which its role worked on them."""
    poll: Poll | None = None
    """How far it is, as it said last."""
    rank_seconds: list[float] = field(default_factory=list)
    """For how long each rank of its pool had work, where there are several."""
    held_bytes: int = 0
    """Most that a GPU of its pool, or a process without one, was seen to hold; 0: not seen."""
    began_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    outcome: Outcome = field(init=False)

    @property
    def stage(self) -> Stage:
        return self.task.stage

    def ended(self, future: object) -> None:
        del future
        self.ended_at = time.monotonic()

    @property
    def seconds(self) -> float:
        return self.worked + (self.ended_at or time.monotonic()) - self.began_at

    def heard(self, poll: Poll | None) -> bool:
        """Its host says how far it is; true where it shall give up."""
        if poll is not None and poll.rank_seconds:
            known = self.rank_seconds or [0.0] * len(poll.rank_seconds)
            self.rank_seconds = list(map(add, known, poll.rank_seconds))
        else:
            self.poll = poll
            held = poll.held_bytes if poll is not None else None
            self.held_bytes = max(self.held_bytes, held or 0)
        return self.flight.is_cancelled

    def tick(self, done: int = 0, total: int = 0) -> None:
        """Its role says how far it is.

        Raises:
            StopRequested: where it shall give up.
        """
        poll = Poll(done=done, total=total, unit="rows") if total else None
        if self.heard(poll):
            raise StopRequested("while a stage was running")


@dataclass(slots=True, kw_only=True)
class Early:
    """A stage that may begin with some of its rows before the others."""

    task: Task
    parts: list[Table] = field(default_factory=list)
    """Those that nobody has worked on yet."""
    work: Work | None = None
    """None: it has not begun."""
