"""Sends a run to a tracker from a thread of its own.

The run never waits: a message that finds the queue full is dropped, and the tracker that fails is
left alone. Either is reported once; `coloop log` sends the whole run later.
"""

import logging
import queue
import threading
from collections.abc import Callable

from coloop.spec.placement import TrackerName
from coloop.tracking.feed import Feed
from coloop.tracking.registry import new_tracker
from coloop.tracking.tracker import RunAbout

logger = logging.getLogger(__name__)

MOST_WAITING = 5000
"""Messages in the queue."""
LAST_SECONDS = 30.0
"""How long the end of a run waits for a tracker to take the rest."""
AWAY = "run.tracker_away"
KINDS = frozenset({"event", "step_gauges"})
UNSENT = frozenset({'"type":"stage.started"', '"type":"stage.finished"', '"type":"log"'})
"""Events that no tracker receives; their gauges say the same in short."""


class TrackerSink:
    """A sink of the recorder (`coloop.runtime.run_files.recorder.Sink`) for one tracker.

    Args:
        name: The tracker.
        about: The run.
        on_problem: Called with one sentence, from any thread, at most once.
        with_checkpoints: Whether checkpoints are sent as artifacts.
    """

    def __init__(
        self,
        name: TrackerName,
        about: RunAbout,
        on_problem: Callable[[str], None],
        *,
        with_checkpoints: bool = False,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.name = name
        self.about = about
        self._on_problem = on_problem
        self._with_checkpoints = with_checkpoints
        self._queue: queue.Queue[tuple[str, str] | None] = queue.Queue(most_waiting)
        self._has_problem = False
        self._is_failed = False
        self._thread = threading.Thread(target=self._work, name=f"tracker {name}", daemon=True)
        self._thread.start()

    def __call__(self, kind: str, text: str) -> None:
        if kind not in KINDS or self._is_failed or any(part in text[:400] for part in UNSENT):
            return
        try:
            self._queue.put_nowait((kind, text))
        except queue.Full:
            waiting = self._queue.maxsize
            self._problem(f"it is slow: {waiting} messages are waiting, and more are lost")

    def close(self, timeout: float = LAST_SECONDS) -> None:
        """Wait until the tracker has taken everything, at most so many seconds."""
        try:
            self._queue.put(None, timeout=timeout)
        except queue.Full:
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._problem(f"it has not taken the end of the run within {timeout:.0f} s")

    def _work(self) -> None:
        feed: Feed | None = None
        try:
            feed = Feed(new_tracker(self.name), self.about, with_checkpoints=self._with_checkpoints)
            while (message := self._queue.get()) is not None:
                feed.take(*message)
            feed.close()
        except BaseException as error:  # SystemExit too: some libraries call `sys.exit`
            self._is_failed = True
            self._problem(f"{type(error).__name__}: {error}".strip())
            logger.info("tracker %s", self.name, exc_info=True)
            while self._queue.get() is not None:
                pass

    def _problem(self, what: str) -> None:
        if self._has_problem:
            return
        self._has_problem = True
        self._on_problem(
            f"{self.name} does not receive the whole run: {what}. The run folder has everything: "
            f"`coloop log {self.about.run} --to {self.name}` sends it"
        )
