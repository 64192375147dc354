"""One run as its folder shows it: the event log, its summary and the latest gauges, kept fresh."""

import json
import threading
from pathlib import Path

from coloop_server.runs.eventlog import EventLog
from coloop_server.runs.folder import MAX_GAUGES_BYTES, RunFolder, plain_json, read_text
from coloop_server.runs.summary import Summary


class Watch:
    """Reads what is new when polled. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.log = EventLog(self.folder.events)
        self.summary = Summary()
        self.sample_seqs: list[int] = []
        self.gauges: str | None = None
        self.gauges_version = 0
        self.gauges_stamp: tuple[int, int] | None = None
        self.lock = threading.Lock()

    def poll(self) -> bool:
        """Read everything that is new; whether there was anything."""
        with self.lock:
            is_changed = False
            if self.log.end and not self.log.path.exists():
                self.forget()
            while events := self.log.refresh():
                is_changed = True
                for event in events:
                    self.summary.add(event)
                    if event["type"] == "sample":
                        self.sample_seqs.append(event["seq"])
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

    def forget(self) -> None:
        """The folder was removed: what comes next is another story."""
        self.log.reset()
        self.summary = Summary()
        self.sample_seqs = []
        self.gauges = None
        self.gauges_stamp = None
