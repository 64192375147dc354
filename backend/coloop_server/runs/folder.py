"""A run on disk, as the server sees it: `runs/<run id>/`.

The driver owns the folder while it lives; the server reads, and appends requests to
`control.jsonl`. Only when a driver is dead does the server write the event that the driver can no
longer write. What lies in a folder may come from anywhere: only plain files in it are opened, so
that a pipe, a device or a link in the place of one neither holds the reader nor leads it away.
"""

import json
import math
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from coloop.data.services.replies import is_nested_deeper
from coloop.runtime.checkpoints.forking import PARENT_FILE, Parent, parent_in
from coloop.runtime.run_files.event_file import GAUGE_LINES
from coloop.runtime.run_files.events import ControlRequest, Event, utc_now
from coloop_server.private import open_plain

MAX_PARENT_BYTES = 4096
MAX_GAUGES_BYTES = 4 * 1024 * 1024
MAX_TEXT_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 60
"""Deepest nesting of JSON that is read from a file and sent."""
DECODER = json.JSONDecoder(parse_constant=lambda _: None)
ODD = re.compile(r"\\u[dD][89a-fA-F]|[eE]\+?[0-9]{3}")
"""Lone surrogates and numbers too large for a float, which cannot be sent."""


class Stamp(NamedTuple):
    """State of a file: an equal stamp means equal content."""

    size: int
    mtime_ns: int


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = path / "events.jsonl"
        self.gauges = path / "gauges.json"
        self.gauge_lines = path / GAUGE_LINES
        self.control = path / "control.jsonl"

    @property
    def is_run(self) -> bool:
        """Whether this is the folder of a run."""
        try:
            return self.events.is_file() and (self.path / "spec.yaml").is_file()
        except OSError:
            return False  # no file system holds such a name

    def spec_text(self) -> str | None:
        return read_text(self.path / "spec.yaml")

    def report(self) -> Any:
        text = read_text(self.path / "report.json")
        return None if text is None else plain_json(text)

    def parent(self) -> Parent | None:
        """The run and the step that this one started from; None if it began anew."""
        return parent_in(read_text(self.path / PARENT_FILE, MAX_PARENT_BYTES))

    def ask(self, request: ControlRequest) -> bool:
        """Append a request for the driver; False if there is no folder yet."""
        if not self.path.is_dir():
            return False
        with open_plain(self.control, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            file.write(request.model_dump_json().encode() + b"\n")
        return True

    def append_event(self, event: Event, *, run: str, seq: int, attempt: int, end: int) -> bool:
        """Write an event in the dead driver's place, after its last whole line at byte `end`.

        Only a line that was not written whole goes. False, and nothing is changed, where there are
        whole lines behind `end`: they have to be read first.
        """
        whole = event.model_copy(
            update={"seq": seq, "at": utc_now(), "run": run, "attempt": attempt}
        )
        with open_plain(self.events, os.O_RDWR) as file:
            file.seek(end)
            if b"\n" in file.read():
                return False
            file.truncate(end)
            file.seek(end)
            file.write(whole.model_dump_json(exclude_none=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return True

    def inside(self, relative: str) -> Path | None:
        """A file in this folder by an event's relative path; None if it is outside."""
        try:
            path = (self.path / relative).resolve()
            is_ours = path.is_relative_to(self.path.resolve()) and path.is_file()
        except (OSError, ValueError, RuntimeError):
            return None
        return path if is_ours else None


def stamp_of(path: Path) -> Stamp | None:
    """None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Stamp(status.st_size, status.st_mtime_ns)


def read_text(path: Path, limit: int = MAX_TEXT_BYTES) -> str | None:
    """The text of a file that a driver may replace or remove at any time."""
    try:
        with open_plain(path) as file:
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def plain_json(text: str | bytes) -> Any:
    """Parse JSON; non-finite numbers become null and lone surrogates `?`, so that the value can be
    sent. None if it is invalid."""
    try:
        whole = text.decode("utf-8") if isinstance(text, bytes) else text
        value = DECODER.decode(whole)
        if not ODD.search(whole):
            return value
        sent = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return json.loads(sent, parse_constant=lambda _: None, parse_float=finite)
    except (ValueError, RecursionError):
        return None


def finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def is_shallow(value: Any) -> bool:
    """Whether a value is nested no deeper than what can be sent."""
    return not is_nested_deeper(value, MAX_DEPTH)
