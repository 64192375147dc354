"""Writes a run's files on the server's side from the log of a Ray job that runs elsewhere.

Marked lines are events and gauges, everything else belongs to `engine.log`. A connection that
breaks is opened again and the log comes from its start: events that are written already are known
by `seq`, as are gauges of steps, and the latest gauges never go back behind those that lie there.
"""

import asyncio
import json
import logging
import os
import threading
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coloop.runtime.run_files.event_file import cut_end
from coloop.runtime.run_files.events import MARK
from coloop_server.private import open_plain, write_private
from coloop_server.runs.eventlog import EventLog, parse_event
from coloop_server.runs.folder import MAX_GAUGES_BYTES, RunFolder, plain_json, read_text
from coloop_server.runs.summary import read_time, whole

if TYPE_CHECKING:
    from coloop_server.launchers.ray_client import JobsClient

logger = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
STOP_SECONDS = 0.2
WHOLE_FILES = frozenset({"gauges", "report"})
"""Marked lines that replace a file of the run folder."""


class MarkedLog:
    """Sorts the text of a log into files of a run folder, independent of Ray."""

    def __init__(self, folder: RunFolder) -> None:
        folder.path.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        log = EventLog(folder.events)
        while log.refresh():
            pass
        self.last_seq = log.last_seq
        if folder.events.exists():
            with open_plain(folder.events, os.O_RDWR) as file:
                file.truncate(log.end)  # a line that an earlier reader did not finish
        self.step_gauges_seq = 0
        if folder.gauge_lines.exists():
            with open_plain(folder.gauge_lines, os.O_RDWR) as file:
                self.step_gauges_seq = cut_end(file, self.last_seq)
        self.other_lines = 0
        self.gauges_at = time_of(plain_json(read_text(folder.gauges, MAX_GAUGES_BYTES) or ""))
        self.rest = ""
        self.seen_others = 0
        engine_log = folder.path / "engine.log"
        if engine_log.exists():
            with open_plain(engine_log) as file:
                self.other_lines = sum(1 for _ in file)

    def restart(self) -> None:
        self.rest = ""
        self.seen_others = 0

    def take(self, text: str) -> None:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if line.startswith(MARK):
                self.take_marked(line[len(MARK) :])
            else:
                self.take_other(line)

    def take_marked(self, text: str) -> None:
        value = plain_json(text)
        kind = value.get("type") if isinstance(value, dict) else None
        if kind in WHOLE_FILES:
            if kind == "gauges" and not self.are_newer(value.get("gauges")):
                return
            write_private(self.folder.path / f"{kind}.json", json.dumps(value.get(kind)))
            return
        if kind == "step_gauges":
            self.take_step_gauges(value)
            return
        parsed = parse_event(text.encode())
        if parsed is None or parsed[0] <= self.last_seq:
            return
        self.last_seq = parsed[0]
        append(self.folder.events, parsed[1])

    def take_step_gauges(self, kept: dict[str, Any]) -> None:
        seq = whole(kept.get("seq"))
        if seq is None or seq <= self.step_gauges_seq:
            return
        self.step_gauges_seq = seq
        told = {name: kept.get(name) for name in ("seq", "attempt", "step", "gauges")}
        append(self.folder.gauge_lines, json.dumps(told))

    def are_newer(self, gauges: Any) -> bool:
        """Whether the gauges are not older than the last ones; if so, they become the last ones."""
        at = time_of(gauges)
        if at is not None and self.gauges_at is not None and at < self.gauges_at:
            return False
        self.gauges_at = at or self.gauges_at
        return True

    def take_other(self, line: str) -> None:
        self.seen_others += 1
        if self.seen_others <= self.other_lines:
            return
        self.other_lines = self.seen_others
        append(self.folder.path / "engine.log", line)


def append(path: Path, line: str) -> None:
    """Append a line to a file of the run folder, never through a link."""
    with open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
        file.write(f"{line}\n".encode())


def time_of(gauges: Any) -> datetime | None:
    return read_time(gauges.get("at")) if isinstance(gauges, dict) else None


class Follower:
    """A thread that follows a job until it has ended and its log is read."""

    def __init__(self, client: "JobsClient", job_id: str, folder: RunFolder) -> None:
        self.client = client
        self.job_id = job_id
        self.marked = MarkedLog(folder)
        self.stopped = threading.Event()
        self.is_done = False
        self.thread = threading.Thread(target=self.run, name=f"follow-{job_id}", daemon=True)

    @property
    def is_running(self) -> bool:
        return self.thread.is_alive()

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """Stop, and return when nothing more is written."""
        self.stopped.set()
        if self.thread.ident is not None:
            self.thread.join()

    def run(self) -> None:
        from aiohttp import ClientError
        from ray.exceptions import RayError

        while not self.stopped.is_set():
            try:
                asyncio.run(self.tail_until_stopped())
                if self.stopped.is_set():
                    return
                if self.client.get_job_status(self.job_id).is_terminal():
                    self.marked.restart()
                    self.marked.take(self.client.get_job_logs(self.job_id))
                    self.is_done = True
                    return
            except (RayError, ClientError, RuntimeError, OSError) as error:
                logger.info("the log of %s broke off: %s", self.job_id, error)
            self.stopped.wait(RETRY_SECONDS)

    async def tail_until_stopped(self) -> None:
        tail = asyncio.create_task(self.tail())
        while not tail.done() and not self.stopped.is_set():
            await asyncio.wait((tail,), timeout=STOP_SECONDS)
        if not tail.done():
            tail.cancel()
        with suppress(asyncio.CancelledError):
            await tail

    async def tail(self) -> None:
        self.marked.restart()
        async for text in self.client.tail_job_logs(self.job_id):
            self.marked.take(text)
