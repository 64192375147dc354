"""Runs a loop as a process of its own on this machine, with `--local`.

    server --Popen--> coloop run --local      own session, output in a log file
       '--control.jsonl--^

The process outlives the server; after a restart it is known again by its number and start time.
"""

import subprocess
import threading

from coloop.events import ControlRequest
from coloop_server.launchers.protocol import Handle, LaunchFailed, Liveness, Order
from coloop_server.private import ensure_private_file
from coloop_server.processes import (
    child_environment,
    end_group,
    identity,
    is_same,
)
from coloop_server.runs.folder import RunFolder
from coloop_server.settings import Settings

END_SECONDS = 5.0


class ProcessLauncher:
    def __init__(self, settings: Settings) -> None:
        self.driver = settings.driver
        self.lock = threading.Lock()
        self.children: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, order: Order) -> Handle:
        order.tell("its process is loading the engine")
        command = [*self.driver, str(order.spec), *order.options(), "--local"]
        order.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            ensure_private_file(order.log)
            with order.log.open("ab") as log:
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=child_environment(),
                    start_new_session=True,
                )
        except OSError as error:
            raise LaunchFailed(f"{self.driver[0]} could not be started: {error}") from error
        with self.lock:
            self.children[child.pid] = child
        return {"pid": child.pid, "started": identity(child.pid) or "gone"}

    def check(self, handle: Handle) -> Liveness:
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
        return folder.ask(request)

    def end(self, handle: Handle) -> bool:
        pid = handle["pid"]
        with self.lock:
            child = self.children.get(pid)
        if child is not None and child.poll() is not None:
            return True
        end_group(pid, handle["started"], seconds=END_SECONDS)
        if child is not None:
            child.poll()
        return not is_same(pid, handle["started"])

    def follow(self, handle: Handle, folder: RunFolder) -> None:
        """The driver writes its own files."""

    def let_go(self, handle: Handle) -> None:
        with self.lock:
            self.children.pop(handle["pid"], None)

    def close(self, *, runs_go_on: bool) -> None:
        with self.lock:
            for child in self.children.values():
                if child.poll() is None:
                    child.returncode = 0  # it goes on alone: no one waits for it here
            self.children.clear()


def describe(code: int) -> str:
    return f"with exit code {code}" if code >= 0 else f"by signal {-code}"
