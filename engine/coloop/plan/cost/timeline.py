"""When the stages of a step run: a simulation of the scheduler's rules, event by event.

A stage starts as soon as its inputs are ready, its lane is free and the steps before let it.
Without staleness one step is simulated; with it as many as reach a steady pace, and a step takes
what one more of them adds.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coloop.plan.overlap import DRIVER_LANES, Overlap
from coloop.plan.types import Stage
from coloop.spec.lean import record

MOST_AHEAD = 4
"""Steps ahead that are simulated: stages of equal length gain nothing from more."""
COUNTED = 4
"""Steps over which the pace is measured."""


@record
class Run:
    """One run of a stage."""

    step: int
    stage: str
    pool: str | None
    start: float
    end: float


@record
class Pace:
    seconds: float
    """Of a step, in a steady state."""
    runs: tuple[Run, ...]
    """What happens in that time, from 0: each stage once, of whichever step it is."""


def pace_of(
    stages: Sequence[Stage],
    seconds: Mapping[str, float],
    pools: Mapping[str, str],
    overlap: Overlap,
) -> Pace:
    """The pace of a phase. `pools`: by stage, the pool whose lane it needs; without one it runs in
    the driver."""
    if not stages:
        return Pace(seconds=0.0, runs=())
    overlap = replace(overlap, staleness=min(overlap.staleness, MOST_AHEAD))
    steps = 1 if overlap.size == 1 else 2 * overlap.size + COUNTED
    runs = _Simulation(stages, seconds, pools, overlap, steps).runs
    if steps == 1:
        return Pace(seconds=max((run.end for run in runs), default=0.0), runs=tuple(runs))
    ends = [max(run.end for run in runs if run.step == step) for step in range(steps)]
    last = steps - overlap.size
    cycle = (ends[last] - ends[last - COUNTED]) / COUNTED
    return Pace(seconds=cycle, runs=tuple(_within(runs, ends[last] - cycle, cycle)))


def _within(runs: Sequence[Run], begin: float, cycle: float) -> Iterator[Run]:
    """Each stage once, as it starts within a cycle; those of other cycles are moved into it."""
    seen: set[str] = set()
    for run in runs:
        start = run.start - begin
        if start < -1e-9 * cycle or run.stage in seen:
            continue
        seen.add(run.stage)
        start = start % cycle if cycle else 0.0
        yield replace(run, step=0, start=start, end=start + run.end - run.start)


@dataclass(eq=False, slots=True)
class _Flight:
    """A step in flight."""

    number: int
    open: dict[str, Stage]
    """Stages that have not ended."""
    begun: set[str] = field(default_factory=set)
    begun_parts: dict[str, float] = field(default_factory=dict)
    """Stages that began before their turn, with the share of their rows."""


class _Simulation:
    def __init__(
        self,
        stages: Sequence[Stage],
        seconds: Mapping[str, float],
        pools: Mapping[str, str],
        overlap: Overlap,
        steps: int,
    ) -> None:
        self._stages, self._seconds, self._pools = stages, seconds, pools
        self._overlap = overlap
        self._groups = {stage.node: overlap.groups.get(stage.node, stage.node) for stage in stages}
        self.runs: list[Run] = []
        self._flights: list[_Flight] = []
        self._busy: dict[str | None, int] = {}
        self._now = 0.0
        events: list[tuple[float, int, str, bool]] = []
        begun = 0
        while True:
            while self._flights and not self._flights[0].open:
                self._flights.pop(0)
            while begun < steps and len(self._flights) < overlap.size:
                self._flights.append(_Flight(begun, {stage.name: stage for stage in stages}))
                begun += 1
            for event in self._starts():
                heapq.heappush(events, event)
            if not events and self._flights:  # stages of a draft that wait for each other
                heapq.heappush(events, self._forced(self._flights[0]))
            elif not events:
                break
            self._now, number, name, is_part = heapq.heappop(events)
            self._busy[pools.get(name)] -= 1
            if not is_part:
                flight = next(one for one in self._flights if one.number == number)
                del flight.open[name]

    def _starts(self) -> Iterator[tuple[float, int, str, bool]]:
        """Stages that start now, as (end, step, stage, whether only a part of its rows)."""
        for index, flight in enumerate(self._flights):
            before = [other.open.values() for other in self._flights[:index]]
            for name, stage in flight.open.items():
                if name in flight.begun or not self._is_ready(flight, stage):
                    continue
                pool = self._pools.get(name)
                lanes = 1 if pool is not None else DRIVER_LANES
                if self._busy.get(pool, 0) >= lanes or not self._overlap.may_start(stage, before):
                    continue
                if stage.verb == "sync" and self._has_writer_waiting(index, stage):
                    continue
                share = self._overlap.share(stage, index)
                if share > flight.begun_parts.get(name, 0.0):
                    yield self._start(flight, name, share)

    def _start(self, flight: _Flight, name: str, share: float) -> tuple[float, int, str, bool]:
        done, pool = flight.begun_parts.get(name, 0.0), self._pools.get(name)
        if share < 1.0:
            flight.begun_parts[name] = share
        else:
            flight.begun.add(name)
        self._busy[pool] = self._busy.get(pool, 0) + 1
        end = self._now + (share - done) * self._seconds[name]
        self.runs.append(Run(step=flight.number, stage=name, pool=pool, start=self._now, end=end))
        return end, flight.number, name, share < 1.0

    def _forced(self, flight: _Flight) -> tuple[float, int, str, bool]:
        return self._start(flight, next(name for name in flight.open), 1.0)

    def _is_ready(self, flight: _Flight, stage: Stage) -> bool:
        return not any(name in flight.open for name in stage.after)

    def _has_writer_waiting(self, index: int, sync: Stage) -> bool:
        """Whether a later step is about to generate with the weights that this sync replaces."""
        group = self._groups[sync.node]
        for at, flight in enumerate(self._flights[index + 1 :], start=index + 1):
            before = [other.open.values() for other in self._flights[:at]]
            for name, stage in flight.open.items():
                if stage.verb != "generate" or name in flight.begun or name in flight.begun_parts:
                    continue
                is_own = group in {self._groups.get(node, node) for node in stage.givers}
                can = self._is_ready(flight, stage) and self._overlap.may_start(stage, before)
                if is_own and can and self._overlap.share(stage, at) > 0.0:
                    return True
        return False
