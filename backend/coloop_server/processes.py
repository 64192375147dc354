"""Our own processes: distinguished from later ones with the same id, and ended only by id."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from coloop_server.private import open_plain

SECRETS = ("COLOOP_TOKEN", "COLOOP_DATABASE_URL")
LAUNCH = "COLOOP_LAUNCH"
"""Environment variable with the mark of a launch, by which its processes are found."""
MARK_OPTION = "--launch"
PRIVATE_UMASK = 0o077


def identity(pid: int) -> str | None:
    """Start time of the process, in the system's format; None if it has ended or is a zombie."""
    if sys.platform == "linux":
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in ("Z", "X") else fields[19]
    shown = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return None if not shown or shown.startswith("Z") else shown.partition(" ")[2].strip()


def is_same(pid: int, started: str) -> bool:
    """Whether the process with this id and start time still runs."""
    return identity(pid) == started


def end_group(pid: int, started: str, *, seconds: float) -> None:
    """Ask a process and its session to end, then kill them."""
    if not is_same(pid, started):
        return
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
        tell(pid, number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if not is_same(pid, started):
                if number == signal.SIGTERM:
                    tell_group(pid, signal.SIGKILL)  # what it left behind in its session
                return
            time.sleep(0.05)


def tell(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def tell_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def of_launch(handle: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Number and start time of the processes of a launch, the first one's first.

    Its mark stands in their environment. One that hides its own is known by the mark or the run's
    id in its command line, or as a member of the session that the driver leads or led.

    Args:
        handle: has `mark` and `run_id`; `pid` and `started` of the driver where they are known.
    """
    mark = f"{LAUNCH}={handle['mark']}".encode()
    named = {
        (MARK_OPTION.encode(), str(handle["mark"]).encode()),
        (b"--run-id", str(handle["run_id"]).encode()),
    }
    leader = handle.get("pid")
    is_led = leader is not None and identity(leader) in (None, handle["started"])
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        is_ours = mark in words_of(entry / "environ")
        is_ours = is_ours or not named.isdisjoint(pairwise(words_of(entry / "cmdline")))
        if not is_ours and is_led:
            with contextlib.suppress(OSError):
                is_ours = os.getsid(pid) == leader
        if is_ours and pid != os.getpid() and (started := identity(pid)) is not None:
            processes.append((pid, started))
    return sorted(processes, key=lambda process: (int(process[1]), process[0]))


def words_of(file: Path) -> list[bytes]:
    """NUL-separated words of a file in /proc; empty if the process has ended or hides it."""
    try:
        return file.read_bytes().split(b"\0")
    except OSError:
        return []


def end_launch(handle: Mapping[str, Any], *, seconds: float) -> bool:
    """Kill what is left of a launch; returns whether nothing is left."""
    deadline = time.monotonic() + seconds
    while left := of_launch(handle):
        for pid, started in left:
            if is_same(pid, started):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def of_a_launch(mark: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `Popen` for a driver: it has its own session and is found by its mark.

    Args:
        environment: besides the server's own.
    """
    return {
        "env": child_environment(**environment, **{LAUNCH: mark}),
        "start_new_session": True,
        "umask": PRIVATE_UMASK,
    }


def child_environment(**extra: str) -> dict[str, str]:
    """The server's environment without its secrets."""
    kept = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return {**kept, "PYTHONUNBUFFERED": "1", **extra}


def last_words(log: Path, lines: int = 15, limit: int = 3000) -> str:
    """The end of a log, for the message about a process that died."""
    try:
        with open_plain(log) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4 * limit))
            text = file.read(4 * limit).decode("utf-8", "replace")
    except OSError:
        return ""
    kept = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(kept)[-limit:]
