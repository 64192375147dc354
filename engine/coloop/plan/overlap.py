"""Which stages of a step may run while earlier steps are still in flight: the rules that the
scheduler follows (`runtime/schedule/window.py`) and the estimate simulates (`cost/timeline.py`).

    learn, sync, score with
    weights that change, and
    stages that call such
    a scorer                 wait until earlier steps have ended
    generate, credit         wait for the same stages of earlier steps
    everything else          waits for all stages of the same node in earlier steps
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from coloop.plan.closure import READS
from coloop.plan.types import Stage
from coloop.spec.graph import LoopSpec
from coloop.spec.model import CopyModel, RefreshEvery, SnapshotModel
from coloop.spec.nodes import model_of

DRIVER_LANES = 8
"""Stages that run in the driver at once: rewards, templates, filters and credit. A pool runs one at
a time."""
IN_TURN = ("learn", "sync")
BESIDE_LEARNING = ("generate", "credit")
"""Stages of a learner's node that may run while it learns from earlier steps."""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How many steps are in flight at once, and which of their stages may overlap."""

    staleness: float = 0.0
    """How many versions the weights that generate may be behind those that learn."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Weights group by node."""
    changing: frozenset[str] = frozenset()
    """Groups whose weights change: they learn or follow others."""
    scorers: frozenset[str] = frozenset()
    """Nodes that score with such weights, also when called by others."""

    @property
    def size(self) -> int:
        """Steps in flight: step k begins when step k - `size` has ended."""
        return math.ceil(self.staleness) + 1

    def share(self, stage: Stage, ahead: int) -> float:
        """The share of a stage's rows, from 0 to 1, that may be processed while `ahead` earlier
        steps are in flight."""
        if stage.verb != "generate" or ahead <= int(self.staleness):
            return 1.0
        return self.staleness % 1

    def may_start(self, stage: Stage, before: Iterable[Collection[Stage]]) -> bool:
        """Whether a stage may start. `before`: by earlier step in flight, the stages that have not
        ended."""
        if self.is_in_turn(stage):
            return not any(True for _ in before)
        return not any(self.waits_for(stage, other) for step in before for other in step)

    def is_in_turn(self, stage: Stage) -> bool:
        """Whether it waits for the end of earlier steps."""
        group = self.groups.get(stage.node)
        if stage.verb in IN_TURN or (stage.verb == "score" and group in self.changing):
            return True
        return not self.scorers.isdisjoint(stage.calls)

    def waits_for(self, stage: Stage, earlier: Stage) -> bool:
        if self.is_in_turn(stage):
            return True
        is_beside = stage.verb in BESIDE_LEARNING
        return earlier.node == stage.node and (not is_beside or earlier.verb == stage.verb)


def overlap_of(spec: LoopSpec, groups: Mapping[str, str], learning: Iterable[str]) -> Overlap:
    """The rules for a loop. `groups`: weights group by node; `learning`: groups that train."""
    trained = frozenset(learning)
    changing = frozenset(
        name for name in {*groups.values()} if name in trained or _follows(spec, name)
    )
    return Overlap(
        staleness=spec.schedule.max_staleness,
        groups=groups,
        changing=changing,
        scorers=frozenset(
            node
            for node, group in groups.items()
            if group in changing and "score" in READS[spec.nodes[node].kind]
        ),
    )


def _follows(spec: LoopSpec, group: str) -> bool:
    """Whether frozen weights may change between two steps of a phase. Those that follow at the
    start of a phase do so while no step is in flight."""
    model = model_of(spec.nodes[group])
    refreshes = isinstance(model, SnapshotModel) and isinstance(model.refresh, RefreshEvery)
    return refreshes or isinstance(model, CopyModel)
