"""The stages of a step as a tree of units, each of which lists what may start now.

    Together ─┬─ Task     a stage
              └─ Repeated ─┬─ RefillPasses   until a filter has enough (`regions.py`)
                           └─ Region         in rounds (`rounds.py`)

A unit knows stages and tables; it knows nothing about lanes, phases, algorithms or machines. It
notifies the list that holds it when it has ended.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coloop.plan.types import Refill, Rounds, Stage
from coloop.runtime.roles.protocol import Outcome
from coloop.runtime.schedule.calls import Calls, StepContext, Tables, Unrolled

Notice = tuple[str, str, str]
"""(node, code, message) of something that the user should look at."""
Place = tuple[int, ...]
"""Position of a unit in its step: that of its list, then its index in the list."""
Ended = Callable[[], None]
"""Called when all units of a list have ended."""
UnitsOf = Callable[[Sequence[Stage], StepContext, Unrolled, Place, Ended], "Together"]
"""Builds the units of a list of stages that is at a given place in the step."""


class Unit(ABC):
    """A part of a step: one stage, or repeated stages."""

    stages: tuple[Stage, ...]
    names: frozenset[str]
    """Names of the stages that have run once it has ended."""
    members: frozenset[str]
    """`names`, and stages that it repeats although they first run before it."""
    waits: frozenset[str]
    """Names of the stages that must run before it."""
    is_done = False
    home: "Together"
    """The list that holds it, which it notifies when it has ended."""

    @abstractmethod
    def ready(self) -> "list[Task]": ...

    def end(self) -> None:
        self.is_done = True
        self.home.unit_ended()


@dataclass(slots=True)
class Begun:
    shared: frozenset[str]
    """Names of the stages that several slices share."""
    runs: dict[str, int] = field(default_factory=dict)
    """How often each stage has run, by its name."""
    first: dict[str, Tables] = field(default_factory=dict)
    """By name of a shared stage, the tables of its first run, which all its slices read."""

    def ran(self, stage: Stage, tables: Tables) -> None:
        """Record that a stage has run. `tables` holds its tables, among others."""
        if stage.name in self.shared and stage.name not in self.runs:
            produced = {key: table for key, table in tables.items() if key[0] in stage.givers}
            self.first[stage.name] = produced
        self.runs[stage.name] = self.runs.get(stage.name, 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Shared by all units of a step."""

    stages: Mapping[str, Stage]
    refills: Mapping[str, Refill]
    """By name of their filter."""
    regions: Mapping[str, Rounds]
    calls: Calls
    begun: Begun
    notices: list[Notice]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Position of a unit in its step."""

    step_context: StepContext
    place: Place
    tables: Unrolled
    """The tables that its stages read, and to which their results are added."""
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
        self._begun = spot.tree.begun
        self.is_waiting = True
        """Whether it has not started, or must start again."""

    @property
    def key(self) -> tuple[str, int]:
        return self.stage.name, self.step_context.turn

    def ready(self) -> "list[Task]":
        return [self] if self.is_waiting else []

    def finished(self, outcome: Outcome) -> None:
        self.tables.take(self.stage, outcome)
        self._begun.ran(self.stage, self.tables.tables)
        self.end()

    def readers(self) -> "list[Task]":
        """Tasks of the same list, and so on the same tables, that wait only for this stage."""
        return self.home.readers(self)


class Together:
    """Units of one list: each starts as soon as what it waits for has ended."""

    def __init__(self, units: Sequence[Unit], ended: Ended) -> None:
        self._units = units
        self._ended = ended
        self._before = [self._before_of(index) for index in range(len(units))]
        for unit in units:
            unit.home = self

    @property
    def is_done(self) -> bool:
        return all(unit.is_done for unit in self._units)

    def ready(self) -> list[Task]:
        done = self._done
        return [
            task
            for unit, before in zip(self._units, self._before, strict=True)
            if not unit.is_done and before <= done
            for task in unit.ready()
        ]

    def readers(self, giver: Task) -> list[Task]:
        """Tasks that wait only for a stage that is running."""
        done = self._done
        return [
            task
            for unit, before in zip(self._units, self._before, strict=True)
            if isinstance(unit, Task) and before - done == giver.names
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

    def _before_of(self, index: int) -> frozenset[str]:
        """Names of the stages that must have ended before a unit starts. Units with stages in
        common run one after another, in the order of the list."""
        unit = self._units[index]
        here = frozenset(name for other in self._units for name in other.names)
        earlier = [other.names for other in self._units[:index] if other.members & unit.members]
        return (unit.waits & here).union(*earlier) - unit.names


class Repeated(Unit):
    """Stages of a list that run repeatedly, each time on tables of their own."""

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
        self._running: Together | None = None

    def ready(self) -> list[Task]:
        if self._running is None:
            self._enter()
        assert self._running is not None
        return self._running.ready()

    def _begin(
        self, number: int, stages: Sequence[Stage], step_context: StepContext, fresh: Unrolled
    ) -> None:
        self._fresh = fresh
        place = (*self._spot.place, number)
        self._running = self._spot.units(stages, step_context, fresh, place, self._ended)

    @abstractmethod
    def _enter(self) -> None: ...

    @abstractmethod
    def _ended(self) -> None: ...


def step_context_of(
    stage: Stage, around: StepContext, begun: Begun, *, is_refilled: bool
) -> StepContext:
    """The context of one run of a stage, with its number within the step. Inside a refill, a later
    run has a new salt and so other random draws, even if the first run was for another slice."""
    number = begun.runs.get(stage.name, 0) + 1
    salt = f"{around.salt}refill-{number}" if is_refilled and number > 1 else around.salt
    return replace(around, salt=salt, turn=number)
