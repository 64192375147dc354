"""One call at a time in each pool, whoever asks, in the order in which they ask: a stage in its
lane, a reward of the driver that wants to know where a text's steps end, and new weights that come
between two calls of a stage that goes on writing."""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from coloop.errors import StopRequested
from coloop.workers.cluster.protocol import TICK_SECONDS
from coloop.workers.worker_api import Tick


class Turns:
    """Who may call a pool."""

    def __init__(self, pools: Iterable[str]) -> None:
        self._asked: dict[str, deque[object]] = {pool: deque() for pool in pools}
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, pool: str, tick: Tick | None) -> Iterator[None]:
        """Waits until no other call is at work in the pool, and none that asked before waits.

        Raises:
            StopRequested: the tick said that it is no longer wanted.
        """
        asked, own = self._asked[pool], object()
        with self._changed:
            asked.append(own)
        try:
            while not self._is_first(asked, own):
                if tick is not None and tick(None):
                    raise StopRequested(f"while waiting for the pool {pool}")
            yield
        finally:
            with self._changed:
                asked.remove(own)
                self._changed.notify_all()

    def _is_first(self, asked: deque[object], own: object) -> bool:
        """Whether it is one's turn now, or within a tick."""
        with self._changed:
            return self._changed.wait_for(lambda: asked[0] is own, TICK_SECONDS)
