"""Curves of a run: its metrics by step, and what lies between two steps, for charts of any width.

      metrics events --add--> curve of each `node.metric`: steps, values (folded, in order)
                                        |  keep: one file, a block a curve
                                        '--fold--> buckets: min, max, mean, last

Curves are what the page makes of the same events: the first point of a later attempt cuts a curve
from its step on, and a second value of a step replaces the first. Curves that were kept stay in
their file until somebody asks for them or the run goes on. Safe to use from several threads.
"""

import json
import logging
import math
import os
import threading
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import lt
from pathlib import Path
from typing import Any, NamedTuple

from coloop_server.private import ensure_private_folder, open_plain, write_private_bytes
from coloop_server.runs.eventlog import Entry
from coloop_server.runs.rows import MetricRows
from coloop_server.runs.summary import finite_or_none, is_number, read_time, whole

logger = logging.getLogger(__name__)

MAX_CURVES = 400
MAX_NAME = 300
HEAD_BYTES = 4096
MAX_STAGES = 200
LEARN = ".learn"
"""Suffix of stages whose tokens are learned from."""
EVALUATE = ".evaluate"
"""Suffix of stages that are complete evaluations."""
FORMAT = 1
KEPT = ("attempt", "step", "began", "spent", "last_at", "stages")
"""State that a reader passes to the next one, besides the curves."""

Key = tuple[str, str]
SECONDS: Key = ("", "seconds")
TOKENS: Key = ("", "tokens")


class Points(NamedTuple):
    """A curve: steps in order without repeats, and their values; NaN if not a number."""

    steps: "array[int]"
    values: "array[float]"


class Ends(NamedTuple):
    key: Key
    points: int
    first_step: int
    last_step: int
    last: float


@dataclass(slots=True)
class Curve:
    """A curve in memory, or its position in the file."""

    points: Points | None = field(default_factory=lambda: Points(array("i"), array("d")))
    place: int = 0
    count: int = 0
    attempt: int = 0

    def add(self, step: int, value: float, attempt: int) -> None:
        steps, values = self.cut(step, attempt)
        if not steps or step > steps[-1]:
            steps.append(step)
            values.append(value)
            return
        at = bisect_left(steps, step)
        if steps[at] == step:
            values[at] = value
        else:
            steps.insert(at, step)
            values.insert(at, value)

    def extend(self, steps: "array[int]", values: "array[float]", attempt: int) -> None:
        known = self.cut(steps[0], attempt)
        is_behind = not known.steps or steps[0] > known.steps[-1]
        if is_behind and all(map(lt, steps, steps[1:])):
            known.steps.extend(steps)
            known.values.extend(values)
            return
        for step, value in zip(steps, values, strict=True):
            self.add(step, value, attempt)

    def count_up(self, step: int, more: float, attempt: int) -> None:
        """Add to the cumulative value of the curve."""
        steps, values = self.cut(step, attempt)
        if steps and step <= steps[-1]:
            values[-1] += more
        else:
            steps.append(step)
            values.append(values[-1] + more if values else more)

    def cut(self, step: int, attempt: int) -> Points:
        """Points of the curve that remain when an attempt reaches a step."""
        assert self.points is not None
        if attempt > self.attempt:
            first = bisect_left(self.points.steps, step)
            del self.points.steps[first:], self.points.values[first:]
            self.attempt = attempt
        return self.points


class KeptFile:
    """Saved curves; it stays the same file if another one gets its name."""

    def __init__(self, path: Path) -> None:
        with open_plain(path) as file:
            self.descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.descriptor)
        self.size = os.fstat(self.descriptor).st_size

    def first_line(self) -> bytes:
        line = b""
        while b"\n" not in line and (more := os.pread(self.descriptor, HEAD_BYTES, len(line))):
            line += more
        return line[: line.find(b"\n") + 1]

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self.descriptor, end - start, start)


class SeriesIndex:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.curves: dict[Key, Curve] = {}
        self.file: KeptFile | None = None
        self.attempt = 0
        self.step = 0
        """Last step in an event; it applies to events without one."""
        self.began: float | None = None
        """Start of the attempt."""
        self.spent = 0.0
        self.last_at: str | None = None
        self.stages: dict[str, float] = {}
        """Seconds of work by stage; work for an evaluation counts only there."""

    def add_all(self, entries: Sequence[Entry], rows: MetricRows) -> None:
        """Add a batch of events of one attempt; parts of a wrong type are ignored."""
        with self.lock:
            attempt = entries[0].attempt
            if attempt > self.attempt:
                self.begin_attempt(attempt, entries[0].event.get("at"))
            self.last_at = entries[-1].event.get("at")
            for event, _, _, kind, _, step, _, _ in entries:
                if step is not None:
                    self.step = step
                if kind == "stage.finished":
                    self.finish(event, attempt)
            for key, steps, values in rows.columns():
                if (curve := self.curve(key)) is not None:
                    curve.extend(steps, values, attempt)
            if self.began is None or not rows.clock:
                return
            worked = {step: self.spent + max(at - self.began, 0.0) for step, at in rows.clock}
            if (clock := self.curve(SECONDS)) is not None:
                clock.extend(array("i", worked), array("d", worked.values()), attempt)

    def begin_attempt(self, attempt: int, at: Any) -> None:
        """Time between two attempts is not counted."""
        ended = read_time(self.last_at)
        if self.began is not None and ended is not None:
            self.spent += max(ended.timestamp() - self.began, 0.0)
        began = read_time(at)
        self.began = None if began is None else began.timestamp()
        self.attempt = attempt

    def finish(self, event: dict[str, Any], attempt: int) -> None:
        """Add a finished stage's seconds, and tokens if it learned."""
        stage, seconds = str(event.get("stage")), event.get("seconds")
        if event.get("evaluation") and not stage.endswith(EVALUATE):
            return
        spent = self.stages.get(stage)
        if spent is None and len(self.stages) < MAX_STAGES and len(stage) <= MAX_NAME:
            spent = 0.0
        if spent is not None and is_number(seconds):
            self.stages[stage] = spent + (finite_or_none(seconds) or 0.0)
        tokens = whole(event.get("tokens")) if stage.endswith(LEARN) else None
        if tokens and (curve := self.curve(TOKENS)) is not None:
            curve.count_up(self.step, tokens, attempt)

    def curve(self, key: Key) -> Curve | None:
        """The curve of this name, in memory; None if there are too many."""
        curve = self.curves.get(key)
        if curve is not None and curve.points is not None:
            return curve
        if curve is None:
            own = (SECONDS, TOKENS)
            others = len(self.curves) - sum(known in self.curves for known in own)
            if key not in own and (others >= MAX_CURVES or max(map(len, key)) > MAX_NAME):
                return None
            curve = self.curves[key] = Curve()
        if curve.points is None:
            curve.points = self.points_of(curve)
        return curve

    def points_of(self, curve: Curve) -> Points:
        if curve.points is not None:
            return curve.points
        points = Points(array("i"), array("d"))
        if self.file is not None:
            middle = curve.place + curve.count * points.steps.itemsize
            end = middle + curve.count * points.values.itemsize
            points.steps.frombytes(self.file.read(curve.place, middle))
            points.values.frombytes(self.file.read(middle, end))
        return points

    # Asking

    def keys(self) -> list[Key]:
        with self.lock:
            return [key for key in self.curves if key not in (SECONDS, TOKENS)]

    def read(self, keys: Iterable[Key]) -> dict[Key, Points]:
        """Copies of non-empty curves."""
        with self.lock:
            curves = {}
            for key in keys:
                curve = self.curves.get(key)
                if curve is None:
                    continue
                points = self.points_of(curve)
                if points is curve.points:
                    points = Points(points.steps[:], points.values[:])
                if points.steps:
                    curves[key] = points
            return curves

    def ends(self) -> list[Ends]:
        with self.lock:
            told = []
            for key in self.keys():
                curve = self.curves[key]
                if curve.points is not None:
                    steps, values = curve.points
                    if steps:
                        told.append(Ends(key, len(steps), steps[0], steps[-1], values[-1]))
                elif curve.count and self.file is not None:
                    told.append(Ends(key, curve.count, *self.ends_in_file(curve)))
            return told

    def ends_in_file(self, curve: Curve) -> tuple[int, int, float]:
        assert self.file is not None
        size = array("i").itemsize
        middle = curve.place + curve.count * size
        end = middle + curve.count * array("d").itemsize
        steps, values = array("i"), array("d")
        steps.frombytes(self.file.read(curve.place, curve.place + size))
        steps.frombytes(self.file.read(middle - size, middle))
        values.frombytes(self.file.read(end - values.itemsize, end))
        return steps[0], steps[1], values[0]

    # Keeping

    def keep(self, path: Path, end: int) -> bool:
        """Save all curves, as of byte `end` of the event file; False if that fails, and the next
        reader starts over."""
        with self.lock:
            blocks, curves, start = [], [], 0
            for key, curve in self.curves.items():
                points = self.points_of(curve)
                blocks += [points.steps.tobytes(), points.values.tobytes()]
                curves.append([*key, start, len(points.steps), curve.attempt])
                start += len(blocks[-1]) + len(blocks[-2])
            head = {
                "format": FORMAT,
                "end": end,
                "curves": curves,
                **{name: getattr(self, name) for name in KEPT},
            }
        try:
            ensure_private_folder(path.parent)
            write_private_bytes(path, b"".join([json.dumps(head).encode(), b"\n", *blocks]))
        except OSError as error:
            logger.warning("the curves of %s could not be kept: %s", path.stem, error)
            return False
        return True

    def recall(self, path: Path, end: int) -> bool:
        """Continue from a saved file; False if it is missing or another one."""
        try:
            file = KeptFile(path)
            line = file.first_line()
            head = json.loads(line)
            if head["format"] != FORMAT or head["end"] != end:
                return False
            curves = {}
            for node, metric, start, count, attempt in head["curves"]:
                curves[(node, metric)] = Curve(None, len(line) + start, count, attempt)
            size = sum(curve.count for curve in curves.values())
            if file.size != len(line) + size * (array("i").itemsize + array("d").itemsize):
                return False
        except (OSError, ValueError, KeyError, TypeError):
            return False
        with self.lock:
            self.file, self.curves = file, curves
            vars(self).update((name, head[name]) for name in KEPT)
        return True


@dataclass
class Buckets:
    """A curve in buckets, as lists of equal length. In a bucket without finite values all four
    numbers are None."""

    step: list[int] = field(default_factory=list)
    """The last step with a value."""
    count: list[int] = field(default_factory=list)
    min: list[float | None] = field(default_factory=list)
    max: list[float | None] = field(default_factory=list)
    mean: list[float | None] = field(default_factory=list)
    last: list[float | None] = field(default_factory=list)

    def put(self, step: int, values: "array[float]") -> None:
        self.step.append(step)
        total = sum(values)
        finite: Sequence[float] = values
        if not math.isfinite(total):
            finite = [value for value in values if math.isfinite(value)]
            total = sum(finite)
        count = len(finite)
        self.count.append(count)
        if not count:
            for column in (self.min, self.max, self.mean, self.last):
                column.append(None)
            return
        mean = total / count
        if not math.isfinite(mean):  # the sum is more than a float holds
            mean = sum(value / count for value in finite)
        least, most = min(finite), max(finite)
        self.min.append(least)
        self.max.append(most)
        self.mean.append(min(max(mean, least), most))  # rounding leads nowhere else
        self.last.append(finite[-1])


def within(points: Points, first: int, last: int) -> range:
    """Indices of the points between two steps, inclusive."""
    return range(bisect_left(points.steps, first), bisect_right(points.steps, last))


def cut_ends(points: Points, ends: Ends, first: int, last: int) -> Ends | None:
    """Ends of the part between two steps; None if it is empty."""
    positions = within(points, first, last)
    if not positions:
        return None
    steps, values = points
    return Ends(
        ends.key, len(positions), steps[positions[0]], steps[positions[-1]], values[positions[-1]]
    )


def width_for(curves: Sequence[Ends], buckets: int) -> int:
    """Steps per bucket, a power of two: 1 if every point can be sent, else the smallest that gives
    no curve more than `buckets`, with both ends separate."""
    if all(curve.points <= buckets for curve in curves):
        return 1
    begin = min(curve.first_step for curve in curves)
    end = max(curve.last_step for curve in curves)
    width = 1
    while end // width - begin // width + 1 > max(buckets - 2, 1):
        width *= 2
    return width


def fold(points: Points, first: int, last: int, width: int) -> Buckets:
    """Points between two steps in buckets of `width` steps; the ends stay separate."""
    told = Buckets()
    positions = within(points, first, last)
    if not positions:
        return told
    steps, values = points
    at, end = positions.start, positions.stop - 1
    told.put(steps[at], values[at : at + 1])
    at += 1
    while at < end:
        after = at + 1
        if width > 1:
            after = bisect_left(steps, (steps[at] // width + 1) * width, at, end)
        told.put(steps[after - 1], values[at:after])
        at = after
    if end > positions.start:
        told.put(steps[end], values[end : end + 1])
    return told


def values_at(points: Points | None, steps: Iterable[int]) -> list[float | None]:
    """Values of a growing curve at these steps."""
    if points is None:
        return [None for _ in steps]
    positions = (bisect_right(points.steps, step) - 1 for step in steps)
    return [points.values[at] if at >= 0 else 0.0 for at in positions]


def sidecar_of(data_dir: Path, run_id: str) -> Path:
    return data_dir / "series" / f"{os.path.basename(run_id)}.curves"
