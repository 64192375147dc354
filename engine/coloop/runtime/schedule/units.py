"""The stages of a step as a tree of units, each of which lists the tasks that may start now.

    UnitList ─┬─ Task     a stage
              └─ Repeated ─┬─ RefillPasses   until a filter has enough rows (`regions.py`)
                           └─ Region         in rounds (`rounds.py`)

A unit knows stages and tables; it knows nothing about lanes, phases, algorithms or machines. When
it ends, it notifies the list that contains it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coloop.plan.types import Refill, Rounds, Stage
from coloop.runtime.roles.protocol import Outcome
from coloop.runtime.schedule.calls import Calls, StepContext, Tables, Unrolled

Notice = tuple[str, str, str]
"""(node, code, message) of an alert for the user."""
Place = tuple[int, ...]
"""Position of a unit in its step: indices in each list, from the outermost."""
Ended = Callable[[], None]
"""Called when all units of a list have ended."""
UnitsOf = Callable[[Sequence[Stage], StepContext, Unrolled, Place, Ended], "UnitList"]
"""Builds the units of a list of stages at a place in the step."""


class Unit(ABC):
    """A part of a step: one stage, or repeated stages."""

    stages: tuple[Stage, ...]
    names: frozenset[str]
    """Names of the stages that have run when it has ended."""
    members: frozenset[str]
    """`names`, and those of stages that first run before it and that it repeats."""
    waits: frozenset[str]
    """Names of the stages that must end before it starts."""
    is_done = False
    parent: "UnitList"
    """The list that contains it; notified when it has ended."""

    @abstractmethod
    def ready(self) -> "list[Task]": ...

    def end(self) -> None:
        self.is_done = True
        self.parent.unit_ended()


@dataclass(slots=True)
class StageRuns:
    """Which stages have run in a step, and how often."""

    shared: frozenset[str]
    """Names of the stages that several refills share."""
    counts: dict[str, int] = field(default_factory=dict)
    """How often each stage has run, by name."""
    first: dict[str, Tables] = field(default_factory=dict)
    """By name of a shared stage, the tables of its first run, which all its refills read."""

    def ran(self, stage: Stage, tables: Tables) -> None:
        """Record that a stage has run. `tables`: its outputs, among others."""
        if stage.name in self.shared and stage.name not in self.counts:
            produced = {key: table for key, table in tables.items() if key[0] in stage.givers}
            self.first[stage.name] = produced
        self.counts[stage.name] = self.counts.get(stage.name, 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What all units of a step share."""

    stages: Mapping[str, Stage]
    refills: Mapping[str, Refill]
    """By name of its filter."""
    regions: Mapping[str, Rounds]
    calls: Calls
    stage_runs: StageRuns
    notices: list[Notice]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """What a unit is created with: its place in the step, its tables, and what all units share."""

    step_context: StepContext
    place: Place
    tables: Unrolled
    """The tables that its stages read, and that their results are added to."""
    tree: Tree
    units: UnitsOf
    """Builds the units of one of its passes or rounds."""


class Task(Unit):
    """A stage that runs once in its list."""

    def __init__(self, stage: Stage, spot: Spot) -> None:
        self.stage = stage
        self.step_context = spot.step_context
        self.tables = spot.tables
        self.place = spot.place
        self.stages = (stage,)
        self.names = self.members = frozenset({stage.name})
        self.waits = frozenset(stage.after) - self.names
        self._stage_runs = spot.tree.stage_runs
        self.is_waiting = True
        """Whether it has not started, or must start again."""

    @property
    def key(self) -> tuple[str, int]:
        return self.stage.name, self.step_context.turn

    def ready(self) -> "list[Task]":
        return [self] if self.is_waiting else []

    def finished(self, outcome: Outcome) -> None:
        self.tables.take(self.stage, outcome)
        self._stage_runs.ran(self.stage, self.tables.tables)
        self.end()

    def readers(self) -> "list[Task]":
        """Tasks of the same list that wait only for this stage; they work on the same tables."""
        return self.parent.readers(self)


class UnitList:
    """Units of one list. Each starts when the stages that it waits for have ended."""

    def __init__(self, units: Sequence[Unit], ended: Ended) -> None:
        self._units = units
        self._ended = ended
        self._prerequisites = [self._prerequisites_of(index) for index in range(len(units))]
        for unit in units:
            unit.parent = self

    @property
    def is_done(self) -> bool:
        return all(unit.is_done for unit in self._units)

    def ready(self) -> list[Task]:
        done = self._done
        return [
            task
            for unit, required in zip(self._units, self._prerequisites, strict=True)
            if not unit.is_done and required <= done
            for task in unit.ready()
        ]

    def readers(self, giver: Task) -> list[Task]:
        """Tasks that wait only for the stage of `giver`, which is running."""
        done = self._done
        return [
            task
            for unit, required in zip(self._units, self._prerequisites, strict=True)
            if isinstance(unit, Task) and required - done == giver.names
            for task in unit.ready()
        ]

    def unit_ended(self) -> None:
        if self.is_done:
            self._ended()

    def open_stages(self) -> Iterable[Stage]:
        return (stage for unit in self._units if not unit.is_done for stage in unit.stages)

    @property
    def _done(self) -> frozenset[str]:
        return frozenset(name for unit in self._units if unit.is_done for name in unit.names)

    def _prerequisites_of(self, index: int) -> frozenset[str]:
        """Names of the stages that must have ended before a unit starts. Units with stages in
        common run one after another, in the order of the list."""
        unit = self._units[index]
        listed = frozenset(name for other in self._units for name in other.names)
        earlier = [other.names for other in self._units[:index] if other.members & unit.members]
        return (unit.waits & listed).union(*earlier) - unit.names


class Repeated(Unit):
    """Stages of a list that run repeatedly, each time with new tables."""

    def __init__(self, names: Sequence[str], spot: Spot) -> None:
        self.stages = tuple(spot.tree.stages[name] for name in names)
        self.names = self.members = frozenset(names)
        self._spot = spot
        self._step_context = spot.step_context
        self._unrolled = spot.tables
        self._tree = spot.tree
        self._nodes = frozenset(node for stage in self.stages for node in stage.givers)
        self._fresh = Unrolled()
        """Tables of the current pass or round."""
        self._running: UnitList | None = None

    def ready(self) -> list[Task]:
        if self._running is None:
            self._enter()
        assert self._running is not None
        return self._running.ready()

    def _begin(
        self, turn: int, stages: Sequence[Stage], step_context: StepContext, fresh: Unrolled
    ) -> None:
        self._fresh = fresh
        place = (*self._spot.place, turn)
        self._running = self._spot.units(stages, step_context, fresh, place, self._ended)

    @abstractmethod
    def _enter(self) -> None: ...

    @abstractmethod
    def _ended(self) -> None: ...


def step_context_of(
    stage: Stage, outer: StepContext, stage_runs: StageRuns, *, is_refilled: bool
) -> StepContext:
    """The context of the next run of a stage in its step. Inside a refill, a later run has a new
    salt and so other random draws, even if the first run was for another refill."""
    turn = stage_runs.counts.get(stage.name, 0) + 1
    salt = f"{outer.salt}refill-{turn}" if is_refilled and turn > 1 else outer.salt
    return replace(outer, salt=salt, turn=turn)
