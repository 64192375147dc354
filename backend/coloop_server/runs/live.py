"""One run that is in progress: its files, its process, and the requests to it.

    look --submit--> pool: follow, check, ask, end      (clusters may take their time)
      '--poll files, take what came back-----'

The driver has the last word: a run is over when its event file says so and the driver has
released the folder. Only where a driver is gone without a final event, does not stop in time, or
has lost its folder does the server decide: it ends what is left of the driver and writes the
missing event itself, so that every reader of the folder sees the same end. It writes only while it
holds the folder's lock: a file never has two writers.
"""

import logging
import time
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from coloop.errors import RunBusy
from coloop.runtime.run_files.events import (
    ControlRequest,
    RunError,
    RunStateEvent,
    RunStateName,
    StopRequest,
)
from coloop.runtime.run_files.run_lock import RunLock, holder, is_held
from coloop_server.launchers import Launcher
from coloop_server.launchers.protocol import Handle, LaunchFailed, Liveness
from coloop_server.processes import last_words
from coloop_server.runs.watch import Watch

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
MAX_CHECK_SECONDS = 60.0
ASK_AGAIN_SECONDS = 3.0
MAX_TRIES = 10
ALERT_AFTER = 2
"""Checks in a row without an answer after which the run shows an alert."""
GONE_SECONDS = 5.0
"""How long a folder that existed may be missing, for instance while its disk is remounted."""
LEAVE_SECONDS = 30.0
"""How long a driver may hold its folder after its final event."""
ENDED = "it was ended before it had stopped by itself; its last checkpoint is kept"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the server closes a run whose driver cannot do so."""

    state: RunStateName
    message: str
    code: str | None
    hint: str | None = None
    log: str | None = None
    """The end of the log of a process that did not start."""

    @property
    def error(self) -> RunError | None:
        if self.code is None:
            return None
        return RunError(code=self.code, message=self.message, hint=self.hint, traceback=self.log)

    def event(self) -> RunStateEvent:
        return RunStateEvent(state=self.state, message=self.message, error=self.error)


@dataclass(slots=True, kw_only=True, eq=False)
class LiveRun:
    id: str
    watch: Watch
    launcher: Launcher | None
    """None for a run that the server did not start: it can be sent requests, never be ended."""
    handle: Handle | None
    """None until its driver is known to have been started."""
    attempt: int
    """The current attempt; events of earlier ones do not end it."""
    log: Path
    pool: Executor
    stop_seconds: float
    stale_seconds: float

    launching: Future[None] | None = None
    checking: Future[Liveness] | None = None
    asking: Future[bool] | None = None
    ending: Future[bool] | None = None
    meant: Verdict | None = None
    """How to close the run once its driver is ended; None: the driver's final event stands."""
    verdict: Verdict | None = None
    unreached: str | None = None
    """Why the state of the driver is unknown at the moment."""
    unended: str | None = None
    """Why a run that should end is still in progress."""
    failures: int = 0
    has_folder: bool = False
    """Whether the folder has existed."""
    gone_at: float | None = None
    """Since when the folder has been missing."""
    final_at: float | None = None
    """When the final event was read."""
    retry_at: float = 0.0
    """Earliest time for the next try to end a driver that could not be ended."""
    began_at: float = field(default_factory=time.monotonic)
    saved_handle: Handle | None = None
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
        """The state in the files of this attempt; None before its first event."""
        return self.watch.summary.state if self.watch.summary.attempt >= self.attempt else None

    @property
    def alert(self) -> str | None:
        """Why the server cannot reach or end the run at the moment; shown as the run's message."""
        return self.unended or self.unreached

    @property
    def has_last_word(self) -> bool:
        return self.state is not None and self.state.is_final

    @property
    def is_over(self) -> bool:
        """Whether the driver has written its final event and released the folder."""
        return self.has_last_word and not self.is_ending and not is_held(self.watch.folder.path)

    @property
    def is_closed(self) -> bool:
        return self.verdict is not None or self.is_over

    @property
    def is_ending(self) -> bool:
        return self.ending is not None

    def look(self) -> bool:
        """Read what is new, check whether the run is still alive, and pass on a request to stop.
        Returns whether anything was new."""
        liveness = self.check()
        is_changed = self.watch.poll()
        if is_changed and self.changed_at is None:
            self.changed_at = time.monotonic()
        if self.ending is not None:
            if self.ending.done():
                self.take_end(self.ending)
        elif self.has_last_word:
            self.see_off()
        elif not liveness.is_alive:
            self.bury(liveness.reason)
        elif self.is_folder_gone():
            self.close_without_folder()
        elif self.stop_asked_at is not None:
            self.press()
        return is_changed

    def is_folder_gone(self) -> bool:
        """Whether the folder existed and has been missing for `GONE_SECONDS`."""
        if self.watch.folder.path.is_dir():
            self.has_folder, self.gone_at = True, None
        elif self.has_folder and self.gone_at is None:
            self.gone_at = time.monotonic()
        return self.gone_at is not None and time.monotonic() - self.gone_at >= GONE_SECONDS

    # Liveness

    def check(self) -> Liveness:
        """Whether it is alive. Asked before the files are read, so no final event is missed."""
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
        """Seconds between two checks, doubled after each check without an answer."""
        return min(CHECK_SECONDS * 2.0**self.failures, MAX_CHECK_SECONDS)

    def inspect(self, launcher: Launcher, handle: Handle) -> Liveness:
        """Runs in a thread of the pool."""
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
        if beat is None:
            age, since = time.monotonic() - self.began_at, "it was found"
        else:
            age = (datetime.now(UTC) - beat).total_seconds()
            since = f"{beat:%Y-%m-%d %H:%M:%S} UTC"
        if age <= self.stale_seconds or self.gone_at or is_held(self.watch.folder.path):
            return Liveness(True)
        return Liveness(False, f"no sign of life since {since}")

    # Stopping

    def ask_stop(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        self.stop_asked_at = self.stop_asked_at or now
        deadline = now if at_once else self.stop_asked_at + self.stop_seconds
        self.ends_at = min(deadline, self.ends_at or deadline)

    def press(self) -> None:
        """Ask the driver to stop until it begins to; after the deadline, end it."""
        now = time.monotonic()
        is_answered = self.state is RunStateName.STOPPING
        is_asking = self.asking is not None and not self.asking.done()
        if not is_answered and not is_asking and now - self.stop_sent_at >= ASK_AGAIN_SECONDS:
            self.stop_sent_at = now
            self.asking = self.pool.submit(self.send, StopRequest())
        if self.ends_at is None or now < self.ends_at:
            return
        if self.launcher is not None:
            self.end_as(Verdict(RunStateName.STOPPED, ENDED, None))
        else:
            self.end_elsewhere()

    def end_elsewhere(self) -> None:
        """Close a run that this server did not start, but only once nobody writes to it."""
        owner = holder(self.watch.folder.path)
        if owner is None:
            message = "no process was working on it any more; its last checkpoint is kept"
            self.close(Verdict(RunStateName.STOPPED, message, None))
        else:
            self.unended = f"it was not started by this server and does not stop: end {owner.words}"

    def end_as(self, meant: Verdict | None) -> None:
        """End the driver and what it started, then close the run in this way."""
        if time.monotonic() >= self.retry_at:
            self.meant = meant
            self.ending = self.pool.submit(self.end)

    def take_end(self, ending: Future[bool]) -> None:
        """Close the run if its driver is gone; otherwise try again later."""
        self.ending = None
        error = ending.exception()
        if error is not None:
            logger.error("run %s could not be ended", self.id, exc_info=error)
        if error is not None or not ending.result():
            self.try_later("it was told to end and has not ended yet, trying again")
            return
        self.close(self.meant)

    def try_later(self, reason: str) -> None:
        self.retry_at = time.monotonic() + ASK_AGAIN_SECONDS
        self.unended = reason

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
        if self.launcher is None or self.handle is None:
            return True
        return self.launcher.end(self.handle)

    # Closing

    def see_off(self) -> None:
        """Wait until a driver that wrote its final event exits, or end it after `LEAVE_SECONDS`."""
        now = time.monotonic()
        self.final_at = self.final_at or now
        if now - self.final_at < LEAVE_SECONDS or not is_held(self.watch.folder.path):
            return
        if self.launcher is not None:
            self.end_as(None)

    def bury(self, reason: str) -> None:
        if self.has_folder and not self.watch.folder.path.is_dir():
            self.close_without_folder()
            return
        if self.launcher is None:
            # Its folder is left alone: another machine's driver may still write.
            self.verdict = Verdict(RunStateName.FAILED, reason, "run.no_sign_of_life")
            return
        if self.stop_asked_at is not None:
            self.end_as(Verdict(RunStateName.STOPPED, f"it was stopped: {reason}", None))
            return
        words = last_words(self.log) or last_words(self.watch.folder.path / "engine.log")
        message = f"the run died without a final event: {reason or 'its driver is gone'}"
        message += f"\n{words}" if words else ""
        self.end_as(Verdict(RunStateName.FAILED, message, "run.driver_died"))

    def close_without_folder(self) -> None:
        """Close a run that can no longer save anything; its driver is ended, too."""
        message = (
            f"the folder of the run is gone: {self.watch.folder.path}; put it back and resume "
            "the run, or delete the run"
        )
        gone = Verdict(RunStateName.FAILED, message, "run.folder_gone")
        if self.launcher is None:
            self.verdict = gone
        else:
            self.end_as(gone)

    def close(self, meant: Verdict | None) -> None:
        """Write the final event that the driver, which is gone, did not write."""
        if self.launcher is not None and self.handle is not None:
            self.launcher.let_go(self.handle)
        try:
            self.write_end(meant)
        except RunBusy as busy:
            self.try_later(str(busy))
        except OSError as failure:
            logger.warning("the end of run %s could not be written: %s", self.id, failure)
            self.verdict = meant
        self.watch.poll()

    def write_end(self, meant: Verdict | None) -> None:
        """Write the final event if the run's files have none. Raises RunBusy if another process is
        working in the folder."""
        log, folder = self.watch.log, self.watch.folder
        if not folder.path.is_dir():
            self.verdict = meant
            return
        with RunLock(folder.path):
            for _ in range(MAX_TRIES):
                self.watch.poll()
                if self.has_last_word:
                    return
                self.verdict = meant
                if meant is None or not folder.events.is_file():
                    return
                seq = log.last_seq + 1
                if folder.append_event(
                    meant.event(), run=self.id, seq=seq, attempt=self.attempt, end=log.end
                ):
                    return
        logger.error("the end of run %s was not written: its file still grows", self.id)

    def not_started(self, error: BaseException) -> None:
        """Close a run that could not be started: as stopped if that was requested meanwhile."""
        failed = error if isinstance(error, LaunchFailed) else LaunchFailed(str(error))
        if self.stop_asked_at is None:
            self.verdict = Verdict(
                RunStateName.FAILED,
                f"the run could not be started: {failed}",
                failed.code,
                hint=failed.hint,
                log=failed.log,
            )
        else:
            message = f"stopped before it was started, which failed: {failed}"
            self.verdict = Verdict(RunStateName.STOPPED, message, None)

    # Saving

    def has_new_state(self) -> bool:
        saved = (self.saved_state, self.saved_alert, self.saved_handle)
        return (self.state, self.alert, self.handle) != saved

    def is_unsaved_since(self, moment: float) -> bool:
        return self.changed_at is not None and self.changed_at < moment

    def saved(self) -> None:
        self.saved_at = time.monotonic()
        self.changed_at = None
        self.saved_state = self.state
        self.saved_alert = self.alert
        self.saved_handle = self.handle
