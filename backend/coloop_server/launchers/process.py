"""Runs a loop as a process of its own on this machine, with `--local`.

    server --Popen--> coloop run --local      own session, output in a log file
       '--control.jsonl--^

The process outlives the server. A restarted server finds it by its process ID and start time, or
by the mark of its launch, which is saved before the start and set in its environment.
"""

import secrets
import subprocess
import threading
from pathlib import Path

from coloop.runtime.run_files.events import ControlRequest
from coloop_server.launchers.protocol import Handle, LaunchFailed, Liveness, Order
from coloop_server.private import ensure_private_file, ensure_private_folder
from coloop_server.processes import (
    end_group,
    end_launch,
    identity,
    is_same,
    of_a_launch,
    of_launch,
)
from coloop_server.runs.folder import RunFolder
from coloop_server.settings import Settings

END_SECONDS = 5.0


class ProcessLauncher:
    """Starts, finds, watches and ends drivers; `RayJobLauncher` has the same methods."""

    def __init__(self, settings: Settings) -> None:
        self.driver = settings.driver
        self.lock = threading.Lock()
        self.children: dict[int, subprocess.Popen[bytes]] = {}

    def warm(self) -> None:
        """A run may start soon: begin to prepare what every run needs, and return at once."""

    def plan(self, run_id: str, attempt: int) -> Handle:
        """What to save before a driver is started, enough to find it again. Starts nothing."""
        return {"run_id": run_id, "mark": f"{run_id}-{attempt}-{secrets.token_hex(8)}"}

    def find(self, handle: Handle) -> Handle | None:
        """The complete handle of the driver that was started from this plan; None if none was.
        Raises LaunchFailed where that cannot be determined."""
        if "pid" in handle:
            return handle
        for pid, started in of_launch(handle):
            return {**handle, "pid": pid, "started": started}
        return None

    def start(self, order: Order, planned: Handle) -> Handle:
        """Start the driver and return at once; raises LaunchFailed."""
        order.tell("its process is loading the engine")
        return self.spawn(order, planned, "--local")

    def spawn(self, order: Order, planned: Handle, *options: str) -> Handle:
        command = [*self.driver, str(order.spec), *order.options(), *options]
        try:
            prepare_log(order.log)
            with order.log.open("ab") as log:
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    **of_a_launch(planned["mark"], self.environment()),
                )
        except OSError as error:
            raise LaunchFailed(f"{self.driver[0]} could not be started: {error}") from error
        return self.started(child, planned)

    def started(self, child: "subprocess.Popen[bytes]", planned: Handle) -> Handle:
        with self.lock:
            self.children[child.pid] = child
        return {**planned, "pid": child.pid, "started": identity(child.pid) or "gone"}

    def environment(self) -> dict[str, str]:
        """Environment variables of a driver, in addition to the server's own."""
        return {}

    def check(self, handle: Handle) -> Liveness:
        """Whether the driver still runs. Never changes anything."""
        pid = handle["pid"]
        with self.lock:
            child = self.children.get(pid)
        if child is not None:
            code = child.poll()
            if code is None:
                return Liveness(True)
            return Liveness(False, f"its process ended {describe(code)}")
        if is_same(pid, handle["started"]):
            return Liveness(True)
        return Liveness(False, "its process is gone")

    def ask(self, handle: Handle, folder: RunFolder, request: ControlRequest) -> bool:
        """Pass a request to the driver; returns whether it was delivered."""
        return folder.ask(request)

    def end(self, handle: Handle) -> bool:
        """End the driver and what it started, or what is left of them. Returns True when all of it
        is gone; while that is not certain, False, and nobody else may write the run's files."""
        pid = handle["pid"]
        with self.lock:
            child = self.children.get(pid)
        if child is None or child.poll() is None:
            end_group(pid, handle["started"], seconds=END_SECONDS)
        if child is not None:
            child.poll()
        is_alone = "mark" not in handle or end_launch(handle, seconds=END_SECONDS)
        return is_alone and not is_same(pid, handle["started"])

    def follow(self, handle: Handle, folder: RunFolder) -> None:
        """Keep the run's files up to date where the driver cannot write them; called repeatedly.
        Raises LaunchFailed where that does not work at the moment."""

    def let_go(self, handle: Handle) -> None:
        """The driver is gone: stop writing its run's files."""
        with self.lock:
            self.children.pop(handle["pid"], None)

    def close(self, *, runs_go_on: bool) -> None:
        """The server is shutting down: release what no run needs any more."""
        with self.lock:
            for child in self.children.values():
                if child.poll() is None:
                    child.returncode = 0  # it keeps running; Popen need not wait for it
            self.children.clear()


def prepare_log(log: Path) -> None:
    ensure_private_folder(log.parent)
    ensure_private_file(log)


def describe(code: int) -> str:
    return f"with exit code {code}" if code >= 0 else f"by signal {-code}"
