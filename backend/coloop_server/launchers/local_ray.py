"""A Ray of the server's own on this machine: started with the first run, ended with the server.

    server --Popen--> ray start --head --block     own session, own ports, own temp folder
       '--- data/ray/head.json: number, start time, address, token file

Ports of Ray's inner services listen on all interfaces whatever one asks for, so Ray's token
authentication is on, with a token of this server's own. Nothing calls `ray stop`: it ends by name.
Where runs go on after the server has ended, Ray does too, and the next server takes it over from
`head.json`.
"""

import json
import logging
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from coloop_server.launchers.processes import (
    child_environment,
    end_group,
    identity,
    is_same,
    last_words,
)
from coloop_server.launchers.protocol import LaunchFailed
from coloop_server.private import ensure_private_file, ensure_private_folder, read_or_write

logger = logging.getLogger(__name__)

START_SECONDS = 90.0
PATIENCE_SECONDS = 60.0
PROBES = 3
PROBE_PAUSE_SECONDS = 0.5
PROBE_SECONDS = 5.0
END_SECONDS = 20.0
AT_ONCE = {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0"}
"""Asked to end, Ray ends: there is no other node that its work could move to."""
RAY = "import sys; from ray.scripts.scripts import main; sys.exit(main())"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A running Ray, as it is noted on disk."""

    pid: int
    started: str
    address: str
    """Of the dashboard, which takes jobs."""
    temp_dir: str

    @property
    def is_running(self) -> bool:
        return is_same(self.pid, self.started)


class LocalRay:
    def __init__(self, folder: Path, *, patience: float = PATIENCE_SECONDS) -> None:
        self.folder = folder
        self.patience = patience
        """Seconds that a Ray which runs may leave probes without an answer."""
        self.note = folder / "head.json"
        self.token_file = folder / "token"
        self.log = folder / "head.log"
        self.lock = threading.Lock()
        self.child: subprocess.Popen[bytes] | None = None

    def known(self) -> Head | None:
        """The Ray that runs, whether this server started it or one before it."""
        try:
            head = Head(**json.loads(self.note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return head if head.is_running else None

    def ensure(
        self, tell: Callable[[str], None], is_busy: Callable[[], bool] = lambda: False
    ) -> Head:
        """The running Ray, started if there is none. One that does not answer for long is replaced,
        unless runs go on there: a busy machine answers late."""
        with self.lock:
            head = self.known()
            if head is not None and self.answers_in_time(head, tell):
                return head
            if head is not None:
                if is_busy():
                    raise LaunchFailed(
                        f"Ray on this machine (process {head.pid}) gave no answer for "
                        f"{self.patience:.0f} s, and runs still go on there; it is left alone. "
                        "Start this run again later, or stop those first"
                    )
                logger.warning("Ray (process %d) does not answer and is replaced", head.pid)
                self.stop_head(head)
            tell("starting Ray on this machine, once for all runs of this server")
            return self.start()

    def answers_in_time(self, head: Head, tell: Callable[[str], None]) -> bool:
        """Several probes, with patience."""
        deadline = time.monotonic() + self.patience
        tries = 0
        while head.is_running and (tries < PROBES or time.monotonic() < deadline):
            if self.answers(head.address):
                return True
            tries += 1
            tell("waiting for Ray on this machine to answer")
            time.sleep(PROBE_PAUSE_SECONDS)
        return False

    def start(self) -> Head:
        ensure_private_folder(self.folder)
        self.ensure_token()
        for file in (self.log, self.note):
            ensure_private_file(file)
        # Ray puts Unix sockets below its temp folder, whose paths must be short.
        temp_dir = tempfile.mkdtemp(prefix="coloop-ray-")
        port, dashboard, client, agent, agent_grpc = free_ports(5)
        command = [
            *(sys.executable, "-c", RAY, "start", "--head", "--block", "--disable-usage-stats"),
            *(f"--port={port}", f"--ray-client-server-port={client}", f"--temp-dir={temp_dir}"),
            *("--include-dashboard=true", "--dashboard-host=127.0.0.1"),
            *(f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}"),
            f"--dashboard-agent-grpc-port={agent_grpc}",
        ]
        with self.log.open("wb") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=child_environment(**self.environment(), **AT_ONCE),
                start_new_session=True,
            )
        head = Head(
            pid=child.pid,
            started=identity(child.pid) or "gone",
            address=f"http://127.0.0.1:{dashboard}",
            temp_dir=temp_dir,
        )
        self.child = child
        try:
            write_aside(self.note, json.dumps(asdict(head)))
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
                words = last_words(self.log)
                raise LaunchFailed(f"Ray could not be started:\n{words}")
            if time.monotonic() > deadline:
                raise LaunchFailed(
                    f"Ray did not answer at {head.address} within {START_SECONDS:.0f} s; "
                    "COLOOP_LAUNCHER=process runs loops without it"
                )
            time.sleep(0.1)

    def answers(self, address: str) -> bool:
        request = urllib.request.Request(f"{address}/api/jobs/", headers=self.headers())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=PROBE_SECONDS) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def stop(self) -> None:
        with self.lock:
            head = self.known()
            if head is not None:
                self.stop_head(head)

    def stop_head(self, head: Head) -> None:
        end_group(head.pid, head.started, seconds=END_SECONDS)
        if self.child is not None and self.child.pid == head.pid:
            self.child.wait()
            self.child = None
        remove_folder(Path(head.temp_dir))
        self.note.unlink(missing_ok=True)

    def leave(self) -> None:
        """The server ends and Ray goes on: nobody waits for the child any more."""
        if self.child is not None:
            self.child.returncode = 0
            self.child = None

    def ensure_token(self) -> None:
        read_or_write(self.token_file, secrets.token_hex(32))

    def environment(self) -> dict[str, str]:
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token_file)}

    def headers(self) -> dict[str, str]:
        try:
            token = self.token_file.read_text(encoding="utf-8").strip()
        except OSError:
            return {}
        return {"Authorization": f"Bearer {token}"}


def free_ports(count: int) -> list[int]:
    """Ports that are free now; all held at once, so that no two are the same."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for held in sockets:
            held.bind(("127.0.0.1", 0))
        return [held.getsockname()[1] for held in sockets]
    finally:
        for held in sockets:
            held.close()


def remove_folder(folder: Path) -> None:
    """Ray's last processes may still write a log line while the folder goes."""
    for _ in range(10):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.2)


def write_aside(path: Path, text: str) -> None:
    aside = path.with_suffix(".new")
    ensure_private_file(aside)
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
