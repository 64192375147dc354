"""The run folder's writer: numbers durable events, keeps the latest gauges, hands both to the
sinks.

Observers never stop a run: a sink that fails is dropped with one line in the log. The event file is
the truth of a run; the recorder is its only writer while the run is alive, and continues the
numbering of a file that an earlier attempt left (`event_file`).
"""

import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from coloop.errors import StorageFull
from coloop.runtime.run_files.event_file import EVENT_FILE, GAUGE_LINES, cut_end, repair
from coloop.runtime.run_files.events import (
    MARK,
    CheckpointEvent,
    Event,
    Gauges,
    RunStateEvent,
    StepGauges,
    utc_now,
)

logger = logging.getLogger(__name__)

GAUGE_INTERVAL_SECONDS = 0.25
LONGEST_MARKED_BYTES = 8 * 1024
LONGEST_TEXT = 1000


class Sink:
    """Takes what a run says, and must return at once; this one tells nobody."""

    def event(self, line: str) -> None: ...

    def gauges(self, text: str) -> None: ...

    def step_gauges(self, line: str) -> None: ...

    def report(self, text: str) -> None: ...

    def close(self) -> None: ...


class JsonlSink(Sink):
    """`events.jsonl` and `gauges.jsonl`, appended line by line, and `gauges.json`, replaced
    whole."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENT_FILE
        self._events = self._path.open("ab", buffering=0)
        self._gauges = folder / "gauges.json"
        self._step_gauges: FileIO | None = None

    def event(self, line: str) -> None:
        """Raises `StorageFull` where there is no room for all of it; then nothing of it is left."""
        data = f"{line}\n".encode()
        try:
            _append(self._events, data)
        except OSError as error:
            free = shutil.disk_usage(self._path.parent).free
            raise StorageFull(
                f"an event of the run could not be written to {self._path}: {error}; it needs "
                f"{len(data)} bytes, {free} are free there; free some space and resume the run"
            ) from error

    def gauges(self, text: str) -> None:
        aside = self._gauges.with_suffix(".json.new")
        aside.write_text(text, encoding="utf-8")
        aside.replace(self._gauges)

    def step_gauges(self, line: str) -> None:
        """Raises `OSError` where it cannot be written; then nothing of it is left."""
        if self._step_gauges is None:
            self._step_gauges = (self._path.parent / GAUGE_LINES).open("ab", buffering=0)
        _append(self._step_gauges, f"{line}\n".encode())

    def settle(self) -> None:
        """What was written is on the disk, where the file system can be asked for that."""
        with suppress(OSError):
            os.fsync(self._events.fileno())

    def close(self) -> None:
        self.settle()
        self._events.close()
        if self._step_gauges is not None:
            self._step_gauges.close()


def _append(file: FileIO, data: bytes) -> None:
    """Write all of the data, or on an error nothing of it."""
    before = os.fstat(file.fileno()).st_size
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        with suppress(OSError):
            file.truncate(before)
        raise


class MarkedLinesSink(Sink):
    """Marked lines on standard output, for a launcher that follows a remote job's log.

    A line is one write of at most 8 KiB. Of a longer event what lies in files of the run is left
    out; of longer gauges the stages, then the edges, then the nodes.
    """

    def event(self, line: str) -> None:
        self._write(line if _fits(line) else _shortened(line))

    def gauges(self, text: str) -> None:
        self._write(_gauges_line({"type": "gauges", "gauges": json.loads(text)}))

    def step_gauges(self, line: str) -> None:
        self._write(_gauges_line({"type": "step_gauges", **json.loads(line)}))

    def report(self, text: str) -> None:
        report = json.loads(text)
        line = json.dumps({"type": "report", "report": report})
        if not _fits(line):
            line = json.dumps({"type": "report", "report": {**report, "metrics": {}}})
        self._write(line)

    def _write(self, line: str) -> None:
        sys.stdout.write(f"{MARK}{line}\n")
        sys.stdout.flush()


def _fits(line: str) -> bool:
    return len(line.encode()) + len(MARK) + 1 <= LONGEST_MARKED_BYTES


def _gauges_line(told: dict[str, Any]) -> str:
    line = json.dumps(told)
    for part in ("stages", "edges", "nodes"):
        if not _fits(line):
            told["gauges"][part] = {}
            line = json.dumps(told)
    return line


def _shortened(line: str) -> str:
    """A long event without what lies in files of the run, and then without its long texts."""
    event = json.loads(line)
    for name in ("rows", "detail", "metrics", "changes"):
        if not _fits(json.dumps(event)) and name in event:
            event[name] = [] if name == "rows" else {}
    if not _fits(json.dumps(event)):
        for name in ("error", "diagnostic"):
            if name in event:
                event[name] = {key: _end_of(value) for key, value in event[name].items()}
        if "message" in event:
            event["message"] = str(event["message"])[:LONGEST_TEXT]
    return json.dumps(event)


def _end_of(value: object) -> object:
    """Of a traceback the end matters; lists of repairs are left out."""
    if isinstance(value, str):
        return value[-LONGEST_TEXT:]
    return [] if isinstance(value, list) else value


class CallbackSink(Sink):
    """Hands events and gauges to a function of the same process (the terminal display)."""

    def __init__(self, on_event: Callable[[str, str], None]) -> None:
        """
        Args:
            on_event: told of `event` or `gauges`, and their JSON text.
        """
        self._on_event = on_event

    def event(self, line: str) -> None:
        self._on_event("event", line)

    def gauges(self, text: str) -> None:
        self._on_event("gauges", text)


class Recorder:
    """Numbers and writes what a run says."""

    def __init__(self, folder: Path, run_id: str, sinks: Sequence[Sink] = ()) -> None:
        self.folder = folder
        self.run_id = run_id
        before = repair(folder / EVENT_FILE)
        with suppress(FileNotFoundError), (folder / GAUGE_LINES).open("r+b") as lines:
            cut_end(lines, before.seq)
        self.seq = before.seq
        self.attempt = before.attempt + 1
        self.damaged = before.damaged
        """Lines of earlier attempts that are no events; they stay as they are."""
        self._file = JsonlSink(folder)
        self._sinks: list[Sink] = list(sinks)
        self._gauges_at = 0.0

    def record(self, event: Event) -> None:
        """Write one durable event; raises `StorageFull` where there is no room for it."""
        number = {"seq": self.seq + 1, "attempt": self.attempt}
        whole = event.model_copy(update={"at": utc_now(), "run": self.run_id, **number})
        line = whole.model_dump_json(exclude_none=True)
        self._file.event(line)
        self.seq += 1
        if isinstance(event, CheckpointEvent | RunStateEvent):
            self._file.settle()
        for sink in list(self._sinks):
            self._tell(sink, "event", line)

    def gauges_are_due(self) -> bool:
        """Whether enough time has passed since the last gauges."""
        return time.monotonic() - self._gauges_at >= GAUGE_INTERVAL_SECONDS

    def show(self, gauges: Gauges) -> None:
        self._gauges_at = time.monotonic()
        text = gauges.model_dump_json(exclude_none=True)
        try:
            self._file.gauges(text)
        except OSError as error:
            logger.warning("gauges were not written: %s", error)
        for sink in list(self._sinks):
            self._tell(sink, "gauges", text)

    def keep_gauges(self, step: int, gauges: Gauges) -> None:
        """Append the gauges at the end of a step to those that a replay reads."""
        kept = StepGauges(seq=self.seq, attempt=self.attempt, step=step, gauges=gauges)
        line = kept.model_dump_json(exclude_none=True)
        try:
            self._file.step_gauges(line)
        except OSError as error:
            logger.warning("gauges of step %d were not written: %s", step, error)
        for sink in list(self._sinks):
            self._tell(sink, "step_gauges", line)

    def report(self, text: str) -> None:
        for sink in list(self._sinks):
            self._tell(sink, "report", text)

    def close(self) -> None:
        for sink in (self._file, *self._sinks):
            sink.close()

    def _tell(self, sink: Sink, what: str, text: str) -> None:
        try:
            getattr(sink, what)(text)
        except Exception as error:
            self._sinks.remove(sink)
            logger.warning(
                ("%s no longer receives events of the run: %s"), type(sink).__name__, error
            )
