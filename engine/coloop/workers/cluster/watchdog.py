"""Tells ranks that are slow from those that have stopped: no sign of life or no progress for too
long ends the wait."""

import time
from collections.abc import Collection, Sequence

from coloop.workers.answers import merged
from coloop.workers.messages import Poll


class Watchdog:
    """Signs of life and progress of one call."""

    def __init__(self, ranks: int, stalled_after_seconds: float) -> None:
        now = time.monotonic()
        self._last: list[Poll | None] = [None] * ranks
        self._limit = stalled_after_seconds
        self._heard_at = [now] * ranks
        self._moved_at = [now] * ranks

    def seen(self, polls: Sequence[Poll | None]) -> None:
        """Note what the ranks say; None of one that has said nothing."""
        now = time.monotonic()
        for rank, poll in enumerate(polls):
            if poll is None:
                continue
            before = self._last[rank]
            if before is None or (poll.done, poll.total) != (before.done, before.total):
                self._moved_at[rank] = now
            self._last[rank], self._heard_at[rank] = poll, now

    def together(self, polls: Sequence[Poll | None]) -> Poll | None:
        """How far all ranks are by what each has said last; None where none has said anything
        now."""
        told = [poll for poll in self._last if poll is not None]
        return merged(told) if any(poll is not None for poll in polls) else None

    def stalled(self, waiting: Collection[int]) -> tuple[int, str] | None:
        """A rank among those that are waited for which has stopped, and how: one that is not heard
        of; where none gets any further, the one that is furthest behind."""
        now = time.monotonic()
        silent = [rank for rank in waiting if now - self._heard_at[rank] > self._limit]
        if silent:
            return min(silent), f"no sign of life for {self._limit:.0f} s"
        if any(now - self._moved_at[rank] <= self._limit for rank in waiting):
            return None
        rank = min(waiting, key=self._done)
        last = self._last[rank]
        place = f" (at {last.done} of {last.total})" if last is not None else ""
        return rank, f"no progress for {self._limit:.0f} s{place}"

    def _done(self, rank: int) -> int:
        last = self._last[rank]
        return 0 if last is None else last.done
