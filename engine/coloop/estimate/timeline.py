"""From stage times to a step: who waits for whom.

Stages of one pool take turns, stages of different pools and of the driver run side by side as soon
as what they wait for is done. With staleness a step takes as long as its busiest pool. Knows times
and orders only.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

DRIVER = ""


class Waiting(Protocol):
    """A stage and those that it waits for."""

    @property
    def name(self) -> str: ...

    @property
    def after(self) -> tuple[str, ...]: ...


def step_seconds(
    stages: Iterable[Waiting],
    seconds: Mapping[str, float],
    pools: Mapping[str, str],
    *,
    is_asynchronous: bool = False,
) -> float:
    """Time of one step of these stages, which come in an order in which they can run; `pools` maps
    their names to pools, the driver's are left out."""
    if is_asynchronous:
        busy: dict[str, float] = {}
        for stage in stages:
            pool = pools.get(stage.name, DRIVER)
            busy[pool] = busy.get(pool, 0.0) + seconds[stage.name]
        return max(busy.values(), default=0.0)
    ends: dict[str, float] = {}
    free: dict[str, float] = {}
    for stage in stages:
        pool = pools.get(stage.name, DRIVER)
        ready = max((ends.get(before, 0.0) for before in stage.after), default=0.0)
        start = ready if pool == DRIVER else max(ready, free.get(pool, 0.0))
        ends[stage.name] = start + seconds[stage.name]
        free[pool] = ends[stage.name]
    return max(ends.values(), default=0.0)
