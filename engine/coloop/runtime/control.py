"""Requests to a run in progress: stop, edit, checkpoint.

Requests are lines of `control.jsonl` in the run folder, read between stages and while waiting for
one. SIGINT and SIGTERM are requests to stop. An invalid request is reported and skipped. Of the
requests to an earlier driver, only edits that it had not answered when it was killed count.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pydantic import ValidationError

from coloop.runtime.checkpoints.pinned_settings import answered
from coloop.runtime.run_files.events import (
    CONTROL_ADAPTER,
    ControlRequest,
    EditRequest,
    StopRequest,
)

CONTROL_FILE = "control.jsonl"
SAME_INTERRUPT_SECONDS = 1.0
"""An interrupt sooner after another counts as the same. A second exception while the first one ends
something, such as a C++ destructor, would abort the process."""


class Control:
    def __init__(self, folder: Path) -> None:
        self._path = folder / CONTROL_FILE
        self._offset = 0
        self._signalled = threading.Event()
        self._asked_to_stop = False
        self._is_deaf = False
        self._interrupted_at: float | None = None
        self.unreadable: list[str] = []
        edits = [request for request in self._read() if isinstance(request, EditRequest)]
        self.unreadable.clear()
        self._waiting: list[ControlRequest] = [*edits[answered(folder) :]] if edits else []

    @property
    def stop_is_wanted(self) -> bool:
        return self._asked_to_stop or self._signalled.is_set()

    @property
    def has_requests(self) -> bool:
        return bool(self._waiting)

    def read(self) -> None:
        """Read requests; a stop counts at once, others wait for `take`."""
        requests = [*self._read()]
        if any(isinstance(request, StopRequest) for request in requests):
            self._asked_to_stop = True
        self._waiting += requests

    def take(self) -> list[ControlRequest]:
        self.read()
        requests, self._waiting = self._waiting, []
        return requests

    def turn_deaf(self) -> None:
        """Ignore interrupts from now on, as only the last event is missing."""
        self._is_deaf = True

    @contextmanager
    def signals(self, *, ends_process: bool = False) -> Iterator[None]:
        """SIGINT and SIGTERM request a stop; a second SIGINT interrupts at once.

        Args:
            ends_process: the process ends with the run: after a request to stop, later interrupts
                are ignored, as one would kill the exiting interpreter before its exit code.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_signal(number: int, frame: FrameType | None) -> None:
            is_again = number == signal.SIGINT and self._signalled.is_set()
            self._signalled.set()
            if is_again and not self._is_deaf:
                now, before = time.monotonic(), self._interrupted_at
                if before is None or now - before >= SAME_INTERRUPT_SECONDS:
                    self._interrupted_at = now
                    raise KeyboardInterrupt

        handlers = {s: signal.signal(s, on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            if ends_process and self._signalled.is_set():
                handlers[signal.SIGINT] = signal.SIG_IGN
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _read(self) -> Iterator[ControlRequest]:
        if not self._path.exists() or self._path.stat().st_size <= self._offset:
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                try:
                    yield CONTROL_ADAPTER.validate_json(line)
                except ValidationError as error:
                    self.unreadable.append(f"{line[:200]!r}: {error.errors()[0]['msg']}")
