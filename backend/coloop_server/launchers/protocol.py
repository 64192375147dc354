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
    """A run could not be started; the message is for the person who started it."""

    code = "run.not_started"
    hint: str | None = None
    log: str | None = None
    """The end of the log of what did not start."""


class RayFailed(LaunchFailed):
    """The server's own Ray did not start on this machine, or ended before it took the job."""

    code = "run.ray_not_started"
    hint = "Run it in one process instead: that needs no Ray."

    def __init__(self, message: str, log: str | None = None) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run to start. Every field is the server's own making, none is typed by a user."""

    run_id: str
    attempt: int
    spec: Path
    folder: Path
    log: Path
    """Where the driver's own output goes until its run folder has an `engine.log`."""
    root: Path
    """Folder from which relative paths in the spec are read."""
    resume: str | None
    force: bool
    tell: Callable[[str], None]
    """Says what the launcher is busy with, while starting takes long."""

    def options(self) -> list[str]:
        """The options of `coloop run` that every launcher gives."""
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
    """How it ended, where that is known; why nobody could be asked, where nothing was reached."""
    is_reached: bool = True
    """False where what runs the driver gave no answer: then nothing is known, and it counts as
    alive."""


def is_whole(handle: Handle) -> bool:
    """Whether a driver was started for it; else it says only how to find one."""
    return "pid" in handle or "address" in handle
