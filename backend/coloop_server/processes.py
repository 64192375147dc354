"""Processes of our own: told apart from later ones of the same number, and ended by number only."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SECRETS = ("COLOOP_TOKEN", "COLOOP_DATABASE_URL")


def identity(pid: int) -> str | None:
    """When the process started, as the system counts it; None when it is gone or only a zombie."""
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
    """Whether the process that had this number when `started` was noted still runs."""
    return identity(pid) == started


def end_group(pid: int, started: str, *, seconds: float) -> None:
    """Ask a process, and the session that it leads, to end, then insist."""
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


def child_environment(**extra: str) -> dict[str, str]:
    """The server's environment without its secrets."""
    kept = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return {**kept, "PYTHONUNBUFFERED": "1", **extra}


def last_words(log: Path, lines: int = 15, limit: int = 3000) -> str:
    """The end of a log, for the message about a process that died."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4 * limit))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    kept = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(kept)[-limit:]
