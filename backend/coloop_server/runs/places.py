"""Where in an event file what somebody may ask for begins, so that it costs its own bytes to read.

StepPlaces   first event of a step, about every 128th line  -> replay from any step
RareEvents   events that are few and always wanted          -> a page opens without the history
"""

import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from coloop_server.runs.eventlog import MARK_EVERY, Entry

MAX_RARE = 4000
RARE = frozenset({"run.state", "phase", "checkpoint", "edit", "alert", "diagnostic"})


class StepPlaces:
    """Steps and the `seq` of the first event of each, in order. Where a step was done twice the
    later attempt counts. Safe to use from several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.steps: list[int] = []
        self.seqs: list[int] = []
        self.attempt = 0
        self.newest = -1
        """The greatest step of this attempt."""

    def add_all(self, entries: Sequence[Entry]) -> None:
        for _, _, _, _, seq, step, attempt, _ in entries:
            if step is None or (step <= self.newest and attempt <= self.attempt):
                continue
            if attempt > self.attempt or not self.seqs or seq - self.seqs[-1] >= MARK_EVERY:
                self.add(seq, step, attempt)
            self.newest = step

    def add(self, seq: int, step: int, attempt: int) -> None:
        with self.lock:
            if attempt > self.attempt:
                self.attempt = attempt
                first = bisect_left(self.steps, step)
                del self.steps[first:], self.seqs[first:]
            self.steps.append(step)
            self.seqs.append(seq)

    def before(self, step: int) -> int:
        """A `seq` from which on the first event of the step, or of the next one, is not far."""
        with self.lock:
            at = bisect_right(self.steps, step) - 1
            return self.seqs[at] if at >= 0 else 1

    def keep(self) -> dict[str, Any]:
        with self.lock:
            return {
                "steps": list(self.steps),
                "seqs": list(self.seqs),
                "attempt": self.attempt,
                "newest": self.newest,
            }

    def recall(self, kept: dict[str, Any]) -> None:
        with self.lock:
            self.steps, self.seqs = list(kept["steps"]), list(kept["seqs"])
            self.attempt, self.newest = kept["attempt"], kept["newest"]


class RarePlace(NamedTuple):
    """The line of one event."""

    seq: int
    start: int
    size: int


class RareEvents:
    """The newest of the events that every page wants. Safe to use from several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.places: deque[RarePlace] = deque(maxlen=MAX_RARE)

    def add_all(self, entries: Sequence[Entry]) -> None:
        found = [RarePlace(one.seq, one.start, one.size) for one in entries if one.kind in RARE]
        if found:
            with self.lock:
                self.places.extend(found)

    def upto(self, seq: int) -> list[RarePlace]:
        with self.lock:
            return [place for place in self.places if place.seq <= seq]

    def keep(self) -> list[RarePlace]:
        with self.lock:
            return list(self.places)

    def recall(self, kept: list[list[int]]) -> None:
        with self.lock:
            self.places = deque((RarePlace(*place) for place in kept), maxlen=MAX_RARE)
