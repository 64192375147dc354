"""Starts queued runs, watches the ones in progress, and closes those that died.

    routes --ask_stop, wake--> +------------ supervisor thread ------------+
                               | poll folders -> rows of the database      |--> hub -> WebSockets
    launcher <--start, end---- | liveness, deadlines, queue                |<-- scanner thread:
      (threads of a pool)      +-------------------------------------------+    runs found on disk

While no run is in progress, it does not query the database: it looks at the queue when a route or
the end of a run gives it a reason to.

Once a run is queued, only the supervisor writes its row in the database; routes only insert rows
and make requests. After a restart, everything is restored from the rows and the folders.
"""

import asyncio
import logging
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from coloop.runtime.run_files.events import ControlRequest, RunStateName
from coloop.spec.io import parse
from coloop_server.database.connect import Sessions
from coloop_server.database.tables import RunRow
from coloop_server.errors import Unavailable
from coloop_server.launchers import Launcher
from coloop_server.launchers.protocol import Handle, LaunchFailed, Order, is_whole
from coloop_server.private import ensure_private_folder, write_private
from coloop_server.runs import repository
from coloop_server.runs.live import LiveRun
from coloop_server.runs.scan import Scanner
from coloop_server.runs.series import sidecar_of
from coloop_server.runs.watch import Watch
from coloop_server.settings import Settings

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.1
FIND_SECONDS = 3.0
"""Interval of tries to find a driver that the previous server may have started."""
IDLE_SECONDS = 5.0
SAVE_SECONDS = 1.0
OPEN_WATCHES = 64
SUBMITTED = ".submitted"
"""Folder beside the runs, for specs of starting runs: a cluster that sees the runs sees it too."""


class Supervisor:
    """One thread that owns all runs of this server."""

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        launchers: Mapping[str, Launcher],
        default_launcher: str,
    ) -> None:
        self.settings = settings
        self.sessions = sessions
        self.launchers = launchers
        self.default_launcher = default_launcher
        self.hub = Hub()
        self.scanner = Scanner(settings, sessions, is_live=self.is_live, take=self.take_up)
        self.live: dict[str, LiveRun] = {}
        self.watches: OrderedDict[str, Watch] = OrderedDict()
        self.lock = threading.RLock()
        self.pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="launch")
        self.news = threading.Event()
        self.is_owner = True
        self.is_queue_due = True
        """Whether the queue may hold a run that has not been looked at yet."""
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Find the runs in progress, then watch them."""
        self.adopt()
        self.thread.start()
        self.scanner.start()

    def close(self) -> None:
        """Stop watching. Runs go on without the server or are ended with it, by `keep_runs`."""
        self.ended.set()
        self.news.set()
        self.scanner.close()
        if self.thread.ident is not None:
            self.thread.join(timeout=30)
        self.pool.shutdown(wait=True, cancel_futures=True)
        for launcher in self.launchers.values():
            owned = [run for run in self.live.values() if run.launcher is launcher]
            goes_on = self.settings.keep_runs or not self.is_owner
            if owned and goes_on:
                logger.info("%d runs go on; the next server finds them again", len(owned))
            else:
                for run in owned:
                    run.end()
            launcher.close(runs_go_on=bool(owned) and goes_on)
        for run in self.live.values():
            self.save_handle(run)

    def step_down(self) -> None:
        """Another server took over the database: it now starts, watches and closes all runs."""
        self.is_owner = False

    def require_owner(self) -> None:
        if not self.is_owner:
            raise Unavailable(
                "database.lost", "another coloop server took over this database; use that one"
            )

    def save_handle(self, run: LiveRun) -> None:
        """Save what was launched; without it, the next server finds the driver from its plan."""
        if run.handle is None or run.handle == run.saved_handle or not self.is_owner:
            return
        try:
            with self.sessions.begin() as session:
                row = repository.find_outline(session, run.id)
                if row is not None and not RunStateName(row.state).is_final:
                    row.handle = run.handle
        except SQLAlchemyError as error:
            logger.warning("the process of run %s could not be noted: %s", run.id, error)

    def adopt(self) -> None:
        """After a restart, make live runs of the rows of unfinished runs. A run that the previous
        server was still starting when it ended is found from its plan, or started now."""
        with self.sessions.begin() as session:
            unfinished = repository.list_unfinished(session)
            rows = [row for row in unfinished if row.state != RunStateName.QUEUED]
            for row in rows:
                if row.launcher is not None and row.handle is None:
                    row.handle = self.launcher_of(row).plan(row.id, row.attempt)
        for row in rows:
            run = self.add_live(row)
            if run.launcher is not None and run.handle is None and row.handle is not None:
                run.launching = self.pool.submit(self.launch_again, run, row, row.handle)

    def add_live(self, row: RunRow) -> LiveRun:
        launcher = self.launchers.get(row.launcher or "")
        run = LiveRun(
            id=row.id,
            watch=self.watch(row.id, Path(row.folder)),
            launcher=launcher,
            handle=row.handle if launcher and row.handle and is_whole(row.handle) else None,
            has_folder=row.attempt > 1 or row.started_at is not None,
            attempt=row.attempt,
            log=self.log_path(row.id),
            pool=self.pool,
            stop_seconds=self.settings.stop_seconds,
            stale_seconds=self.settings.stale_seconds,
        )
        if row.stop_asked_at is not None:
            run.ask_stop()
        with self.lock:
            self.live[row.id] = run
        return run

    # What routes ask for

    def wake(self) -> None:
        """Something was queued or requested: look at once."""
        self.is_queue_due = True
        self.news.set()

    def warm(self) -> None:
        """Prepare for a run: someone has a loop open that can run here."""
        if self.is_owner:
            self.launchers[self.default_launcher].warm()

    def wake_after(self, session: Session) -> None:
        """Wake the thread as soon as the session is committed."""
        self.require_owner()
        event.listen(session, "after_commit", lambda _: self.wake(), once=True)

    def is_live(self, run_id: str) -> bool:
        return run_id in self.live

    def forget(self, run_id: str) -> None:
        """A run was deleted: close its files and remove what was kept for it."""
        with self.lock:
            self.watches.pop(run_id, None)
        submitted = self.settings.runs_dir / SUBMITTED
        self.log_path(run_id).unlink(missing_ok=True)
        sidecar_of(self.settings.data_dir, run_id).unlink(missing_ok=True)
        (submitted / f"{run_id}.yaml").unlink(missing_ok=True)
        shutil.rmtree(submitted / f"{run_id}.upload", ignore_errors=True)
        self.hub.tell(run_id)

    def open(self, run_id: str) -> Watch:
        """The files of a run, read up to their current end."""
        with self.sessions() as session:
            folder = Path(repository.get_outline(session, run_id).folder)
        watch = self.watch(run_id, folder)
        watch.poll()
        return watch

    def watch(self, run_id: str, folder: Path) -> Watch:
        """The files of a run, finished or not; the least recently used ones are closed."""
        with self.lock:
            known = self.watches.get(run_id)
        if known is None:
            with self.sessions() as session:
                kept = repository.get_kept(session, run_id)
            known = Watch(folder, kept, sidecar_of(self.settings.data_dir, run_id))
        with self.lock:
            watch = self.watches.pop(run_id, known)
            self.watches[run_id] = watch
            for other in list(self.watches):
                if len(self.watches) <= OPEN_WATCHES:
                    break
                if other not in self.live and other != run_id:
                    del self.watches[other]
        return watch

    def ask_stop(self, run_id: str, *, at_once: bool) -> None:
        run = self.live.get(run_id)
        if run is not None:
            run.ask_stop(at_once=at_once)
        self.wake()

    def ask(self, run_id: str, request: ControlRequest) -> bool:
        """Send a request to a live run; returns whether it was delivered."""
        run = self.live.get(run_id)
        return run is not None and run.send(request)

    def take_up(self, row: RunRow) -> None:
        """Watch a run in progress that this server did not start."""
        with self.lock:
            if row.id not in self.live:
                self.add_live(row)
        self.news.set()

    def folder_of(self, run_id: str) -> Path | None:
        with self.sessions() as session:
            row = repository.find_outline(session, run_id)
            return None if row is None else Path(row.folder)

    # The thread

    def run(self) -> None:
        while not self.ended.is_set():
            try:
                self.tick()
            except Exception:
                # Drivers, disks and clusters may fail in any way: one that misbehaves must not end
                # the watch over all the others.
                logger.exception("a look at the runs failed; trying again")
            self.news.wait(TICK_SECONDS if self.live else IDLE_SECONDS)
            self.news.clear()

    def tick(self) -> None:
        if not self.is_owner:
            return
        for run in list(self.live.values()):
            try:
                self.look_after(run)
            except Exception:
                logger.exception("a look at run %s failed; trying again", run.id)
        self.start_queued()

    def look_after(self, run: LiveRun) -> None:
        if run.launching is not None:
            if not run.launching.done():
                return
            if not self.launched(run):
                return
        is_changed = run.look()
        now = time.monotonic()
        is_closed = run.is_closed
        is_stale = is_changed and now - run.saved_at > SAVE_SECONDS
        is_due = run.has_new_state() or is_stale or run.is_unsaved_since(now - SAVE_SECONDS)
        # What a driver writes while it is being ended or is exiting is saved once it is gone.
        is_due = is_due and not run.is_ending and not run.has_last_word
        if is_closed or is_due:
            self.save(run)
        if is_changed or is_due or is_closed:
            self.hub.tell(run.id)

    def save(self, run: LiveRun) -> None:
        """Write the summary to the row, and close the run when it is over."""
        is_closed = run.is_closed
        stamp, kept = run.watch.keep() if is_closed else (None, {})
        with self.sessions.begin() as session:
            row = repository.find_outline(session, run.id)
            if row is not None:
                repository.apply_summary(row, run.watch.summary, run.watch.log.last_seq)
                if run.verdict is not None:
                    verdict = run.verdict
                    repository.end(row, verdict.state, verdict.message, verdict.error)
                if run.alert is not None and not is_closed:
                    row.message = run.alert
                if is_closed:
                    row.handle, row.stop_asked_at = None, None
                elif run.handle is not None:
                    row.handle = run.handle
                if stamp is not None:
                    repository.put_kept(session, run.id, stamp, kept)
        run.saved()
        if is_closed:
            with self.lock:
                self.live.pop(run.id, None)
            self.is_queue_due = True
            self.hub.tell(run.id)

    def start_queued(self) -> None:
        busy = sum(run.launcher is not None for run in self.live.values())
        if not self.is_queue_due or busy >= self.settings.max_running:
            return
        self.is_queue_due = False
        try:
            with self.sessions.begin() as session:
                free = self.settings.max_running - busy
                claimed = repository.claim_queued(session, free, self.default_launcher)
                for row in claimed:
                    row.handle = self.launcher_of(row).plan(row.id, row.attempt)
        except SQLAlchemyError:
            self.is_queue_due = True
            raise
        for row in claimed:
            run = self.add_live(row)
            run.launching = self.pool.submit(self.launch, run, row, row.handle or {})
            self.hub.tell(row.id)

    def launcher_of(self, row: RunRow) -> Launcher:
        return self.launchers.get(row.launcher or "") or self.launchers[self.default_launcher]

    def order(self, row: RunRow) -> Order:
        spec = self.settings.runs_dir / SUBMITTED / f"{row.id}.yaml"
        ensure_private_folder(spec.parent)
        write_private(spec, row.yaml)
        return Order(
            run_id=row.id,
            attempt=row.attempt,
            spec=spec,
            folder=Path(row.folder),
            log=self.log_path(row.id),
            root=self.root_of(row),
            resume=row.resume_of,
            force=row.forced,
            tell=lambda message: self.tell_starting(row.id, message),
        )

    def root_of(self, row: RunRow) -> Path:
        spec, roots = parse(row.yaml).spec, self.settings.roots
        return roots.allowed[0] if spec is None else roots.base_for(spec)

    def log_path(self, run_id: str) -> Path:
        return self.settings.data_dir / "logs" / f"{run_id}.log"

    def launch(self, run: LiveRun, row: RunRow, planned: Handle) -> None:
        """Runs in a thread of the pool, because starting Ray takes seconds. The plan is already in
        the row, so that the driver can be found from it, whatever happens to this server."""
        assert run.launcher is not None
        run.handle = run.launcher.start(self.order(row), planned)

    def launch_again(self, run: LiveRun, row: RunRow, planned: Handle) -> None:
        """Find the driver that the previous server began to launch; start it if there is none."""
        assert run.launcher is not None
        while not self.ended.is_set():
            try:
                run.handle = run.launcher.find(planned)
                break
            except LaunchFailed as error:
                self.tell_starting(run.id, f"whether it was started cannot be told yet: {error}")
                self.ended.wait(FIND_SECONDS)
        if run.handle is None and run.stop_asked_at is not None:
            raise LaunchFailed("the server ended before it was started")
        if run.handle is None and not self.ended.is_set():
            self.launch(run, row, planned)

    def tell_starting(self, run_id: str, message: str) -> None:
        """Show what a start is busy with. Only for users: a busy database must not prevent the run
        from starting."""
        try:
            with self.sessions.begin() as session:
                row = repository.find_outline(session, run_id)
                if row is not None:
                    row.message = message
        except SQLAlchemyError as error:
            logger.info("run %s: %s (%s)", run_id, message, error)
        self.hub.tell(run_id)

    def launched(self, run: LiveRun) -> bool:
        assert run.launching is not None
        launching: Future[None] = run.launching
        run.launching = None
        error = launching.exception()
        if error is None:
            return True
        if not isinstance(error, LaunchFailed):
            logger.error("run %s could not be started", run.id, exc_info=error)
        run.not_started(error)
        self.save(run)
        return False


class Hub:
    """Tells clients that a run has news. It keeps no messages: each client then reads the log
    itself, from its own position on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listeners: dict[str, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}

    @contextmanager
    def listen(self, run_id: str) -> Iterator[asyncio.Event]:
        """An event of the running loop that is set whenever the run has news."""
        listener = (asyncio.get_running_loop(), asyncio.Event())
        with self.lock:
            self.listeners.setdefault(run_id, []).append(listener)
        try:
            yield listener[1]
        finally:
            with self.lock:
                self.listeners[run_id].remove(listener)
                if not self.listeners[run_id]:
                    del self.listeners[run_id]

    def tell(self, run_id: str) -> None:
        with self.lock:
            listeners = tuple(self.listeners.get(run_id, ()))
        for loop, has_news in listeners:
            with suppress(RuntimeError):  # the loop is closed: the server is ending
                loop.call_soon_threadsafe(has_news.set)
