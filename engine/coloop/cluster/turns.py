"""One call at a time in each pool, whoever asks: a stage in its lane, and a reward of the driver
that wants to know where a text's steps end."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from coloop.cluster.protocol import TICK_SECONDS, Tick
from coloop.errors import StopRequested


class Turns:
    """Who may call a pool."""

    def __init__(self, pools: Iterable[str]) -> None:
        self._locks = {pool: threading.Lock() for pool in pools}

    @contextmanager
    def turn(self, pool: str, tick: Tick | None) -> Iterator[None]:
        """Waits until no other call is at work in the pool.

        Raises:
            StopRequested: the tick said that it is no longer wanted.
        """
        lock = self._locks[pool]
        while not lock.acquire(timeout=TICK_SECONDS):
            if tick is not None and tick(None):
                raise StopRequested(f"while waiting for the pool {pool}")
        try:
            yield
        finally:
            lock.release()
