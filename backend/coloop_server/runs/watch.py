"""One run as its folder shows it: the event log, its summary, where its samples are told of, and
the latest gauges, kept fresh."""

import json
import threading
from pathlib import Path
from typing import Any

from coloop_server.runs.eventlog import EventLog
from coloop_server.runs.folder import (
    MAX_GAUGES_BYTES,
    RunFolder,
    Stamp,
    plain_json,
    read_text,
    stamp_of,
)
from coloop_server.runs.samples import SampleIndex
from coloop_server.runs.summary import Summary

KEPT_VERSION = 1


class Watch:
    """Reads what is new when polled. Safe to use from several threads."""

    def __init__(self, path: Path, kept: dict[str, Any] | None = None) -> None:
        self.folder = RunFolder(path)
        self.log = EventLog(self.folder.events)
        self.summary = Summary()
        self.samples = SampleIndex()
        self.beginning = self.log.beginnings
        self.gauges: str | None = None
        self.gauges_version = 0
        self.gauges_stamp: tuple[int, int] | None = None
        self.lock = threading.Lock()
        if kept is not None:
            self.recall(kept)

    def poll(self) -> bool:
        """Read everything that is new; whether there was anything."""
        with self.lock:
            is_changed = False
            if self.log.end and not self.log.path.exists():
                self.forget()
            while entries := self.log.refresh():
                is_changed = True
                if self.log.beginnings != self.beginning:
                    self.begin_anew()
                for entry in entries:
                    self.summary.add(entry.event)
                    if entry.event["type"] == "sample":
                        self.samples.add(entry)
            return self.poll_gauges() or is_changed

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

    def keep(self) -> tuple[Stamp | None, dict[str, Any]]:
        """What was read so far: the stamp of a file that was read to its end, and the rest as JSON.

        The stamp is taken before the last poll: what is written in between is read again.
        """
        stamp = stamp_of(self.folder.events)
        self.poll()
        with self.lock:
            return stamp, {
                "version": KEPT_VERSION,
                "log": self.log.keep(),
                "summary": self.summary.keep(),
                "samples": self.samples.keep(),
            }

    def recall(self, kept: dict[str, Any]) -> None:
        """Go on from what an earlier reader kept; what does not fit the file is read anew."""
        if kept.get("version") != KEPT_VERSION or not self.log.recall(kept["log"]):
            return
        self.summary = Summary.recall(kept["summary"])
        self.samples.recall(kept["samples"])

    def forget(self) -> None:
        """The folder was removed: what comes next is another story."""
        self.log.reset()
        self.begin_anew()
        self.gauges = None
        self.gauges_stamp = None

    def begin_anew(self) -> None:
        """The event file is another one than before."""
        self.beginning = self.log.beginnings
        self.summary = Summary()
        self.samples = SampleIndex()
