"""The seam to machines: where the processes that hold weights live, and how the driver waits for
them.

A cluster starts one host for each slot of each pool and carries calls to all hosts of a pool at
once. While a call is waited for it ticks: who waits hears how far the hosts are, and may ask them
to give up their work. Every wait has an end: a host that makes no progress for
`stalled_after_seconds` is reported by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from coloop.workers.worker_api import PoolCall, Tick

P = ParamSpec("P")
R = TypeVar("R")

TICK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long the cluster waits, in seconds."""

    placement_seconds: float = 120.0
    start_seconds: float = 300.0
    stalled_after_seconds: float = 1800.0
    settle_seconds: float = 10.0
    """That other ranks may take to give up once one has failed."""


class Cluster(Protocol):
    """Hosts of a plan, started together and ended together."""

    def start(self) -> None:
        """Place the pools and build the hosts; tears down what it started where it fails."""
        ...

    def call(
        self,
        pool: str,
        method: Callable[Concatenate[Any, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        """As `asking` without a tick."""
        ...

    def asking(self, tick: Tick | None = None) -> PoolCall:
        """How one who waits calls workers. Several threads may call; a pool does one call at a
        time.

        Args:
            tick: told a few times a second, in the caller's thread, how far the call is.
        """
        ...

    def restart(self, pool: str) -> None:
        """End the processes of a pool, whatever they do, and build others in their place: they
        hold what a pool holds when a run begins.

        Raises:
            StageStalled: a process of this pool cannot be ended.
            PlacementTimeout, WorkerDied: there are no others.
        """
        ...

    def close(self) -> None:
        """End every host that was started."""
        ...
