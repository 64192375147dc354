"""One run as its folder shows it: event log, summary, curves, positions of samples and steps, and
latest gauges."""

import json
import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coloop_server.runs.eventlog import MARK_EVERY, Entry, EventLog
from coloop_server.runs.folder import (
    MAX_GAUGES_BYTES,
    RunFolder,
    Stamp,
    plain_json,
    read_text,
    stamp_of,
)
from coloop_server.runs.rows import parts_of, rows_of
from coloop_server.runs.samples import SampleIndex
from coloop_server.runs.series import SECONDS, TOKENS, Ends, Key, Points, SeriesIndex
from coloop_server.runs.summary import Summary

MAX_RARE = 4000
RARE = frozenset({"run.state", "phase", "checkpoint", "edit", "alert", "diagnostic"})


class StepPlaces:
    """Steps and the `seq` of the first event of each, in order. If a step was repeated, the later
    attempt counts. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.steps: list[int] = []
        self.seqs: list[int] = []
        self.attempt = 0
        self.newest = -1
        """The largest step of this attempt."""

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
        """A `seq` shortly before the first event of the step or of the next one."""
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
    seq: int
    start: int
    size: int


class RareEvents:
    """The newest of the events that every page needs. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.places: deque[RarePlace] = deque(maxlen=MAX_RARE)

    def add_all(self, entries: Sequence[Entry]) -> None:
        places = [
            RarePlace(entry.seq, entry.start, entry.size) for entry in entries if entry.kind in RARE
        ]
        if places:
            with self.lock:
                self.places.extend(places)

    def upto(self, seq: int) -> list[RarePlace]:
        with self.lock:
            return [place for place in self.places if place.seq <= seq]

    def keep(self) -> list[RarePlace]:
        with self.lock:
            return list(self.places)

    def recall(self, kept: list[list[int]]) -> None:
        with self.lock:
            self.places = deque((RarePlace(*place) for place in kept), maxlen=MAX_RARE)


KEPT_VERSION = 3


class Snapshot(NamedTuple):
    """Curves of a run as of one event."""

    seq: int
    attempt: int
    ends: list[Ends]
    points: dict[Key, Points]
    """Requested curves and related cumulative ones."""
    stages: dict[str, float]
    """Seconds of work, by stage."""


class Watch:
    """Reads new data when polled. Thread-safe."""

    summary: Summary
    series: SeriesIndex
    samples: SampleIndex
    steps: StepPlaces
    rare: RareEvents

    def __init__(
        self, path: Path, kept: dict[str, Any] | None = None, curves: Path | None = None
    ) -> None:
        """`curves`: file for the curves, which `kept` does not contain; None: not saved."""
        self.folder = RunFolder(path)
        self.curves = curves
        self.log = EventLog(self.folder.events)
        self.begin()
        self.beginning = self.log.beginnings
        self.gauges: str | None = None
        self.gauges_version = 0
        self.gauges_stamp: tuple[int, int] | None = None
        self.lock = threading.Lock()
        if kept is not None:
            self.recall(kept)

    def poll(self) -> bool:
        """Read everything new; returns whether there was anything."""
        with self.lock:
            is_changed = False
            if self.log.end and not self.log.path.exists():
                self.forget()
            while entries := self.log.refresh():
                is_changed = True
                if self.log.beginnings != self.beginning:
                    self.begin_anew()
                self.take(entries)
            return self.poll_gauges() or is_changed

    def take(self, entries: Sequence[Entry]) -> None:
        for part in parts_of(entries):
            rows = rows_of(part, self.series.step)
            self.summary.add_all(part, rows)
            self.series.add_all(part, rows)
        self.steps.add_all(entries)
        self.rare.add_all(entries)
        for entry in entries:
            if entry.kind == "sample":
                self.samples.add(entry)

    def poll_gauges(self) -> bool:
        try:
            status = self.folder.gauges.stat()
        except OSError:
            return False
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self.gauges_stamp:
            return False
        self.gauges_stamp = stamp
        gauges = plain_json(read_text(self.folder.gauges, MAX_GAUGES_BYTES) or "")
        if not isinstance(gauges, dict):
            return False
        self.gauges = json.dumps(gauges, ensure_ascii=False)
        self.gauges_version += 1
        self.summary.gauge(gauges)
        return True

    def ends(self, wanted: Callable[[Key], bool]) -> list[Ends]:
        return [curve for curve in self.series.ends() if wanted(curve.key)]

    def snapshot(self, wanted: Callable[[Key], bool]) -> Snapshot:
        """Curves without points after the last `seq`."""
        with self.lock:
            keys = [key for key in self.series.keys() if wanted(key)]  # noqa: SIM118
            return Snapshot(
                self.log.last_seq,
                self.summary.attempt,
                self.series.ends(),
                self.series.read([*keys, SECONDS, TOKENS]),
                dict(self.series.stages),
            )

    def keep(self) -> tuple[Stamp | None, dict[str, Any]]:
        """State to save: the stamp of a file that was read to its end, and the rest as JSON. The
        stamp is taken before the last poll, so that later data is read again."""
        stamp = stamp_of(self.folder.events)
        self.poll()
        with self.lock:
            if self.curves is not None:
                self.series.keep(self.curves, self.log.end)
            return stamp, {
                "version": KEPT_VERSION,
                "log": self.log.keep(),
                "summary": self.summary.keep(),
                "samples": self.samples.keep(),
                "steps": self.steps.keep(),
                "rare": self.rare.keep(),
            }

    def recall(self, kept: dict[str, Any]) -> None:
        """Restore saved state; what does not fit the file is read again."""
        if kept.get("version") != KEPT_VERSION or self.curves is None:
            return
        if not self.series.recall(self.curves, kept["log"]["end"]):
            return
        if not self.log.recall(kept["log"]):
            self.begin()
            return
        self.summary = Summary.recall(kept["summary"])
        self.samples.recall(kept["samples"])
        self.steps.recall(kept["steps"])
        self.rare.recall(kept["rare"])

    def forget(self) -> None:
        """The folder was removed; a new one is read from the start."""
        self.log.reset()
        self.begin_anew()
        self.gauges = None
        self.gauges_stamp = None

    def begin_anew(self) -> None:
        """The event file was replaced."""
        self.beginning = self.log.beginnings
        self.begin()

    def begin(self) -> None:
        self.summary = Summary()
        self.series = SeriesIndex()
        self.samples = SampleIndex()
        self.steps = StepPlaces()
        self.rare = RareEvents()
