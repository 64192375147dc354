"""Progress lines while `coloop run` waits for its first step, with growing pauses."""

import json
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from coloop.workers.ray.ray_settings import starting_words

PATIENCE_SECONDS = 10.0
"""Pause before the first line; it doubles with each line."""
LOADING = "loading the engine and the models"

Wait = Callable[[float], bool]
"""Waits for so many seconds; returns true as soon as the wait is over."""


def awaited(cluster: str, address: str | None) -> str:
    """What a run that has not started is waiting for."""
    ray = sys.modules.get("ray")
    if cluster == "local" or (ray is not None and ray.is_initialized()):
        return LOADING
    if address is None:
        return starting_words()
    return f"waiting for Ray at {address} to answer"


def tell_waiting(say: Callable[[str], None], words: Callable[[], str], wait: Wait) -> None:
    """Print what the run is waiting for until the wait is over."""
    seconds, pause = 0.0, PATIENCE_SECONDS
    while not wait(pause):
        seconds += pause
        say(f"{words()}; {seconds:.0f} s so far")
        pause = seconds


class Waiting:
    """A context that prints progress in a thread until the run starts or ends."""

    def __init__(self, say: Callable[[str], None], words: Callable[[], str]) -> None:
        self._has_begun = threading.Event()
        self._thread = threading.Thread(
            target=tell_waiting,
            args=(say, words, self._has_begun.wait),
            name="waiting",
            daemon=True,
        )

    def __enter__(self) -> "Waiting":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._has_begun.set()
        self._thread.join()

    def take(self, what: str, text: str) -> None:
        """Handle an event or the gauges, as JSON text."""
        if what == "event" and not self._has_begun.is_set():
            event = json.loads(text)
            if event["type"] == "run.state" and event["state"] != "starting":
                self._has_begun.set()
