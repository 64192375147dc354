"""One run that goes on: its files, its process, and what is asked of it.

    look --submit--> pool: follow, check, ask, end      (clusters may take their time)
      '--poll files, take what came back-----'

The driver's own word is final: a run is over when its event file says so. Only a driver that is
gone without a last word, or that does not stop in time, is judged by the server, which then writes
the missing event itself, so that every reader of the folder sees the same end. It does so only when
the driver is known to be gone: a file never has two writers.
"""

import logging
import time
from concurrent.futures import Executor, Future
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
from coloop_server.launchers.protocol import Handle, Launcher, LaunchFailed, Liveness
from coloop_server.processes import last_words
from coloop_server.runs.watch import Watch

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
MAX_CHECK_SECONDS = 60.0
ASK_AGAIN_SECONDS = 3.0
MAX_TRIES = 10
ALERT_AFTER = 2
"""Checks in a row that reached nobody before that is said on the run."""


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
    pool: Executor
    stop_seconds: float
    stale_seconds: float

    launching: Future[None] | None = None
    checking: Future[Liveness] | None = None
    asking: Future[bool] | None = None
    ending: Future[bool] | None = None
    verdict: Verdict | None = None
    unreached: str | None = None
    """Why nothing is known of the driver just now."""
    unended: str | None = None
    """Why a run that is to end still goes on."""
    failures: int = 0
    """Checks in a row that reached nobody."""
    checked_at: float = 0.0
    saved_at: float = 0.0
    changed_at: float | None = None
    saved_state: RunStateName | None = None
    saved_alert: str | None = None
    stop_asked_at: float | None = None
    stop_sent_at: float = field(default=-ASK_AGAIN_SECONDS)
    ends_at: float | None = None

    @property
    def state(self) -> RunStateName | None:
        """What the files of this attempt say; None before its first word."""
        return self.watch.summary.state if self.watch.summary.attempt >= self.attempt else None

    @property
    def alert(self) -> str | None:
        """What keeps the server from the run just now; shown as the run's message."""
        return self.unended or self.unreached

    @property
    def is_over(self) -> bool:
        """Whether the driver said its last word, and is gone where it is being ended."""
        return self.state is not None and self.state.is_final and not self.is_ending

    @property
    def is_ending(self) -> bool:
        return self.ending is not None

    def look(self) -> bool:
        """Read what is new, judge whether the run still lives, pass on a wish to stop."""
        liveness = self.check()
        is_changed = self.watch.poll()
        if is_changed and self.changed_at is None:
            self.changed_at = time.monotonic()
        if self.ending is not None:
            if self.ending.done():
                self.take_end(self.ending)
        elif self.is_over:
            pass
        elif not liveness.is_alive:
            self.bury(liveness.reason)
        elif self.stop_asked_at is not None:
            self.press()
        return is_changed

    # Whether it lives

    def check(self) -> Liveness:
        """Answered before the files are read, so that a driver's last word is never missed."""
        if self.launcher is None:
            return self.check_heartbeat()
        if self.handle is None:
            return Liveness(True)
        if self.checking is not None and self.checking.done():
            return self.take_check(self.checking)
        if self.checking is None and time.monotonic() - self.checked_at >= self.patience:
            self.checking = self.pool.submit(self.inspect, self.launcher, self.handle)
        return Liveness(True)

    @property
    def patience(self) -> float:
        """Seconds between two checks: longer and longer while nobody answers."""
        return min(CHECK_SECONDS * 2.0**self.failures, MAX_CHECK_SECONDS)

    def inspect(self, launcher: Launcher, handle: Handle) -> Liveness:
        """In a thread of the pool."""
        try:
            launcher.follow(handle, self.watch.folder)
        except LaunchFailed as error:
            return Liveness(True, str(error), is_reached=False)
        return launcher.check(handle)

    def take_check(self, checking: Future[Liveness]) -> Liveness:
        self.checking, self.checked_at = None, time.monotonic()
        error = checking.exception()
        if error is not None:
            logger.error("run %s could not be checked", self.id, exc_info=error)
        liveness = Liveness(True, str(error), is_reached=False) if error else checking.result()
        self.failures = 0 if liveness.is_reached else min(self.failures + 1, 16)
        if liveness.is_reached:
            self.unreached = None
        elif self.failures >= ALERT_AFTER:
            self.unreached = f"the run cannot be watched just now, trying again: {liveness.reason}"
        return liveness

    def check_heartbeat(self) -> Liveness:
        beat = self.watch.summary.heartbeat_at
        age = None if beat is None else (datetime.now(UTC) - beat).total_seconds()
        if age is None or age <= self.stale_seconds:
            return Liveness(True)
        return Liveness(False, f"no sign of life since {beat:%Y-%m-%d %H:%M:%S} UTC")

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
        is_asking = self.asking is not None and not self.asking.done()
        if not is_answered and not is_asking and now - self.stop_sent_at >= ASK_AGAIN_SECONDS:
            self.stop_sent_at = now
            self.asking = self.pool.submit(self.send, StopRequest())
        if self.ends_at is not None and now >= self.ends_at and self.launcher is not None:
            self.ending = self.pool.submit(self.end)

    def take_end(self, ending: Future[bool]) -> None:
        """The last word is the server's only when the driver is gone."""
        self.ending = None
        error = ending.exception()
        if error is not None:
            logger.error("run %s could not be ended", self.id, exc_info=error)
        if error is not None or not ending.result():
            self.ends_at = time.monotonic() + ASK_AGAIN_SECONDS
            self.unended = "it was told to end and has not ended yet, trying again"
            return
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

    def end(self) -> bool:
        """End the driver; whether it is gone."""
        if self.launcher is None or self.handle is None:
            return True
        return self.launcher.end(self.handle)

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
        """Write the end that the driver, who is gone, did not write."""
        if self.launcher is not None and self.handle is not None:
            self.launcher.let_go(self.handle)
        self.watch.poll()
        if self.is_over:
            return
        self.verdict = Verdict(state, message, code)
        error = RunError(code=code, message=message) if code else None
        try:
            self.write_end(RunStateEvent(state=state, message=message, error=error))
        except OSError as failure:
            logger.warning("the end of run %s could not be written: %s", self.id, failure)
        self.watch.poll()

    def write_end(self, event: RunStateEvent) -> None:
        log, folder = self.watch.log, self.watch.folder
        for _ in range(MAX_TRIES):
            if not folder.events.is_file() or folder.append_event(
                event, run=self.id, seq=log.last_seq + 1, attempt=self.attempt, end=log.end
            ):
                return
            self.watch.poll()  # there are whole lines that were not read yet
        logger.error("the end of run %s was not written: its file still grows", self.id)

    def not_started(self, reason: str) -> None:
        """Close a run that nobody could start: as stopped where that was asked for meanwhile."""
        if self.stop_asked_at is None:
            self.fail("run.not_started", f"the run could not be started: {reason}")
        else:
            message = f"stopped before it was started, which failed: {reason}"
            self.verdict = Verdict(RunStateName.STOPPED, message, None)

    def fail(self, code: str, message: str) -> None:
        """Close the run without touching its folder."""
        self.verdict = Verdict(RunStateName.FAILED, message, code)

    # Saving

    def has_new_state(self) -> bool:
        return self.state is not self.saved_state or self.alert != self.saved_alert

    def is_unsaved_since(self, moment: float) -> bool:
        return self.changed_at is not None and self.changed_at < moment

    def saved(self) -> None:
        self.saved_at = time.monotonic()
        self.changed_at = None
        self.saved_state = self.state
        self.saved_alert = self.alert
