"""Recovery when processes of a pool die or hang.

    what the pool held          what happens
    engines, frozen weights     new processes; engines get their weights, the call is repeated
    weights that change         new processes; the run resumes from its newest checkpoint

Completions depend only on seeds and weights, and checkpoints have the rest, so a run with dead
processes learns what it would have learned. If a pool dies twice without a finished step between,
or pools die too often, the run ends with an error.
"""

import logging
import threading
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from coloop.errors import ColoopError, StageStalled, WorkerDied
from coloop.plan.types import Plan
from coloop.spec.graph import LoopSpec
from coloop.spec.model import CopyModel, SnapshotModel
from coloop.spec.nodes import model_of
from coloop.workers.cluster import Cluster
from coloop.workers.shortage import Tell
from coloop.workers.worker_group import Replacements

logger = logging.getLogger(__name__)

MOST_RESTARTS = 3
"""Most pool restarts in one run of the driver."""
REPLACED = "cluster.pool_replaced"

Dead = WorkerDied | StageStalled


class Recovery(Replacements):
    """Gives pools new processes; one per run, thread-safe."""

    def __init__(self, cluster: Cluster, plan: Plan, spec: LoopSpec, tell: Tell) -> None:
        super().__init__()
        self._cluster = cluster
        self._pools = [pool.name for pool in plan.pools]
        self._replaceable = replaceable_pools(plan, spec)
        self._tell = tell
        self._lock = threading.Lock()
        self._lives: Counter[str] = Counter()
        self._died_after: dict[str, int] = {}
        self._done = 0
        """Finished steps; repeated ones count again."""

    def step_done(self) -> None:
        self._done += 1

    def lives(self) -> Mapping[str, int]:
        return dict(self._lives)

    def replaced(self, error: Exception, lives: Mapping[str, int]) -> str | None:
        if not isinstance(error, Dead) or error.pool not in self._replaceable:
            return None
        with self._lock:
            if self._lives[error.pool] == lives.get(error.pool, 0):
                self._restart(error, [error.pool])
                how = "its request is retried"
                self._tell(None, REPLACED, f"{error}; it has new processes, and {how}")
        return error.pool

    def begin_anew(self, error: Dead, *, has_checkpoint: bool) -> None:
        """Restart a pool whose weights are lost, or all pools if the run begins again.

        Raises:
            ColoopError: the run ends here.
        """
        with self._lock:
            self._restart(error, [error.pool] if has_checkpoint else self._pools)

    def _restart(self, error: Dead, pools: Collection[Any]) -> None:
        pool = error.pool
        if pool not in self._pools:
            raise error
        if self._died_after.get(pool) == self._done:
            raise _with_reason(error, "it had failed before, and no step has finished since")
        if self._lives.total() >= MOST_RESTARTS:
            times = f"pools were restarted {MOST_RESTARTS} times in this run"
            raise _with_reason(error, f"{times}, which is the limit")
        logger.warning("pool %s is restarted: %s", pool, error)
        self._died_after[pool] = self._done
        self._lives[pool] += 1
        for name in pools:
            try:
                self._cluster.restart(name)
            except ColoopError as failure:
                raise _with_reason(error, f"it cannot be restarted: {failure}") from error


def replaceable_pools(plan: Plan, spec: LoopSpec) -> frozenset[str]:
    """Pools that hold only engines, which get their weights from elsewhere, and frozen weights."""
    lost = {
        weights.pool
        for weights in plan.weights
        if weights.trains
        or isinstance(model_of(spec.nodes[weights.name]), SnapshotModel | CopyModel)
    }
    return frozenset(pool.name for pool in plan.pools) - lost


def _with_reason(error: Dead, reason: str) -> Dead:
    return type(error)(f"{error}; {reason}", error.pool, error.rank)
