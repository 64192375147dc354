"""Which stages of a step may start while steps before it are still on their way.

    learn, sync,
    score by weights that
    change, whatever calls
    a node that does so     wait for the steps before to end
    generate, credit        wait for the same of the steps before: neither reads what learns there
    everything else         waits for the same node's stages of the steps before

What writes by calls from the driver, a search, does all of it by one version of the weights: new
ones wait until it is through, and it waits until they are there.
A window holds `staleness` + 1 steps, so step k begins when step k - 1 - staleness has ended: that
bounds how old the weights are that write. Of a fraction the next whole number bounds the step, and
of what it writes ahead of the whole number below only that fraction of its rows: between two syncs
at most 1 + staleness steps of rows are written, less what was written ahead before.
With a window of one step nothing of the above is ever asked: there is one loop, not two.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from coloop.plan.types import Stage

IN_TURN = ("learn", "sync")
BESIDE_LEARNING = ("generate", "credit")
"""What a learner's node does while its weights learn from the steps before."""


class OnItsWay(Protocol):
    """A step that has begun and is not done."""

    def open_stages(self) -> Iterable[Stage]:
        """Those that have not ended for good."""
        ...


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

    def lets(self, stage: Stage, before: Iterable[OnItsWay]) -> bool:
        """Whether a stage that is ready in its own step may start beside the steps before it."""
        return all(self._lets(stage, other) for other in before)

    def meets(self, stage: Stage, at_work: Iterable[Stage]) -> bool:
        """Whether a stage would change weights by which one at work writes call by call, or write
        by weights that change meanwhile."""
        return any(
            self._changes_under(stage, other) or self._changes_under(other, stage)
            for other in at_work
        )

    def _changes_under(self, sync: Stage, caller: Stage) -> bool:
        if sync.verb != "sync" or caller.pool is not None:
            return False
        return self.groups.get(sync.node) in {self.groups.get(one, one) for one in caller.calls}

    def _lets(self, stage: Stage, other: OnItsWay) -> bool:
        group = self.groups.get(stage.node)
        is_beside = stage.verb in BESIDE_LEARNING
        if stage.verb in IN_TURN or (stage.verb == "score" and group in self.changing):
            return False
        if not self.scorers.isdisjoint(stage.calls):
            return False
        for one in other.open_stages():
            if one.node == stage.node and (not is_beside or one.verb == stage.verb):
                return False
        return True
