"""Writes events and gauges into the run folder and passes them to sinks.

A sink that fails is dropped with a line in the log and never stops the run. While a run is alive,
its recorder is the only writer of the event file; it continues the numbering of earlier attempts.
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


Sink = Callable[[str, str], None]
"""Called with `event`, `gauges`, `step_gauges` or `report`, and its JSON text; returns at once."""


class JsonlFiles:
    """`events.jsonl` and `gauges.jsonl`, to which lines are appended, and `gauges.json`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENT_FILE
        self._events = self._path.open("ab", buffering=0)
        self._gauges = folder / "gauges.json"
        self._step_gauges: FileIO | None = None

    def event(self, line: str) -> None:
        """Raises `StorageFull` if there is no room for all of it; then nothing of it is left."""
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
        """Raises `OSError` if it cannot be written; then nothing of it is left."""
        if self._step_gauges is None:
            self._step_gauges = (self._path.parent / GAUGE_LINES).open("ab", buffering=0)
        _append(self._step_gauges, f"{line}\n".encode())

    def settle(self) -> None:
        with suppress(OSError):  # some file systems cannot sync
            os.fsync(self._events.fileno())

    def close(self) -> None:
        self.settle()
        self._events.close()
        if self._step_gauges is not None:
            self._step_gauges.close()


def _append(file: FileIO, data: bytes) -> None:
    """Write all of the data, or on an error nothing."""
    before = os.fstat(file.fileno()).st_size
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        with suppress(OSError):
            file.truncate(before)
        raise


def print_marked(kind: str, text: str) -> None:
    """The sink of a launcher that follows a remote job's log: marked lines on standard output, each
    one write of at most 8 KiB. A longer event loses what is also in files of the run; longer
    gauges lose the stages, then the edges, then the nodes."""
    match kind:
        case "event":
            line = text if _fits(text) else _shortened(text)
        case "gauges":
            line = _gauges_line({"type": "gauges", "gauges": json.loads(text)})
        case "step_gauges":
            line = _gauges_line({"type": "step_gauges", **json.loads(text)})
        case _:
            report = json.loads(text)
            line = json.dumps({"type": kind, kind: report})
            if not _fits(line):
                line = json.dumps({"type": kind, kind: {**report, "metrics": {}}})
    sys.stdout.write(f"{MARK}{line}\n")
    sys.stdout.flush()


def _fits(line: str) -> bool:
    return len(line.encode()) + len(MARK) + 1 <= LONGEST_MARKED_BYTES


def _gauges_line(message: dict[str, Any]) -> str:
    line = json.dumps(message)
    for part in ("stages", "edges", "nodes"):
        if not _fits(line):
            message["gauges"][part] = {}
            line = json.dumps(message)
    return line


def _shortened(line: str) -> str:
    """A long event without what files of the run contain, then without its long texts."""
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
    """The end of a text, as of a traceback; lists, as of fixes, are left out."""
    if isinstance(value, str):
        return value[-LONGEST_TEXT:]
    return [] if isinstance(value, list) else value


class Recorder:
    """Numbers and writes the events and gauges of a run."""

    def __init__(self, folder: Path, run_id: str, sinks: Sequence[Sink] = ()) -> None:
        self.folder = folder
        self.run_id = run_id
        before = repair(folder / EVENT_FILE)
        with suppress(FileNotFoundError), (folder / GAUGE_LINES).open("r+b") as lines:
            cut_end(lines, before.seq)
        self.seq = before.seq
        self.attempt = before.attempt + 1
        self.damaged = before.damaged
        """Invalid lines of earlier attempts."""
        self._files = JsonlFiles(folder)
        self._sinks: list[Sink] = list(sinks)
        self._gauges_at = 0.0

    def record(self, event: Event) -> None:
        """Write one durable event; raises `StorageFull` if the disk is full."""
        number = {"seq": self.seq + 1, "attempt": self.attempt}
        whole = event.model_copy(update={"at": utc_now(), "run": self.run_id, **number})
        line = whole.model_dump_json(exclude_none=True)
        self._files.event(line)
        self.seq += 1
        if isinstance(event, CheckpointEvent | RunStateEvent):
            self._files.settle()
        self._tell("event", line)

    def gauges_are_due(self) -> bool:
        return time.monotonic() - self._gauges_at >= GAUGE_INTERVAL_SECONDS

    def show(self, gauges: Gauges) -> None:
        self._gauges_at = time.monotonic()
        text = gauges.model_dump_json(exclude_none=True)
        try:
            self._files.gauges(text)
        except OSError as error:
            logger.warning("gauges were not written: %s", error)
        self._tell("gauges", text)

    def keep_gauges(self, step: int, gauges: Gauges) -> None:
        """Append the gauges after a step to those for replays."""
        kept = StepGauges(seq=self.seq, attempt=self.attempt, step=step, gauges=gauges)
        line = kept.model_dump_json(exclude_none=True)
        try:
            self._files.step_gauges(line)
        except OSError as error:
            logger.warning("gauges of step %d were not written: %s", step, error)
        self._tell("step_gauges", line)

    def report(self, text: str) -> None:
        self._tell("report", text)

    def add_sink(self, sink: Sink) -> None:
        """Pass later messages on to one more sink."""
        self._sinks.append(sink)

    def close(self) -> None:
        self._files.close()

    def _tell(self, kind: str, text: str) -> None:
        for sink in list(self._sinks):
            try:
                sink(kind, text)
            except Exception as error:
                self._sinks.remove(sink)
                name = getattr(sink, "__name__", type(sink).__name__)
                logger.warning("%s no longer receives events of the run: %s", name, error)
