"""What is asked of a run while it goes: stop, edit, checkpoint.

Requests are lines of `control.jsonl` in the run folder, read between stages and while a stage is
being waited for. A signal of the process (SIGINT, SIGTERM) is a request to stop. A request that
cannot be read is told to the caller and skipped; it never stops a run. Of what was asked of an
earlier driver, edits that it did not answer before it was killed are taken up; all else is over.
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
"""An interrupt that comes sooner after another is the same. Each is raised wherever the process is;
in what ends because of the first, a destructor of C++ say, a second would abort it."""


class Control:
    """The inbox of one run."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CONTROL_FILE
        self._offset = 0
        self._signalled = threading.Event()
        self._asked_to_stop = False
        self._is_deaf = False
        self._interrupted_at: float | None = None
        self.unreadable: list[str] = []
        asked = [one for one in self._read() if isinstance(one, EditRequest)]
        self.unreadable.clear()
        self._waiting: list[ControlRequest] = [*asked[answered(folder) :]] if asked else []

    @property
    def stop_is_wanted(self) -> bool:
        return self._asked_to_stop or self._signalled.is_set()

    @property
    def has_requests(self) -> bool:
        """Whether something was read that nobody has taken."""
        return bool(self._waiting)

    def read(self) -> None:
        """Read what is asked; a stop counts at once, the rest waits until it is taken."""
        requests = [*self._read()]
        if any(isinstance(request, StopRequest) for request in requests):
            self._asked_to_stop = True
        self._waiting += requests

    def take(self) -> list[ControlRequest]:
        self.read()
        requests, self._waiting = self._waiting, []
        return requests

    def turn_deaf(self) -> None:
        """The run is over but for its last word, which nobody interrupts."""
        self._is_deaf = True

    @contextmanager
    def signals(self, *, ends_process: bool = False) -> Iterator[None]:
        """SIGINT and SIGTERM ask to stop; a second SIGINT interrupts at once, as long as there is
        something to interrupt.

        Args:
            ends_process: the process does nothing else. Once it was asked to stop, no interrupt
                after the last word keeps it from giving its exit code: an interpreter that ends
                hears signals as the system does, and would die of one.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_signal(number: int, frame: FrameType | None) -> None:
            is_again = number == signal.SIGINT and self._signalled.is_set()
            self._signalled.set()
            if is_again and not self._is_deaf and self._interrupts_anew():
                raise KeyboardInterrupt

        before = {s: signal.signal(s, on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            if ends_process and self._signalled.is_set():
                before[signal.SIGINT] = signal.SIG_IGN
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupts_anew(self) -> bool:
        now, before = time.monotonic(), self._interrupted_at
        if before is not None and now - before < SAME_INTERRUPT_SECONDS:
            return False
        self._interrupted_at = now
        return True

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


def request(folder: Path, what: ControlRequest) -> None:
    with (folder / CONTROL_FILE).open("a", encoding="utf-8") as file:
        file.write(what.model_dump_json() + "\n")
