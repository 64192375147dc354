"""Runs a loop as a process of its own on this machine, with `--local`.

    server --Popen--> coloop run --local      own session, output in a log file
       '--control.jsonl--^

The process outlives the server; after a restart it is known again by its number and start time, or
by the mark of its launch, which was noted before it was started and stands in its environment.
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
        """A run may be started soon: begin with what all runs need, and return at once."""

    def plan(self, run_id: str, attempt: int) -> Handle:
        """What is noted before a driver is started, enough to find it again. Starts nothing."""
        return {"run_id": run_id, "mark": f"{run_id}-{attempt}-{secrets.token_hex(8)}"}

    def find(self, handle: Handle) -> Handle | None:
        """The whole handle of a driver by what was planned; None where none was started. Raises
        LaunchFailed where nobody can be asked."""
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
        """What a driver finds in its environment beside the server's own."""
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
        """Bring a request to the driver; whether it could be handed over."""
        return folder.ask(request)

    def end(self, handle: Handle) -> bool:
        """End the driver and what it started, or what is left of them. True when all of it is gone,
        False when that is not known: until then nobody else may write its files."""
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
        """Go on writing the run's files where the driver cannot; called again and again. Raises
        LaunchFailed where that does not work just now."""

    def let_go(self, handle: Handle) -> None:
        """The driver is gone: write its files no more."""
        with self.lock:
            self.children.pop(handle["pid"], None)

    def close(self, *, runs_go_on: bool) -> None:
        """The server ends: give back what no run needs any more."""
        with self.lock:
            for child in self.children.values():
                if child.poll() is None:
                    child.returncode = 0  # it goes on alone: no one waits for it here
            self.children.clear()


def prepare_log(log: Path) -> None:
    ensure_private_folder(log.parent)
    ensure_private_file(log)


def describe(code: int) -> str:
    return f"with exit code {code}" if code >= 0 else f"by signal {-code}"
