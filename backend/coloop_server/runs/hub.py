"""Tells the WebSockets of a run, from whatever thread, that there is something new to read."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Hub:
    """Keeps no messages: a client that is told reads the log itself, from where it stands."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listeners: dict[str, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}

    @contextmanager
    def listen(self, run_id: str) -> Iterator[asyncio.Event]:
        """An event of the running loop that is set whenever the run has news."""
        listener = (asyncio.get_running_loop(), asyncio.Event())
        with self.lock:
            self.listeners.setdefault(run_id, []).append(listener)
        try:
            yield listener[1]
        finally:
            with self.lock:
                self.listeners[run_id].remove(listener)
                if not self.listeners[run_id]:
                    del self.listeners[run_id]

    def tell(self, run_id: str) -> None:
        with self.lock:
            listeners = tuple(self.listeners.get(run_id, ()))
        for loop, event in listeners:
            with suppress(RuntimeError):  # the loop is closed: the server is ending
                loop.call_soon_threadsafe(event.set)
