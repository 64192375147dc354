"""What is left of a Ray when its driver is killed, and the process that ends it:
`python ray_remains.py DRIVER ROOT [SESSION...]`.

    driver ── a pipe, before ray.init ──> this process, in a session of its own: waits for its end
       └── ray.init ──> gcs, raylet ──> agents, workers <── SIGKILL, by number ──┘

Ray's agents and workers may outlive its driver. A process belongs to a Ray whose logs it writes,
but for the driver and its forks (logs with its number at the end); a session is the driver's by its
name, which ends in the number of the process that began it.

Standard library alone, to start at once. Without /proc nothing is watched.
"""

import os
import re
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

KILL_TRIES = 200
PAUSE_SECONDS = 0.05


class RayWatcher:
    """Whatever this process begins in Ray's folder ends with it, however it ends."""

    def __init__(self, root: Path) -> None:
        """`root`: the folder of Ray's sessions."""
        self._process: subprocess.Popen[bytes] | None = None
        if not Path("/proc/self/fd").is_dir():
            return
        driver = os.getpid()
        before = [path.name for path in root.glob(f"session_*_{driver}")]
        self._process = subprocess.Popen(
            [*(sys.executable, "-I", "-S", __file__), *(str(driver), str(root), *before)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env={},
        )
        _watchers.add(self)

    def end(self) -> None:
        """Once this process has ended its Ray itself: returns when nothing is left of it."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def forget(self) -> None:
        """In a forked child: the Ray is the parent's."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process = None


_watchers: "weakref.WeakSet[RayWatcher]" = weakref.WeakSet()


def _forget_all() -> None:
    for watcher in list(_watchers):
        watcher.forget()


os.register_at_fork(after_in_child=_forget_all)


def main() -> None:
    driver, root, *before = sys.argv[1:]
    sys.stdin.buffer.read()  # nothing is ever sent: it ends with the driver
    end_writers(sessions_of(int(driver), os.path.realpath(root), before))


def sessions_of(driver: int, root: str, before: list[str]) -> Callable[[str], bool]:
    """Whether a file lies in a session of the driver that is not its own log, which it keeps open.
    `before`: sessions of another process with the driver's number."""
    own = re.compile(rf"{re.escape(root)}/(session_[^/]*_{driver})/")
    of_driver = re.compile(rf"_{driver}(\.\d+)?\.log( \(deleted\))?\Z")

    def is_own(path: str) -> bool:
        session = own.match(path)
        return session is not None and session[1] not in before and not of_driver.search(path)

    return is_own


def end_writers(is_own: Callable[[str], bool]) -> None:
    """End every process that writes into such a file."""
    for _ in range(KILL_TRIES):  # one that ends may just have started another
        numbers = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
        if not [pid for pid in numbers if end_writer(pid, is_own)]:
            return
        time.sleep(PAUSE_SECONDS)


def end_writer(pid: int, is_own: Callable[[str], bool]) -> bool:
    """Whether it was one. It is held meanwhile, so that no later process of its number is met."""
    try:
        held = hold(pid)
    except OSError:  # it has just ended
        return False
    try:
        if not writes(pid, is_own):
            return False
        if held is None:
            os.kill(pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(held, signal.SIGKILL)
        return True
    except OSError:  # it has just ended, or is somebody else's
        return False
    finally:
        if held is not None:
            os.close(held)


def hold(pid: int) -> int | None:
    """A descriptor of the process; None where the system has none."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:
        return None


def writes(pid: int, is_own: Callable[[str], bool]) -> bool:
    """Whether a process has such a file open for writing."""
    process = f"/proc/{pid}"
    for number in os.listdir(f"{process}/fd"):
        with suppress(OSError):  # it was closed meanwhile
            if is_own(os.readlink(f"{process}/fd/{number}")):
                told = Path(f"{process}/fdinfo/{number}").read_text(encoding="ascii")
                flags = int(told.partition("flags:")[2].split()[0], 8)
                if flags & os.O_ACCMODE != os.O_RDONLY:
                    return True
    return False


if __name__ == "__main__":
    main()
