"""One run that goes on: its files, its process, and what is asked of it.

    look --submit--> pool: follow, check, ask, end      (clusters may take their time)
      '--poll files, take what came back-----'

The driver's own word is final: a run is over when its event file says so and the driver has let go
of the folder. Only a driver that is gone without a last word, that does not stop in time, or whose
folder is gone is judged by the server: what is left of it is ended, and the missing event written
by the server itself, so that every reader of the folder sees the same end. It does so only while it
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
"""Checks in a row that reached nobody before that is said on the run."""
GONE_SECONDS = 5.0
"""For which a folder that was there may be missing, as when its disk comes and goes."""
LEAVE_SECONDS = 30.0
"""For which a driver may hold its folder after its last word."""
ENDED = "it was ended before it had stopped by itself; its last checkpoint is kept"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the server closes a run that cannot do it itself."""

    state: RunStateName
    message: str
    code: str | None
    hint: str | None = None
    log: str | None = None
    """The end of the log of what did not start."""

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
    """None for a run that the server did not start: it can be asked, never ended."""
    handle: Handle | None
    """None as long as its driver is not known to be started."""
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
    meant: Verdict | None = None
    """What is said of the run when its driver is ended; None: its own last word stands."""
    verdict: Verdict | None = None
    unreached: str | None = None
    """Why nothing is known of the driver just now."""
    unended: str | None = None
    """Why a run that is to end still goes on."""
    failures: int = 0
    has_folder: bool = False
    """Whether the folder was there already."""
    gone_at: float | None = None
    """Since when the folder is missing."""
    final_at: float | None = None
    """When the last word was read."""
    retry_at: float = 0.0
    """Before this a driver that could not be ended is not ended again."""
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
        """What the files of this attempt say; None before its first word."""
        return self.watch.summary.state if self.watch.summary.attempt >= self.attempt else None

    @property
    def alert(self) -> str | None:
        """What keeps the server from the run just now; shown as the run's message."""
        return self.unended or self.unreached

    @property
    def has_last_word(self) -> bool:
        return self.state is not None and self.state.is_final

    @property
    def is_over(self) -> bool:
        """Whether the driver said its last word, and let go of the folder."""
        return self.has_last_word and not self.is_ending and not is_held(self.watch.folder.path)

    @property
    def is_closed(self) -> bool:
        return self.verdict is not None or self.is_over

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
        """Whether the folder was there, and is missing for long."""
        if self.watch.folder.path.is_dir():
            self.has_folder, self.gone_at = True, None
        elif self.has_folder and self.gone_at is None:
            self.gone_at = time.monotonic()
        return self.gone_at is not None and time.monotonic() - self.gone_at >= GONE_SECONDS

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
        """Ask until the driver answers; after the deadline end it."""
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
        """A run that somebody else started is closed only when nobody writes it any more."""
        by = holder(self.watch.folder.path)
        if by is None:
            message = "no process was working on it any more; its last checkpoint is kept"
            self.close(Verdict(RunStateName.STOPPED, message, None))
        else:
            self.unended = f"it was not started by this server and does not stop: end {by.words}"

    def end_as(self, meant: Verdict | None) -> None:
        """End the driver and what is left of it, then say so much of the run."""
        if time.monotonic() >= self.retry_at:
            self.meant = meant
            self.ending = self.pool.submit(self.end)

    def take_end(self, ending: Future[bool]) -> None:
        """The last word is the server's only when the driver is gone."""
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
        """A driver that said its last word leaves, or is ended in the end."""
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
            self.fail("run.no_sign_of_life", reason)  # another machine's driver may still write
            return
        if self.stop_asked_at is not None:
            self.end_as(Verdict(RunStateName.STOPPED, f"it was stopped: {reason}", None))
            return
        words = last_words(self.log) or last_words(self.watch.folder.path / "engine.log")
        message = f"the run died without a final event: {reason or 'its driver is gone'}"
        message += f"\n{words}" if words else ""
        self.end_as(Verdict(RunStateName.FAILED, message, "run.driver_died"))

    def close_without_folder(self) -> None:
        """Nothing of the run can be kept any more: its driver is ended, too."""
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
        """Write the end that the driver, who is gone, did not write."""
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
        """The last word, where the run's own files have none. Raises RunBusy where somebody else
        is at work in the folder."""
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
        """Close a run that nobody could start: as stopped where that was asked for meanwhile."""
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

    def fail(self, code: str, message: str) -> None:
        """Close the run without touching its folder."""
        self.verdict = Verdict(RunStateName.FAILED, message, code)

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
