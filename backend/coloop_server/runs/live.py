"""One run that goes on: its files, its process, and what is asked of it.

The driver's own word is final: a run is over when its event file says so. Only a driver that is
gone without a last word, or that does not stop in time, is judged by the server, which then writes
the missing event itself, so that every reader of the folder sees the same end.
"""

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from coloop.events import (
    ControlRequest,
    RunError,
    RunStateEvent,
    RunStateName,
    StopRequest,
)
from coloop_server.launchers.processes import last_words
from coloop_server.launchers.protocol import Handle, Launcher
from coloop_server.runs.watch import Watch

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
ASK_AGAIN_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the server closes a run that cannot do it itself."""

    state: RunStateName
    message: str
    code: str | None


@dataclass(slots=True, kw_only=True, eq=False)
class LiveRun:
    id: str
    watch: Watch
    launcher: Launcher | None
    """None for a run that the server did not start: it can be asked, never ended."""
    handle: Handle | None
    attempt: int
    """The attempt that goes on; events of earlier ones do not end it."""
    log: Path
    stop_seconds: float
    stale_seconds: float

    launching: Future[None] | None = None
    verdict: Verdict | None = None
    checked_at: float = 0.0
    saved_at: float = 0.0
    changed_at: float | None = None
    saved_state: RunStateName | None = None
    stop_asked_at: float | None = None
    stop_sent_at: float = field(default=-ASK_AGAIN_SECONDS)
    ends_at: float | None = None

    @property
    def state(self) -> RunStateName | None:
        """What the files of this attempt say; None before its first word."""
        return self.watch.summary.state if self.watch.summary.attempt >= self.attempt else None

    @property
    def is_over(self) -> bool:
        return self.state is not None and self.state.is_final

    def look(self) -> bool:
        """Read what is new, judge whether the run still lives, pass on a wish to stop."""
        is_alive, reason = self.check()
        is_changed = self.watch.poll()
        if is_changed and self.changed_at is None:
            self.changed_at = time.monotonic()
        if self.is_over:
            return is_changed
        if not is_alive:
            self.bury(reason)
        elif self.stop_asked_at is not None:
            self.press()
        return is_changed

    def check(self) -> tuple[bool, str]:
        """Asked before the files are read, so that a driver's last word is never missed."""
        now = time.monotonic()
        if now - self.checked_at < CHECK_SECONDS:
            return True, ""
        self.checked_at = now
        if self.launcher is None:
            return self.check_heartbeat()
        if self.handle is None:
            return True, ""
        liveness = self.launcher.check(self.handle)
        return liveness.is_alive, liveness.reason

    def check_heartbeat(self) -> tuple[bool, str]:
        beat = self.watch.summary.heartbeat_at
        age = None if beat is None else (datetime.now(UTC) - beat).total_seconds()
        if age is None or age <= self.stale_seconds:
            return True, ""
        return False, f"no sign of life since {beat:%Y-%m-%d %H:%M:%S} UTC"

    # Stopping

    def ask_stop(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        self.stop_asked_at = self.stop_asked_at or now
        deadline = now if at_once else self.stop_asked_at + self.stop_seconds
        self.ends_at = min(deadline, self.ends_at or deadline)

    def press(self) -> None:
        """Ask until the driver answers; after the deadline end it."""
        now = time.monotonic()
        is_answered = self.state is RunStateName.STOPPING
        if not is_answered and now - self.stop_sent_at >= ASK_AGAIN_SECONDS:
            self.stop_sent_at = now
            self.send(StopRequest())
        if self.ends_at is None or now < self.ends_at or self.launcher is None:
            return
        self.end()
        self.watch.poll()
        if not self.is_over:
            message = "it was ended before it had stopped by itself; its last checkpoint is kept"
            self.close(RunStateName.STOPPED, message, None)

    def send(self, request: ControlRequest) -> bool:
        try:
            if self.launcher is None:
                return self.watch.folder.ask(request)
            if self.handle is None:
                return False
            return self.launcher.ask(self.handle, self.watch.folder, request)
        except OSError as error:
            logger.warning("run %s cannot be asked: %s", self.id, error)
            return False

    def end(self) -> None:
        if self.launcher is not None and self.handle is not None:
            self.launcher.end(self.handle)

    # Closing

    def bury(self, reason: str) -> None:
        """The driver is gone without a last word."""
        if self.launcher is None:
            self.fail("run.no_sign_of_life", reason)  # another machine's driver may still write
            return
        if self.stop_asked_at is not None:
            self.close(RunStateName.STOPPED, f"it was stopped: {reason}", None)
            return
        words = last_words(self.log) or last_words(self.watch.folder.path / "engine.log")
        message = f"the run died without a last word: {reason or 'its driver is gone'}"
        message += f"\n{words}" if words else ""
        self.close(RunStateName.FAILED, message, "run.driver_died")

    def close(self, state: RunStateName, message: str, code: str | None) -> None:
        """Write the end that the driver did not write."""
        self.verdict = Verdict(state, message, code)
        log = self.watch.log
        if not self.watch.folder.events.is_file():
            return
        error = RunError(code=code, message=message) if code else None
        try:
            self.watch.folder.append_event(
                RunStateEvent(state=state, message=message, error=error),
                run=self.id,
                seq=log.last_seq + 1,
                attempt=self.attempt,
                end=log.end,
            )
        except OSError as failure:
            logger.warning("the end of run %s could not be written: %s", self.id, failure)
        self.watch.poll()

    def fail(self, code: str, message: str) -> None:
        """Close the run without touching its folder."""
        self.verdict = Verdict(RunStateName.FAILED, message, code)

    # Saving

    def has_new_state(self) -> bool:
        return self.state is not self.saved_state

    def is_unsaved_since(self, moment: float) -> bool:
        return self.changed_at is not None and self.changed_at < moment

    def saved(self) -> None:
        self.saved_at = time.monotonic()
        self.changed_at = None
        self.saved_state = self.state
