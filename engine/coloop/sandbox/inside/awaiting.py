"""Coroutines in a process that may open no sockets: an event loop that waits on an event.

asyncio's own loops wake themselves over a pair of sockets. Here nothing but timers and this
process' own threads can make a loop wake up, so that waiting needs no descriptor. asyncio is
imported where code has coroutines: most has none, and its process begins sooner.
"""

from collections.abc import Mapping
from typing import Any, Final

NEEDED: Final = ("asyncio", "concurrent.futures.thread")
"""Modules that `install` imports."""


def has_coroutines(sources: Mapping[str, str]) -> bool:
    """Whether any of these modules may have some."""
    return any("async" in source for source in sources.values())


def install() -> None:
    """Let `asyncio.run` make loops that need no socket."""
    import asyncio
    import selectors
    import threading

    class Waiting(selectors.BaseSelector):
        """Waits for `wake`, or until the time is over."""

        def __init__(self) -> None:
            self._woken = threading.Event()

        def wake(self) -> None:
            self._woken.set()

        def select(self, timeout: float | None = None) -> list[Any]:
            self._woken.wait(timeout)
            self._woken.clear()
            return []

        def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            raise PermissionError("this code runs in a limited process with no network")

        def unregister(self, fileobj: Any) -> selectors.SelectorKey:
            raise KeyError(fileobj)

        def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
            return {}

    class ClosedLoop(asyncio.SelectorEventLoop):
        """An event loop for tasks, timers and threads; not for sockets or programs."""

        def __init__(self) -> None:
            self._waiting = Waiting()
            super().__init__(self._waiting)

        def _make_self_pipe(self) -> None:
            pass

        def _close_self_pipe(self) -> None:
            pass

        def _write_to_self(self) -> None:
            self._waiting.wake()

    vars(asyncio.events)["new_event_loop"] = ClosedLoop
    vars(asyncio)["new_event_loop"] = ClosedLoop


def settled(value: Any) -> Any:
    """What an awaitable comes to."""
    import asyncio

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())
