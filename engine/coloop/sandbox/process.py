"""A sandboxed process that runs one function of the user's code.

    Sandbox (this file)                     inside/ (another process and session)
      start ------ python, clean environment, two pipes --------> isolates itself, loads the code
      call  ------ rows as JSON, a random id --------------------> runs the function
            <----- scores, or an error and its row ---------------
      between calls the process is stopped
      after a timeout, a crash or an invalid answer it is killed; the next call starts a new one

A call returns or raises UserCodeError within its timeout, whatever the code does. While it waits,
`tick` is called; what that raises ends the process and the call. The process gets its code and the
rows, and has no descriptors but the two pipes. Answers are validated as if the code had written
them itself, which it can: a value of another type, a second answer, or one with another id ends the
process. Threads that share a sandbox use it while it is `held`.

The strongest isolation of the machine is used (`inside/isolation.py`). On a machine without any,
code only runs if its owner allows it (`COLOOP_ALLOW_UNSANDBOXED_CODE=yes`).
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

from coloop.errors import UserCodeError
from coloop.sandbox.exchange import LARGEST_REPLY, Ended, Forged, Late, Pipes, Ticked, TooLong
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.inside.values import is_score, is_written

CHILD: Final = Path(__file__).parent / "inside" / "__main__.py"
ALLOW_UNSANDBOXED: Final = "COLOOP_ALLOW_UNSANDBOXED_CODE"

DEFAULT_TIMEOUT_SECONDS: Final = 5.0
DEFAULT_MEMORY_MIB: Final = 512
START_TIMEOUT_SECONDS: Final = 30.0
LONGEST_PRINTED: Final = 65 * 1024
LONGEST_MESSAGE: Final = 8 * 1024
TURN_SECONDS: Final = 0.1
"""Interval of ticks of a thread that waits in `held`."""
END_SECONDS: Final = 10.0
"""Time that the watcher has to end after its worker was killed."""

ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",
    "LC_ALL": "C.UTF-8",
    "HOME": "/",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""All environment variables of the child. The hash seed makes sets iterate in a fixed order; some
libraries look for a home folder when they are imported."""


Scored = float | list[float | None] | None
"""A reward for one row: a number, one number per step, or None."""


class _Slow(UserCodeError):
    """The deadline passed without an answer."""


class Sandbox:
    """User code in an isolated process, which starts on first use, and again after it ended."""

    def __init__(
        self,
        source: str,
        *,
        function: str,
        node: str,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        memory_mib: int = DEFAULT_MEMORY_MIB,
        tick: Callable[[], None] | None = None,
        isolation: Isolation | None = None,
        is_ours: bool = False,
        modules: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            function: the name of the function to call.
            tick: called a few times a second while a call waits; it may raise.
            isolation: only this one; None: the strongest that the machine has.
            is_ours: the source is coloop's own; without isolation it may use `ctypes`.
            modules: by dotted name, sources of modules that the code may import besides the
                installed ones.
        """
        self.isolation = isolation
        self.is_ours = is_ours
        self.tick = tick
        self.source = source
        self.modules = dict(modules or {})
        self.function = function
        self.node = node
        self.timeout_seconds = timeout_seconds
        self.memory_mib = memory_mib
        self.printed = ""
        """What the last call printed, cut at 64 KiB."""
        self._untaken = ""
        self._of_untaken = threading.Lock()
        self.waited_seconds = 0.0
        """Duration of all exchanges so far, without pauses of the machine."""
        self._turn = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._worker: int | None = None
        """pidfd of the process that runs the code, a child of the watcher in `_process`."""
        self._pipes: Pipes | None = None

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process else None

    @contextmanager
    def held(self, tick: Callable[[], None]) -> Iterator[Self]:
        """Reserve the sandbox for this thread, with `tick` for its calls. Waits while another
        thread holds it; what `tick` raises ends the wait."""
        while not self._turn.acquire(timeout=TURN_SECONDS):
            tick()
        earlier, self.tick = self.tick, tick
        try:
            yield self
        finally:
            self.tick = earlier
            self._turn.release()

    def score(
        self, columns: Mapping[str, Sequence[Any]], count: int, *, seed: int = 0
    ) -> list[Scored]:
        """Scores by `reward(**columns)`, where each column has `count` values."""
        request = {"op": "score", "columns": columns, "count": count, "seed": seed}
        return self._call(request, is_score, count)

    def keep(
        self, rows: Sequence[Mapping[str, Any]], *, seeds: Sequence[int] | None = None
    ) -> list[bool]:
        """Results of `keep(**columns)`, called for each row with its own seed."""
        return self._each("keep", rows, seeds, lambda kept: isinstance(kept, bool))

    def write(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        seeds: Sequence[int] | None = None,
        cpu_seconds: float | None = None,
    ) -> list[dict[str, Any] | None]:
        """Results of the function, called for each row with its own seed: new columns, or None to
        remove the row. `cpu_seconds` limits the CPU time of a row; hostile code can lift this
        limit, but not the timeout."""
        return self._each("write", rows, seeds, is_written, cpu_seconds=cpu_seconds)

    def _each(
        self,
        op: str,
        rows: Sequence[Mapping[str, Any]],
        seeds: Sequence[int] | None,
        check: Callable[[Any], bool],
        *,
        cpu_seconds: float | None = None,
    ) -> list[Any]:
        own = list(seeds) if seeds is not None else [0] * len(rows)
        request = {"op": op, "rows": rows, "seeds": own, "cpu_seconds": cpu_seconds}
        return self._call(request, check, len(rows))

    def load(self) -> None:
        """Start the process, if it is not running, and load the code; raises UserCodeError."""
        if self._process is None:
            self._start()

    def take_printed(self) -> str:
        """What was printed since this method was last called, also while loading the code; cut at
        64 KiB. Thread-safe."""
        with self._of_untaken:
            printed, self._untaken = self._untaken, ""
        return printed

    def bare(self, error: UserCodeError) -> str:
        """The message of an error without the prefix of node and, if it is the first, row."""
        return str(error).removeprefix(f"{self.node}, row 0: ").removeprefix(f"{self.node}: ")

    def close(self) -> None:
        process, self._process = self._process, None
        worker, self._worker = self._worker, None
        pipes, self._pipes = self._pipes, None
        try:
            if worker is not None:
                with suppress(OSError):
                    signal.pidfd_send_signal(worker, signal.SIGKILL)
        finally:
            if pipes is not None:
                pipes.close()
            if worker is not None:
                os.close(worker)
        if process is not None:
            _end(process, is_told=worker is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(
        self, request: Mapping[str, Any], check: Callable[[Any], bool], count: int
    ) -> list[Any]:
        self.load()
        value = self._value(self._exchange(request, self.timeout_seconds), count)
        if isinstance(value, list) and len(value) == count and all(map(check, value)):
            return value
        self.close()
        raise self._error(f"did not return a list of {count} values of the expected type")

    def _start(self) -> None:
        """Start with the given or the strongest isolation; raises UserCodeError if that fails."""
        isolation = self.isolation
        if isolation is None:
            available = available_isolation()
            isolation = available.isolation
            allowed = os.environ.get(ALLOW_UNSANDBOXED, "").strip().lower() in ("yes", "true", "1")
            if isolation is Isolation.NONE and not allowed:
                raise self._error(
                    f"this machine has no sandbox for the Python of a loop ({available.reason}): "
                    "the code could read and change everything that you can. If you trust it, set "
                    f"{ALLOW_UNSANDBOXED}=yes"
                )
        try:
            self._begin(isolation)
        except BaseException:
            self.close()
            raise

    def _begin(self, isolation: Isolation) -> None:
        self._spawn(isolation)
        hello = self._exchange(None, START_TIMEOUT_SECONDS)
        self._ensure_stands(isolation, hello)
        if hasattr(os, "pidfd_open"):
            with suppress(ProcessLookupError):
                self._worker = os.pidfd_open(hello["worker"])
        load = {
            "op": "load",
            "source": self.source,
            "modules": self.modules,
            "function": self.function,
            "name": f"<{self.node}>",
            "is_ours": self.is_ours,
        }
        loaded = self._exchange(load, max(self.timeout_seconds, DEFAULT_TIMEOUT_SECONDS))
        self._ensure_stands(isolation, loaded)
        self._value(loaded)

    def _ensure_stands(self, isolation: Isolation, reply: Mapping[str, Any]) -> None:
        """Raise UserCodeError if the child reports that it could not isolate itself."""
        refused = _text(reply.get("refused"), LONGEST_MESSAGE)
        if refused:
            raise self._error(f"the sandbox `{isolation}` does not start here ({refused})")

    def _spawn(self, isolation: Isolation) -> None:
        paths = dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))
        request_read, to_child = os.pipe()
        try:
            from_child, reply_write = os.pipe()
        except OSError:
            os.close(request_read)
            os.close(to_child)
            raise
        self._pipes = Pipes(to_child, from_child)
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-s", "-S", "-B", str(CHILD)),
                    *(str(request_read), str(reply_write), str(self.memory_mib * 2**20)),
                    *(isolation.value, *paths),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(request_read, reply_write),
                close_fds=True,
                start_new_session=True,
                cwd="/",
                env=dict(ENVIRONMENT),
            )
        finally:
            os.close(request_read)
            os.close(reply_write)

    def _value(self, reply: Mapping[str, Any], count: int = 0) -> Any:
        self.printed = _text(reply.get("printed"), LONGEST_PRINTED)
        with self._of_untaken:
            self._untaken = (self._untaken + self.printed)[:LONGEST_PRINTED]
        if reply.get("ok") is True:
            return reply.get("value")
        row = reply.get("row")
        raise self._error(
            _text(reply.get("message"), LONGEST_MESSAGE) or "failed without a message",
            row=row if type(row) is int and 0 <= row < count else None,
            trace=_text(reply.get("trace"), LONGEST_MESSAGE) or None,
        )

    def _error(
        self, message: str, *, row: int | None = None, trace: str | None = None
    ) -> UserCodeError:
        where = f", row {row}" if row is not None else ""
        return UserCodeError(f"{self.node}{where}: {message}", self.node, row, trace)

    def _exchange(self, request: Mapping[str, Any] | None, seconds: float) -> dict[str, Any]:
        """Send a request (None: only wait) and return the reply; a failure ends the process."""
        assert self._pipes is not None
        pipes = self._pipes
        number = secrets.token_hex(8) if request is not None else None
        self._pipes.begin(self.tick, seconds)
        try:
            if request is not None:
                if self._pipes.has_answer():
                    raise Forged
                payload = json.dumps({**request, "id": number}, default=_plain)
                self._tell(signal.SIGCONT)
                self._pipes.send(payload.encode())
            reply = self._pipes.receive()
            if reply.get("id") != number:
                raise Forged
            self._tell(signal.SIGSTOP)
            return reply
        except Late:
            self.close()
            message = f"{self.node}: did not answer within {seconds:g} seconds and was stopped"
            raise _Slow(message, self.node) from None
        except TooLong:
            message = f"returned more than {LARGEST_REPLY // 2**20} MiB or too many values"
        except Forged:
            message = "sent an invalid response, out of turn or unreadable, and was stopped"
        except Ended:
            message = self._how_it_ended()
        except Ticked as ticked:
            self.close()
            raise ticked.error from None
        except BaseException:
            self.close()
            raise
        finally:
            self.waited_seconds += pipes.spent()
        self.close()
        raise self._error(message)

    def _tell(self, number: signal.Signals) -> None:
        """Send a signal to the worker: between calls it is stopped, with all its threads."""
        if self._worker is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._worker, number)

    def _how_it_ended(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        if code >= 0:
            return f"ended its process (os._exit({code}))"
        known = -code in set(signal.Signals)
        name = signal.Signals(-code).name if known else f"signal {-code}"
        hint = {
            "SIGXCPU": ": it used too much CPU time",
            "SIGSEGV": ": it crashed, often by endless recursion",
            "SIGKILL": ": it was killed, often because memory ran out",
        }.get(name, "")
        return f"its process ended by {name}{hint}"


def _end(process: subprocess.Popen[bytes], *, is_told: bool) -> None:
    """Wait for the watcher, which ends after its worker. Kill their process group if the worker was
    not killed before, or the watcher does not end in END_SECONDS."""
    if process.poll() is not None:
        return
    if is_told:
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
            return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(value: Any, most: int) -> str:
    """A text cut at `most` characters, made valid for UTF-8; empty for other values."""
    kept = value[:most] if isinstance(value, str) else ""
    return kept.encode("utf-8", "replace").decode("utf-8")


def _plain(value: Any) -> Any:
    """Replaces a value that JSON lacks: mappings by dicts, sets by lists, others by their text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class AvailableIsolation:
    isolation: Isolation
    """The strongest isolation that worked when tried."""
    reason: str = ""
    """Why stronger ones do not work here; empty if there are none."""


@cache
def available_isolation() -> AvailableIsolation:
    """The strongest isolation of this machine, tried once per process. Raises UserCodeError if an
    attempt times out, rather than use a weaker one."""
    reasons: list[str] = []
    for isolation in (Isolation.NAMESPACES, Isolation.CALLS):
        code = "def keep(**columns): return True"
        try:
            with Sandbox(code, function="keep", node="probe", isolation=isolation) as probe:
                probe.keep([{}])
            return AvailableIsolation(isolation, "; ".join(reasons))
        except _Slow:
            raise
        except UserCodeError as error:
            reasons.append(str(error))
    return AvailableIsolation(Isolation.NONE, "; ".join(reasons))


@dataclass(frozen=True, slots=True)
class IsolationWords:
    """Describes an isolation to users."""

    holds: str
    """What it prevents."""
    remains: str
    """What it does not prevent."""


WORDS: Final[Mapping[Isolation, IsolationWords]] = {
    Isolation.NAMESPACES: IsolationWords(
        holds=(
            "its file system has only Python's libraries, read-only; it has no network and sees no "
            "other processes or users; it can only make the system calls that computation needs"
        ),
        remains="it can read installed packages, and use cores and memory until its deadline",
    ),
    Isolation.CALLS: IsolationWords(
        holds=(
            "once the modules that it names are imported, it can make no system call that takes a "
            "path, a socket, a program or another process"
        ),
        remains=(
            "it sees the host name and its own process id; modules that are imported later are "
            "refused, so import them at the top"
        ),
    ),
    Isolation.NONE: IsolationWords(
        holds="mistakes are caught and memory is limited",
        remains=(
            "malicious code can read and change everything that you can; it runs only with "
            "COLOOP_ALLOW_UNSANDBOXED_CODE=yes"
        ),
    ),
}
