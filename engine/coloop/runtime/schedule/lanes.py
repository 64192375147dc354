"""Lanes: where stages work. One lane for each pool, several for work of the driver's own; each is a
thread, so that the driver is free to look after all of them.

A lane of a pool does one stage at a time, as its hosts do one call at a time.
"""

from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Protocol, TypeVar

DRIVER_LANES = 8
"""Rewards, templates, filters and credit that work at once, at most."""

T = TypeVar("T")
Waited = tuple[set[Future[T]], set[Future[T]]]
"""Works that are done, and the others."""


class Lanes(Protocol):
    """Carries out work and says when it is done."""

    def room(self, lane: str | None) -> int:
        """How many stages a lane does at once; None is the driver."""
        ...

    def submit(self, lane: str | None, work: Callable[[], T]) -> Future[T]:
        """Begin work in a lane with room."""
        ...

    def wait(self, works: Collection["Future[T]"], seconds: float, /) -> Waited[T]:
        """Those of the works that are done, after the first of them or so many seconds, and the
        others."""
        ...

    def close(self) -> None:
        """Wait for what is at work, and end."""
        ...


class ThreadLanes:
    """Lanes that are threads; each starts with its first work."""

    def __init__(self) -> None:
        self._threads: dict[str | None, ThreadPoolExecutor] = {}

    def room(self, lane: str | None) -> int:
        return DRIVER_LANES if lane is None else 1

    def submit(self, lane: str | None, work: Callable[[], T]) -> Future[T]:
        if lane not in self._threads:
            name = "driver" if lane is None else f"lane-{lane}"
            self._threads[lane] = ThreadPoolExecutor(self.room(lane), thread_name_prefix=name)
        return self._threads[lane].submit(work)

    wait = staticmethod(partial(wait, return_when=FIRST_COMPLETED))

    def close(self) -> None:
        for threads in self._threads.values():
            threads.shutdown(wait=True, cancel_futures=True)
        self._threads.clear()
