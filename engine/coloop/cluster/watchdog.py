"""Tells a host that is slow from one that has stopped: no progress for too long ends the wait."""

import time

from coloop.errors import StageStalled
from coloop.hosts.messages import Poll


class Watchdog:
    """Progress of one call."""

    def __init__(self, what: str, stalled_after_seconds: float) -> None:
        self._what = what
        self._limit = stalled_after_seconds
        self._last: tuple[int, int] | None = None
        self._moved_at = time.monotonic()

    def seen(self, poll: Poll | None) -> None:
        """Note what the host says; raises where it has not moved for too long."""
        now = time.monotonic()
        place = None if poll is None else (poll.done, poll.total)
        if place is not None and place != self._last:
            self._last, self._moved_at = place, now
        elif now - self._moved_at > self._limit:
            raise StageStalled(
                f"{self._what}: no progress for {self._limit:.0f} s "
                f"(at {self._last[0]} of {self._last[1]})"
                if self._last
                else f"{self._what}: no sign of life for {self._limit:.0f} s"
            )
