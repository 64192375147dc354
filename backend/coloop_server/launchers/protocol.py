"""What supervisor and launchers tell each other; what is asked of a launcher says `process.py`.

plan --noted in the database--> start --> whole handle, plain JSON: it outlives the server
  '--> find, by the server that comes after one which was killed in between
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Handle = dict[str, Any]


class LaunchFailed(Exception):
    """A run could not be started; the message is for the user."""

    code = "run.not_started"
    hint: str | None = None
    log: str | None = None
    """End of the log of a failed start."""


class RayFailed(LaunchFailed):
    """The server's own Ray did not start, or ended before it took the job."""

    code = "run.ray_not_started"
    hint = "Run it in one process instead: that needs no Ray."

    def __init__(self, message: str, log: str | None = None) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run to start. The server sets every field, users none."""

    run_id: str
    attempt: int
    spec: Path
    folder: Path
    log: Path
    """Output of the driver before its run folder has an `engine.log`."""
    root: Path
    """Base folder of relative paths in the spec."""
    resume: str | None
    force: bool
    tell: Callable[[str], None]
    """Reports progress while starting takes long."""

    def options(self) -> list[str]:
        """Options of `coloop run` that every launcher passes."""
        options = ["--runs-dir", str(self.folder.parent), "--run-id", self.run_id]
        options += ["--root", str(self.root)]
        if self.resume is not None:
            options += ["--resume", self.resume]
        if self.force:
            options.append("--force")
        return options


@dataclass(frozen=True, slots=True)
class Liveness:
    is_alive: bool
    reason: str = ""
    """How it ended, if known, or why it could not be reached."""
    is_reached: bool = True
    """False if what runs the driver did not answer; the run then counts as alive."""


def is_whole(handle: Handle) -> bool:
    """Whether a driver was started; otherwise the handle only says how to find one."""
    return "pid" in handle or "address" in handle
