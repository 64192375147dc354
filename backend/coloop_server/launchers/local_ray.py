"""A Ray of the server's own on this machine: started with the first run, ended with the server.

    server --Popen--> own_ray: ray start --head --block     own session, ports and temp folder
       '--- data/ray/: which Ray it is, whose, its token

Ports of Ray's inner services listen on all interfaces whatever one asks for, so Ray's token
authentication is on, with a token of this server's own. Nothing calls `ray stop`: it ends by name.
Where runs go on after the server has ended, Ray does too, until the last of them is over; the next
server takes it over from what is noted.
"""

import json
import logging
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from coloop.errors import RayNotStarted
from coloop.workers.ray.ray_settings import (
    AT_EVEN_PRIORITY,
    PATIENCE,
    RAY_STARTS,
    busy_words,
    fits_sockets,
    short_folder,
    starting_words,
)
from coloop_server.launchers.protocol import LaunchFailed, RayFailed
from coloop_server.own_ray.folder import TOKEN_PATH, Head, RayFolder, list_jobs
from coloop_server.private import ensure_private_file, read_or_write, write_private
from coloop_server.processes import child_environment, end_group, identity, last_words

logger = logging.getLogger(__name__)

START_SECONDS = 240.0
STARTS = 2
"""Most attempts at starting a Ray whose first process ends during the start."""
PATIENCE_SECONDS = 60.0
PROBES = 3
PROBE_PAUSE_SECONDS = 0.5
END_SECONDS = 20.0
FOR_ALL = ", once for all runs of this server"
TEMP_PREFIX = "coloop-ray-"
AT_ONCE = {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0"}
"""Ray ends at once when asked, as there is no other node to move work to."""


class LocalRay:
    def __init__(self, folder: Path, *, patience: float = PATIENCE_SECONDS) -> None:
        self.folder = RayFolder(folder)
        self.patience = patience
        """Seconds without an answer that are tolerated from a running Ray."""
        self.lock = threading.Lock()
        self.child: subprocess.Popen[bytes] | None = None
        self.is_claimed = False
        self.is_closing = threading.Event()
        """Set when the server ends, so that nothing waits for Ray any more."""

    def known(self) -> Head | None:
        """The running Ray, started by this server or an earlier one."""
        return self.folder.known()

    def claim(self) -> None:
        """Keep Ray alive for a run that this server now owns."""
        if self.is_claimed:
            return
        with self.lock, self.folder.alone():
            if self.known() is not None:
                self.folder.claim()
                self.is_claimed = True

    def ensure(
        self, tell: Callable[[str], None], is_busy: Callable[[], bool] = lambda: False
    ) -> Head:
        """The running Ray, started if needed. One that stays silent is replaced, unless runs use
        it: a busy machine answers late."""
        if self.lock.locked():
            tell(f"{RAY_STARTS}{FOR_ALL}")
        with self.lock, self.folder.alone():
            self.folder.claim()
            self.is_claimed = True
            head = self.known()
            if head is not None and self.answers_in_time(head, tell):
                return head
            if head is not None:
                if is_busy():
                    raise LaunchFailed(
                        f"Ray on this machine (process {head.pid}) gave no answer for "
                        f"{self.patience:.0f} s, and runs are still active there; it is left "
                        "alone. Start this run again later, or stop those first"
                    )
                logger.warning("Ray (process %d) does not answer and is replaced", head.pid)
                self.stop_head(head)
            return self.start(tell)

    def answers_in_time(self, head: Head, tell: Callable[[str], None]) -> bool:
        deadline = time.monotonic() + self.patience
        tries = 0
        while head.is_running and (tries < PROBES or time.monotonic() < deadline):
            if self.answers(head.address):
                return True
            tries += 1
            tell("waiting for Ray on this machine to answer")
            time.sleep(PROBE_PAUSE_SECONDS)
        return False

    def start(self, tell: Callable[[str], None]) -> Head:
        """Start Ray, again if its first process ends during the start."""
        tell(starting_words(FOR_ALL))
        for left in reversed(range(STARTS)):
            try:
                return self.start_once()
            except RayFailed as failed:
                if not left or self.is_closing.is_set():
                    raise
                logger.warning("%s; starting it again", failed)
                tell(f"{failed}; it is started again")
        raise AssertionError("STARTS is 1 or more")

    def failed(self, what: str) -> RayFailed:
        words = last_words(self.folder.log)
        reason = reason_in(words)
        busy = f" ({load})" if (load := busy_words()) else ""
        return RayFailed(f"{what}{busy}{f': {reason}' if reason else ''}", log=words or None)

    def gone_words(self, address: str) -> str:
        """Says that this Ray ended, and why if its log tells."""
        noted = self.folder.noted()
        is_last = noted is not None and noted.address == address
        reason = reason_in(last_words(self.folder.log)) if is_last else None
        return f"the Ray that it ran on is gone{f': {reason}' if reason else ''}"

    def start_once(self) -> Head:
        read_or_write(self.folder.token_file, secrets.token_hex(32))
        for file in (self.folder.log, self.folder.note):
            ensure_private_file(file)
        if (killed := self.folder.noted()) is not None:
            self.folder.end_rest(killed)
        temp_dir = make_temp_folder()
        port, dashboard, client, agent, agent_grpc = free_ports(5)
        command = [
            *(sys.executable, "-m", "coloop_server.own_ray", str(self.folder.path)),
            *("start", "--head", "--block", "--disable-usage-stats"),
            *("--no-monitor", "--include-log-monitor=false"),  # one node, logs in files
            *(f"--port={port}", f"--ray-client-server-port={client}", f"--temp-dir={temp_dir}"),
            *("--include-dashboard=true", "--dashboard-host=127.0.0.1"),
            *(f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}"),
            f"--dashboard-agent-grpc-port={agent_grpc}",
        ]
        with self.folder.log.open("wb") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=child_environment(
                    **self.environment(), **AT_ONCE, **AT_EVEN_PRIORITY, **PATIENCE
                ),
                start_new_session=True,
            )
        head = Head(
            pid=child.pid,
            started=identity(child.pid) or "gone",
            address=f"http://127.0.0.1:{dashboard}",
            joined_at=f"127.0.0.1:{port}",
            temp_dir=temp_dir,
        )
        self.child = child
        try:
            write_private(self.folder.note, json.dumps(asdict(head)))
            self.wait_until_up(child, head)
        except BaseException:
            self.stop_head(head)
            raise
        logger.info("Ray runs at %s", head.address)
        return head

    def wait_until_up(self, child: subprocess.Popen[bytes], head: Head) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.answers(head.address):
            if child.poll() is not None:
                raise self.failed("Ray ended while it started")
            if self.is_closing.is_set():
                raise RayFailed("the server ended")
            if time.monotonic() > deadline:
                raise self.failed(f"Ray did not answer within {START_SECONDS:.0f} s")
            time.sleep(0.1)

    def answers(self, address: str) -> bool:
        return list_jobs(address, self.folder.headers()) is not None

    def is_well(self, head: Head) -> bool:
        return head.is_running and self.answers(head.address)

    def stop(self) -> None:
        if not self.folder.path.is_dir():
            return
        with self.lock, self.folder.alone():
            head = self.folder.noted()
            if head is not None:
                self.stop_head(head)

    def stop_head(self, head: Head) -> None:
        end_group(head.pid, head.started, seconds=END_SECONDS)
        if self.child is not None and self.child.pid == head.pid:
            self.child.wait()
            self.child = None
        self.folder.end_rest(head)
        self.folder.note.unlink(missing_ok=True)

    def leave(self) -> None:
        """Let Ray continue after the server's end."""
        if self.child is not None:
            self.child.returncode = 0
            self.child = None

    def environment(self) -> dict[str, str]:
        return {"RAY_AUTH_MODE": "token", TOKEN_PATH: str(self.folder.token_file)}


def make_temp_folder() -> str:
    """A folder for Ray's files; its sockets need short paths."""
    usual = Path(tempfile.gettempdir())
    if fits_sockets(usual / f"{TEMP_PREFIX}12345678"):
        return tempfile.mkdtemp(prefix=TEMP_PREFIX)
    try:
        return tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=short_folder())
    except RayNotStarted as error:
        raise RayFailed(str(error)) from error


def free_ports(count: int) -> list[int]:
    """Free ports; all are held at once, so that no two are equal."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for held in sockets:
            held.bind(("127.0.0.1", 0))
        return [held.getsockname()[1] for held in sockets]
    finally:
        for held in sockets:
            held.close()


REASONS: tuple[tuple[str, str], ...] = (
    (r"no space left on device", "the disk is full; free space on the disk of TMPDIR"),
    (r"AF_UNIX path length", "the path of TMPDIR is too long; set RAY_TMPDIR to a short folder"),
    (
        r"cannot allocate memory|out of memory|oom.?kill|MemoryError|bad_alloc",
        "there is not enough free memory",
    ),
    (r"address already in use|errno 98", "a port that it needed is in use"),
    (r"too many open files|errno 24", "too many files are open; raise `ulimit -n`"),
    (
        r"resource temporarily unavailable|can't start new thread",
        "no more processes may be started; raise `ulimit -u`",
    ),
    (
        r"permission denied|operation not permitted",
        "it lacks permission to write its files or to open its ports",
    ),
    (r"/dev/shm", "the shared memory in /dev/shm is too small"),
    (r"timed out during startup", "its node did not register in time; the machine is too busy"),
    (
        r"gcs.{0,80}(did not start|failed|unavailable|timed out)|failed to (connect|get).{0,40}gcs",
        "its control process (GCS) ended or did not answer",
    ),
    (
        r"dashboard.{0,80}(failed|timed out|exited)",
        "its dashboard, which takes jobs, did not start",
    ),
    (r"unexpectedly exited|some ray subprocesses", "one of its processes was killed"),
)
"""Patterns in the order of search, and their meanings."""
ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Timeout)): (.+)$")


def reason_in(text: str) -> str | None:
    """Why Ray did not start, from the end of its log: a known reason, or else the last error; None
    if there is none."""
    for pattern, reason in REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return reason
    errors = [
        error[2].strip() for line in text.splitlines() if (error := ERROR.match(line.strip()))
    ]
    return errors[-1].rstrip(".") if errors else None
