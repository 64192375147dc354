"""From stage times to a step: who waits for whom.

Stages of one pool take turns, stages of different pools and of the driver run side by side as soon
as what they wait for is done. With staleness a step takes as long as its busiest pool. Knows times
and orders only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

DRIVER = ""


class Waiting(Protocol):
    """A stage and those that it waits for."""

    @property
    def name(self) -> str: ...

    @property
    def after(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When a stage runs in a step."""

    stage: str
    pool: str
    """Empty: the driver's."""
    start: float
    end: float


def spans_of(
    stages: Iterable[Waiting],
    seconds: Mapping[str, float],
    pools: Mapping[str, str],
    *,
    is_asynchronous: bool = False,
) -> tuple[Span, ...]:
    """When the stages of one step run, which come in an order in which they can run; `pools` maps
    their names to pools, the driver's are left out. Where steps overlap, no stage waits for those
    of the same step."""
    spans: list[Span] = []
    ends: dict[str, float] = {}
    free: dict[str, float] = {}
    for stage in stages:
        pool = pools.get(stage.name, DRIVER)
        ready = max((ends.get(before, 0.0) for before in stage.after), default=0.0)
        if is_asynchronous:
            start = free.get(pool, 0.0)
        else:
            start = ready if pool == DRIVER else max(ready, free.get(pool, 0.0))
        ends[stage.name] = free[pool] = start + seconds[stage.name]
        spans.append(Span(stage=stage.name, pool=pool, start=start, end=ends[stage.name]))
    return tuple(spans)
