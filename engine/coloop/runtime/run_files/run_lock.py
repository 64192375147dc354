"""A run folder has one writer, which holds `run.lock` from before the first byte until after the
last.

    take ── flock(run.lock) ──> acquired? ── no ────────────────────────────> RunBusy
                                   │ yes
            whom does the file name? ── a process that may still be alive ──> RunBusy
                                   │ nobody, or a dead process
            write our name into it, and touch it every few seconds

The system releases a lock with its process, and a forked child closes its copy of the file. On file
systems without locks, or with locks per machine, the content of the file decides: of a process of
this machine, whether it is alive and wrote the line; of another machine, whether the file was
touched within `SILENT_SECONDS`. The file is never removed, as a lock on a removed file excludes
nobody.

Not detected, where locks do not work across machines: a holder that is suspended for longer than
that, and clocks that differ by more.
"""

import errno
import fcntl
import json
import os
import platform
import stat
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from coloop.errors import RunBusy

LOCK_FILE = "run.lock"
PATIENCE_SECONDS = 1.0
"""How long `take` waits for a lock that is held only briefly."""
LIFE_SIGN_SECONDS = 5.0
"""Between two touches of the file by its holder."""
SILENT_SECONDS = 60.0
"""A holder on another machine counts as dead if the file was not touched for this long."""
TURN_SECONDS = 0.05
SETTLE_SECONDS = 0.5
"""Without locks: pause between writing our name and reading it back, so that the last of several
writers wins."""
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
MOST_BYTES = 4096
FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    host: str
    pid: int
    """0: unknown."""
    started: int
    """Start of the process in clock ticks after the boot of its machine; 0: unknown."""
    since: str
    """UTC, ISO 8601."""
    kernel: str = ""
    """Identifies a boot of a machine."""
    pids: str = ""

    @property
    def words(self) -> str:
        who = f"process {self.pid} on {self.host}" if self.pid else "an unknown process"
        return f"{who}, since {self.since}" if self.since else who


class RunLock:
    """The lock of one run folder; also a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None
        self._sign: threading.Timer | None = None
        _locks.add(self)

    def __enter__(self) -> "RunLock":
        self.take()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def take(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Lock the folder, which must exist. Raises `RunBusy` if another process holds it; nothing
        was written."""
        assert self._file is None
        until = time.monotonic() + patience_seconds
        while True:
            try:
                self._file = _taken(self._folder)
                break
            except RunBusy:
                if time.monotonic() >= until:
                    raise
                time.sleep(TURN_SECONDS)
        self._sign_later(self._file)

    def release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            if self._sign is not None:
                self._sign.cancel()
            with suppress(OSError):
                os.ftruncate(file, 0)
            os.close(file)

    def _sign_later(self, file: int) -> None:
        if self._file == file:
            self._sign = threading.Timer(LIFE_SIGN_SECONDS, self._give_sign, [file])
            self._sign.name, self._sign.daemon = "run-lock", True
            self._sign.start()

    def _give_sign(self, file: int) -> None:
        with suppress(OSError):
            os.utime(self._folder / LOCK_FILE, follow_symlinks=False)
        self._sign_later(file)

    def forget(self) -> None:
        """Release the parent's lock in a forked child."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


_locks: "weakref.WeakSet[RunLock]" = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_locks):
        lock.forget()


os.register_at_fork(after_in_child=_forget_all)


def holder(folder: Path) -> Holder | None:
    """The writer of a run folder, or None. Writes nothing."""
    try:
        file = os.open(folder / LOCK_FILE, os.O_RDONLY | FLAGS)
    except FileNotFoundError:
        return None
    except OSError:
        return UNKNOWN
    try:
        named = _read(file)
        try:
            is_locked = _lock(file, fcntl.LOCK_SH)
        except BlockingIOError:
            return named or UNKNOWN
        return named if named is not None and _lives(named, file, is_locked) else None
    finally:
        os.close(file)


def patient_holder(folder: Path, patience_seconds: float = PATIENCE_SECONDS) -> Holder | None:
    """Like `holder`, but ignores a lock that is held only briefly."""
    until = time.monotonic() + patience_seconds
    while (current := holder(folder)) is not None and time.monotonic() < until:
        time.sleep(TURN_SECONDS)
    return current


def is_held(folder: Path) -> bool:
    return holder(folder) is not None


UNKNOWN = Holder(host="", pid=0, started=0, since="")


def _taken(folder: Path) -> int:
    path = folder / LOCK_FILE
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | FLAGS, 0o600)
    except OSError as error:
        raise RunBusy(
            f"{path} cannot be opened, so it is not known whether another process writes into the "
            f"run: {error.strerror}; make this user the owner of the folder"
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise RunBusy(f"{path} is not a file; remove it and try again")
        named = _read(file)
        try:
            is_locked = _lock(file, fcntl.LOCK_EX)
        except BlockingIOError:
            raise RunBusy(busy_words(folder, named or UNKNOWN)) from None
        named = _read(file)
        if named is not None and _lives(named, file, is_locked):
            raise RunBusy(busy_words(folder, named))
        if not _is_at(path, file):
            raise RunBusy(busy_words(folder, UNKNOWN))
        _write(file, is_locked)
        if not is_locked and not _is_still_ours(file):
            raise RunBusy(busy_words(folder, _read(file) or UNKNOWN))
    except BaseException:
        os.close(file)
        raise
    return file


def busy_words(folder: Path, by: Holder) -> str:
    """The writer of a run folder, and what to do."""
    stop = f"`kill -INT {by.pid}` there" if by.pid else "end it"
    return (
        f"{folder} is being written by another process: {by.words}. A run has one writer: stop "
        f"that one ({stop}, or on its page) or wait until it ends, then resume; nothing was "
        "written"
    )


def _lock(file: int, how: int) -> bool:
    """False if the file system has no locks. Raises `BlockingIOError` if another process holds the
    lock."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True


def _lives(named: Holder, file: int, is_locked: bool) -> bool:
    """Whether the process that the file names may still write. If the file is locked by us, no
    process of this machine holds it."""
    here = _own_name()
    if named.kernel == here.kernel:
        if is_locked:
            return False
        if named.pids == here.pids:
            return _is_running(named)
    return time.time() - os.fstat(file).st_mtime < SILENT_SECONDS


def _is_running(named: Holder) -> bool:
    try:
        os.kill(named.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    state, started = _state_of(named.pid)
    return state not in ("Z", "X") and started in (0, named.started)


def _state_of(pid: int) -> tuple[str, int]:
    """State and start of a process; ("", 0) if the system does not say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, ValueError, IndexError):
        return "", 0


def _own_name() -> Holder:
    since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Holder(
        host=platform.node(),
        pid=os.getpid(),
        started=_state_of(os.getpid())[1],
        since=since,
        kernel=_text_or_empty(Path("/proc/sys/kernel/random/boot_id").read_text) or platform.node(),
        pids=_text_or_empty(partial(os.readlink, "/proc/self/ns/pid")),
    )


def _text_or_empty(read: Callable[[], str]) -> str:
    try:
        return read().strip()
    except OSError:
        return ""


def _read(file: int) -> Holder | None:
    """The process that the file names; None if it names none."""
    try:
        line = json.loads(os.pread(file, MOST_BYTES, 0).partition(b"\n")[0])
        return Holder(**{name: type(value)(line[name]) for name, value in asdict(UNKNOWN).items()})
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _write(file: int, is_locked: bool) -> None:
    """Write our name; on a full disk it may be missing if the file is locked."""
    line = json.dumps(asdict(_own_name())).encode() + b"\n"
    try:
        os.pwrite(file, line, 0)
        os.ftruncate(file, len(line))
        os.fsync(file)
    except OSError as error:
        if not is_locked:
            raise RunBusy(f"the lock of the run cannot be written: {error}") from error


def _is_still_ours(file: int) -> bool:
    time.sleep(SETTLE_SECONDS)
    named, own = _read(file), _own_name()
    return named is not None and (named.kernel, named.pid) == (own.kernel, own.pid)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(file))
    except OSError:
        return False
