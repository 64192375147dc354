"""From stage times to a step: who waits for whom.

Stages of one pool take turns, stages of different pools and of the driver run side by side as soon
as what they wait for is done. With staleness a step takes as long as its busiest pool. Knows times
and orders only.
"""

from collections.abc import Mapping

from coloop.estimate.unroll import PhaseStep

DRIVER = ""


def step_seconds(
    phase: PhaseStep,
    seconds: Mapping[str, float],
    pools: Mapping[str, str],
    *,
    is_asynchronous: bool = False,
) -> float:
    """Time of one step of a phase; `pools` maps stages to pools, the driver's are left out."""
    if is_asynchronous:
        busy: dict[str, float] = {}
        for stage in phase.stages:
            pool = pools.get(stage, DRIVER)
            busy[pool] = busy.get(pool, 0.0) + seconds[stage]
        return max(busy.values(), default=0.0)
    ends: dict[str, float] = {}
    free: dict[str, float] = {}
    for stage in phase.stages:
        pool = pools.get(stage, DRIVER)
        ready = max((ends.get(before, 0.0) for before in phase.after.get(stage, ())), default=0.0)
        start = ready if pool == DRIVER else max(ready, free.get(pool, 0.0))
        ends[stage] = start + seconds[stage]
        free[pool] = ends[stage]
    return max(ends.values(), default=0.0)
