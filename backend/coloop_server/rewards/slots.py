"""Threads for code that is tried: few, and none of those that answer everything else."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from coloop_server.errors import TooMany

MAX_AT_ONCE = 4
T = TypeVar("T")


class PreviewSlots:
    """Runs so many previews at once and refuses the rest."""

    def __init__(self, count: int = MAX_AT_ONCE) -> None:
        self.free = threading.BoundedSemaphore(count)
        self.pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="preview")

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Raises TooMany where every slot is taken."""
        if not self.free.acquire(blocking=False):
            raise TooMany(
                "reward.too_many", "other code is being tried just now; try again in a moment"
            )

        def work_and_leave() -> T:
            try:
                return work()
            finally:
                self.free.release()

        return self.pool.submit(work_and_leave)

    def close(self) -> None:
        self.pool.shutdown(wait=True)
