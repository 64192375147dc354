"""Which stages of a step may start while steps before it are still on their way.

    learn, sync,
    score by weights that
    change, whatever calls
    a node that does so     wait for the steps before to end
    generate, credit        wait for the same of the steps before: neither reads what learns there
    everything else         waits for the same node's stages of the steps before

What writes has its weights from the steps that had ended when its own step began, so new ones
(`sync`) wait until whatever later steps write by the same weights has begun: whichever is ready
first, the order is the same. Of what is written again and again, as refills and rounds do, they
wait for all. They do not wait for what cannot begin before the steps that bring them have ended.
What writes by calls from the driver, a search, does all of it by one version of the weights: new
ones wait until it is through, and it waits until they are there.
A window holds `staleness` + 1 steps, so step k begins when step k - 1 - staleness has ended: that
bounds how old the weights are that write. Of a fraction the next whole number bounds the step, and
of what it writes ahead of the whole number below only that fraction of its rows: between two syncs
at most 1 + staleness steps of rows are written, less what was written ahead before.
With a window of one step nothing of the above is ever asked: there is one loop, not two.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coloop.plan.types import Stage
from coloop.runtime.schedule.in_flight import StepInFlight

IN_TURN = ("learn", "sync")
BESIDE_LEARNING = ("generate", "credit")
"""What a learner's node does while its weights learn from the steps before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How many steps are on their way at once, and how they keep out of each other's way."""

    staleness: float = 0.0
    """How many versions the weights that write may be behind those that learn."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Weights group by node."""
    changing: frozenset[str] = frozenset()
    """Groups whose weights change in a run: they learn, or follow others."""
    scorers: frozenset[str] = frozenset()
    """Nodes that score by such weights, and may be called to do so by others."""

    @property
    def size(self) -> int:
        return math.ceil(self.staleness) + 1

    def share(self, stage: Stage, ahead: int) -> float:
        """Of the rows of a stage those, from 0 to 1, that may be done while so many steps before it
        are on their way; the others wait until there are fewer."""
        if stage.verb != "generate" or ahead <= int(self.staleness):
            return 1.0
        return self.staleness % 1

    def lets(self, stage: Stage, before: Iterable[StepInFlight]) -> bool:
        """Whether a stage that is ready in its own step may start beside the steps before it."""
        return all(self._lets(stage, other) for other in before)

    def meets(self, stage: Stage, at_work: Iterable[Stage]) -> bool:
        """Whether a stage would change weights by which one at work writes call by call, or write
        by weights that change meanwhile."""
        return any(
            self._changes_under(stage, other) or self._changes_under(other, stage)
            for other in at_work
        )

    def waits_for_writers(
        self,
        stage: Stage,
        own: StepInFlight,
        behind: Sequence[StepInFlight],
        can_begin_with_some: Callable[[Stage], bool],
    ) -> bool:
        """Whether new weights wait for what later steps write by the weights as they are.

        Args:
            own: the step that brings them; all steps before it have ended.
            behind: the steps after it that go on.
            can_begin_with_some: whether a stage can do a share of its rows before the others.
        """
        if stage.verb != "sync":
            return False
        group = self.groups.get(stage.node, stage.node)
        waits = _Waits(self, (own, *behind), can_begin_with_some)
        return any(
            group in self._written_by(one)
            and not waits.has_passed(place, one)
            and not waits.reaches(place, one, stage)
            for place, other in enumerate(behind, start=1)
            for one in other.units.open_stages()
        )

    def _written_by(self, stage: Stage) -> set[str]:
        """Groups by whose weights a stage writes."""
        if stage.verb != "generate":
            return set()
        return {self.groups.get(one, one) for one in stage.givers}

    def _changes_under(self, sync: Stage, caller: Stage) -> bool:
        if sync.verb != "sync" or caller.pool is not None:
            return False
        return self.groups.get(sync.node) in {self.groups.get(one, one) for one in caller.calls}

    def _lets(self, stage: Stage, other: StepInFlight) -> bool:
        if self.is_in_turn(stage):
            return False
        return not any(self.waits_for(stage, one) for one in other.units.open_stages())

    def is_in_turn(self, stage: Stage) -> bool:
        """Whether it waits for the steps before to end."""
        group = self.groups.get(stage.node)
        if stage.verb in IN_TURN or (stage.verb == "score" and group in self.changing):
            return True
        return not self.scorers.isdisjoint(stage.calls)

    def waits_for(self, stage: Stage, one: Stage) -> bool:
        """Whether a stage waits for one of a step before to end."""
        if self.is_in_turn(stage):
            return True
        is_beside = stage.verb in BESIDE_LEARNING
        return one.node == stage.node and (not is_beside or one.verb == stage.verb)


@dataclass(eq=False)
class _Waits:
    """Which stages of some steps on their way wait for which."""

    window: Window
    steps: Sequence[StepInFlight]
    can_begin_with_some: Callable[[Stage], bool]

    def __post_init__(self) -> None:
        self._open = [tuple(step.units.open_stages()) for step in self.steps]

    def has_passed(self, place: int, stage: Stage) -> bool:
        """Whether a stage writes by weights that it has, whatever comes now."""
        step = self.steps[place]
        if self._is_short(place, stage) and stage.name in step.begun_parts:
            return True
        return stage.name in step.begun and not self._is_repeated(place, stage)

    def _is_repeated(self, place: int, stage: Stage) -> bool:
        """Whether it may begin once more before the steps before it have ended."""
        beside = [one for one in self._open[place] if set(one.within) & set(stage.within)]
        return bool(stage.within) and not any(self.window.is_in_turn(one) for one in beside)

    def reaches(self, place: int, stage: Stage, sync: Stage) -> bool:
        """Whether a stage waits, by whatever stands between, for a sync of the first of the
        steps."""
        seen: set[tuple[int, str]] = set()
        waiting = [(place, stage)]
        while waiting:
            at, one = waiting.pop()
            if (at, one.name) in seen:
                continue
            seen.add((at, one.name))
            if at == 0 and one.name == sync.name:
                return True
            waiting += self._waited_for(at, one)
        return False

    def _waited_for(self, place: int, stage: Stage) -> Iterator[tuple[int, Stage]]:
        yield from ((place, one) for one in self._open[place] if one.name in stage.after)
        is_put_off = self._is_short(place, stage) and not self.can_begin_with_some(stage)
        for before in range(place):
            for one in self._open[before]:
                if is_put_off or self.window.waits_for(stage, one):
                    yield before, one

    def _is_short(self, place: int, stage: Stage) -> bool:
        """Whether not all of its rows are let begin beside the steps before it."""
        return self.window.share(stage, place) < 1.0
