"""Stages of a step as units, each of which says what may start now.

    Together ─┬─ Alone    a stage
              └─ Repeated ─┬─ RefillPasses   until a filter has enough (`regions.py`)
                           └─ Region         in rounds (`rounds.py`)

A unit knows stages and tables; it knows nothing of lanes, phases, algorithms or machines. It tells
whoever holds it when it has ended.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coloop.plan.types import Refill, Rounds, Stage
from coloop.runtime.roles.protocol import Outcome
from coloop.runtime.schedule.calls import Calls, StepContext, Tables, Unrolled

Notice = tuple[str, str, str]
"""(node, code, message) of what a person should look at."""
Place = tuple[int, ...]
"""Where a unit stands in its step: among the units of its list, which again stands somewhere."""
Ended = Callable[[], None]
"""Told when all units of a list have ended."""
UnitsOf = Callable[[Sequence[Stage], StepContext, Unrolled, Place, Ended], "Together"]
"""Makes the units of stages that stand at a place."""


class Unit(ABC):
    """A part of a step."""

    stages: tuple[Stage, ...]
    names: frozenset[str]
    """Stages that have run when it has ended."""
    members: frozenset[str]
    """Those and the ones that it runs again though they have run before it."""
    waits: frozenset[str]
    """Stages that have to run before it."""
    is_done = False
    home: "Together"
    """Its list, to which it says when it has ended."""

    @abstractmethod
    def ready(self) -> "list[Task]": ...

    def end(self) -> None:
        self.is_done = True
        self.home.unit_ended()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One stage that may start."""

    stage: Stage
    step_context: StepContext
    tables: Unrolled
    """What it reads from and gives to."""
    place: Place
    unit: "Alone"

    @property
    def key(self) -> tuple[str, int]:
        """Its name in the step: the stage, and how often it has run."""
        return self.stage.name, self.step_context.turn


@dataclass(slots=True)
class Begun:
    """What has run so far in a step."""

    shared: frozenset[str]
    """Stages with which several slices begin."""
    runs: dict[str, int] = field(default_factory=dict)
    """How often, by stage."""
    first: dict[str, Tables] = field(default_factory=dict)
    """What a shared stage gave when it ran for all of them."""

    def ran(self, stage: Stage, tables: Tables) -> None:
        """A stage has run, and its tables are among these."""
        if stage.name in self.shared and stage.name not in self.runs:
            own = {key: table for key, table in tables.items() if key[0] in stage.givers}
            self.first[stage.name] = own
        self.runs[stage.name] = self.runs.get(stage.name, 0) + 1

    def tables_of(self, names: Sequence[str]) -> Tables:
        """What these shared stages gave at first."""
        return {key: table for name in names for key, table in self.first[name].items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What all units of one step share."""

    stages: Mapping[str, Stage]
    """By name."""
    refills: Mapping[str, Refill]
    """By the name of their filter."""
    regions: Mapping[str, Rounds]
    """By name."""
    calls: Calls
    begun: Begun
    notices: list[Notice]


class Alone(Unit):
    """A stage that runs once in its list."""

    def __init__(
        self,
        stage: Stage,
        step_context: StepContext,
        place: Place,
        unrolled: Unrolled,
        begun: Begun,
    ) -> None:
        self.stages = (stage,)
        self.names = self.members = frozenset({stage.name})
        self.waits = frozenset(stage.after) - self.names
        self._begun = begun
        self.is_waiting = True
        """It has not started, or is to start anew."""
        self._task = Task(
            stage=stage, step_context=step_context, tables=unrolled, place=place, unit=self
        )

    def ready(self) -> list[Task]:
        return [self._task] if self.is_waiting else []

    def finished(self, outcome: Outcome) -> None:
        stage, tables = self._task.stage, self._task.tables
        tables.take(stage, outcome)
        self._begun.ran(stage, tables.tables)
        self.end()

    def readers(self) -> list[Task]:
        """What could start if it had ended, and reads the same tables."""
        return self.home.readers(self)


class Together:
    """Units of one list: each starts as soon as what it waits for has ended."""

    def __init__(self, units: Sequence[Unit], ended: Ended) -> None:
        self._units = units
        self._ended = ended
        self._before = [self._before_of(place) for place in range(len(units))]
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

    def readers(self, giver: Alone) -> list[Task]:
        """What could start if a stage at work had ended."""
        done = self._done
        return [
            task
            for unit, before in zip(self._units, self._before, strict=True)
            if isinstance(unit, Alone) and before - done == giver.names
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

    def _before_of(self, place: int) -> frozenset[str]:
        """Stages that must have ended before a unit starts. Of units that run the same stages the
        first in the order comes first."""
        unit = self._units[place]
        here = frozenset(name for one in self._units for name in one.names)
        earlier = [one.names for one in self._units[:place] if one.members & unit.members]
        return (unit.waits & here).union(*earlier) - unit.names


class Repeated(Unit):
    """Stages of a list that run again and again, each time on tables of their own."""

    def __init__(
        self,
        stages: Sequence[str],
        step_context: StepContext,
        place: Place,
        unrolled: Unrolled,
        tree: Tree,
        units: UnitsOf,
    ) -> None:
        """
        Args:
            stages: by name.
            unrolled: what they read at first, and give to in the end.
            units: makes the units of some stages.
        """
        self.stages = tuple(tree.stages[name] for name in stages)
        self.names = self.members = frozenset(stages)
        self._step_context = step_context
        self._place = place
        self._unrolled = unrolled
        self._tree = tree
        self._units = units
        self._nodes = frozenset(node for stage in self.stages for node in stage.givers)
        self._fresh = Unrolled()
        """Tables of the pass or round that runs."""
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
        place = (*self._place, number)
        self._running = self._units(stages, step_context, fresh, place, self._ended)

    @abstractmethod
    def _enter(self) -> None: ...

    @abstractmethod
    def _ended(self) -> None: ...


def step_context_of(
    stage: Stage, around: StepContext, begun: Begun, *, is_refilled: bool
) -> StepContext:
    """The context of a stage within a list: draws and places of its own wherever it has run
    before in this step, be it for another slice.

    Args:
        is_refilled: the list is a pass of a slice, or stands within one.
    """
    number = begun.runs.get(stage.name, 0) + 1
    salt = f"{around.salt}refill-{number}" if is_refilled and number > 1 else around.salt
    return replace(around, salt=salt, turn=number)
