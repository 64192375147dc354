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
from coloop.runtime.schedule.units import Notice, Task, UnitList
from coloop.workers.messages import Poll


@dataclass(slots=True, kw_only=True)
class StepInFlight:
    """A step that has started and is not finished."""

    step_context: StepContext
    unrolled: Unrolled
    """The results of its stages."""
    units: UnitList
    notices: list[Notice] = field(default_factory=list)
    """Not reported yet."""
    about: Any = None
    """Data of the caller, which gets it back when the step is finished."""
    began: float = field(default_factory=time.monotonic)
    has_learned: bool = False
    """A learner has taken its update; from then on a stop lets the step finish."""
    is_cancelled: bool = False
    has_failed: bool = False
    memory: dict[str, tuple[Role, Any]] = field(default_factory=dict)
    """What roles that worked for it remembered before, to roll it back."""
    ready_at: dict[tuple[str, int], float] = field(default_factory=dict)
    ended: "list[Work]" = field(default_factory=list)
    early: dict[tuple[str, int], "Early"] = field(default_factory=dict)
    """By stage name and number of the run: stages that may begin, or have begun, before their
    turn."""
    begun: set[str] = field(default_factory=set)
    """Names of stages that have begun with all their rows."""
    begun_parts: set[str] = field(default_factory=set)
    """Names of stages that have begun with some of their rows."""

    @property
    def step(self) -> int:
        return self.step_context.step

    @property
    def in_order(self) -> "list[Work]":
        return sorted(self.ended, key=lambda work: work.task.place)

    def note_ready(self, task: Task) -> None:
        self.ready_at.setdefault(task.key, time.monotonic())

    def take_back(self) -> None:
        """Restore what roles remembered before it."""
        for role, memory in self.memory.values():
            role.recall(memory)
        self.memory.clear()


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    task: Task
    flight: StepInFlight
    role: Role
    memory: Any
    """What the role remembered before."""
    starved: float = 0.0
    """Seconds for which its lane was free and its inputs were not ready."""
    blocked: float = 0.0
    """Seconds for which its inputs were ready and its lane was not free."""
    has_begun: bool = False
    begun: list[Any] = field(default_factory=list)
    """The role's results for the first rows."""
    is_part: bool = False
    """Whether it is working on the first rows now."""
    has_all_rows: bool = False
    """Whether the first rows are from a complete table; false if more rows are still to come."""
    worked: float = 0.0
    """Seconds of work on the first rows."""
    poll: Poll | None = None
    rank_seconds: list[float] = field(default_factory=list)
    """How long each rank of its pool had work, if there are several."""
    held_bytes: int = 0
    """Largest memory seen of a GPU of its pool, or of a process without one; 0: unknown."""
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
        """Note its progress; returns whether it must stop."""
        if poll is not None and poll.rank_seconds:
            known = self.rank_seconds or [0.0] * len(poll.rank_seconds)
            self.rank_seconds = list(map(add, known, poll.rank_seconds))
        else:
            self.poll = poll
            held = poll.held_bytes if poll is not None else None
            self.held_bytes = max(self.held_bytes, held or 0)
        return self.flight.is_cancelled

    def tick(self, done: int = 0, total: int = 0) -> None:
        """Note its progress in rows. Raises `StopRequested` if it must stop."""
        poll = Poll(done=done, total=total, unit="rows") if total else None
        if self.heard(poll):
            raise StopRequested("while a stage was running")


@dataclass(slots=True, kw_only=True)
class Early:
    """A stage that may begin with some of its rows before the others."""

    task: Task
    parts: list[Table] = field(default_factory=list)
    """Rows that have come and are not in work yet."""
    work: Work | None = None
    """None: it has not begun."""
