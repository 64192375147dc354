"""A limited process that runs one function of the user's, and answers within a deadline or is
replaced.

    Sandbox (here)                          child.py (its own process and session)
      start ------ python, clean environment, two pipes --------> limits itself, loads the code
      call  ------ rows as JSON, prlimit on CPU time -----------> runs the function
            <----- scores, or what is wrong with which row ------
      late, dead, or too long an answer: killed by its id; the next call starts a new one

Invariants: a call returns or raises UserCodeError within its timeout, whatever the code does. While
it waits it ticks; what the tick raises ends the child and the call. The child gets nothing but its
own code and the rows; it holds no descriptor of ours but the two pipes.
"""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from coloop.errors import UserCodeError

CHILD: Final = Path(__file__).with_name("child.py")

DEFAULT_TIMEOUT_SECONDS: Final = 5.0
DEFAULT_MEMORY_MIB: Final = 512
START_TIMEOUT_SECONDS: Final = 30.0
LARGEST_REPLY: Final = 17 * 2**20
CHUNK: Final = 1 << 16
TICK_SECONDS: Final = 0.1

ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""All that the child sees of the environment. The fixed hash seed makes sets iterate alike."""


Scored = float | list[float | None] | None
"""What a reward says of a row: a number, one number a step, or nothing."""


class _Ended(Exception):
    """The child closed its pipe."""


class _Late(Exception):
    """The deadline is over."""


class _TooLong(Exception):
    """The reply is longer than any honest one."""


class Sandbox:
    """One user's code in a process of its own; starts on first use and again after a death."""

    def __init__(
        self,
        source: str,
        *,
        function: str,
        node: str,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        memory_mib: int = DEFAULT_MEMORY_MIB,
        tick: Callable[[], None] | None = None,
    ) -> None:
        """
        Args:
            tick: called a few times a second while an answer is waited for; it may raise.
        """
        self.tick = tick
        self.source = source
        self.function = function
        self.node = node
        self.timeout_seconds = timeout_seconds
        self.memory_mib = memory_mib
        self.printed = ""
        """What the last call printed, cut at 64 KiB."""
        self._process: subprocess.Popen[bytes] | None = None
        self._to_child = -1
        self._from_child = -1

    @property
    def process_id(self) -> int | None:
        """The child's process id while there is one."""
        return self._process.pid if self._process else None

    def score(
        self, columns: Mapping[str, Sequence[Any]], count: int, *, seed: int = 0
    ) -> list[Scored]:
        """`reward(prompts, completions, **columns)` on rows given as columns of equal length."""
        request = {"op": "score", "columns": columns, "count": count, "seed": seed}
        scores: list[float | list[float | None] | None] = self._call(request, count)
        return scores

    def keep(
        self, rows: Sequence[Mapping[str, Any]], *, seeds: Sequence[int] | None = None
    ) -> list[bool]:
        """`keep(**columns)` of each row, which draws by its own seed."""
        kept: list[bool] = self._each("keep", rows, seeds)
        return kept

    def write(
        self, rows: Sequence[Mapping[str, Any]], *, seeds: Sequence[int] | None = None
    ) -> list[dict[str, Any] | None]:
        """`write(**columns)` of each row, which draws by its own seed: new columns, or None where
        the row is cut."""
        written: list[dict[str, Any] | None] = self._each("write", rows, seeds)
        return written

    def _each(
        self, op: str, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int] | None
    ) -> list[Any]:
        own = list(seeds) if seeds is not None else [0] * len(rows)
        answered: list[Any] = self._call({"op": op, "rows": rows, "seeds": own}, len(rows))
        return answered

    def load(self) -> None:
        """Start the child and run the code's top level; raises what is wrong with it."""
        if self._process is None:
            self._start()

    def close(self) -> None:
        """End the child and everything it started."""
        process, self._process = self._process, None
        if process is None:
            return
        for descriptor in (self._to_child, self._from_child):
            os.close(descriptor)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
        process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, request: Mapping[str, Any], count: int) -> Any:
        self.load()
        reply = self._exchange(request, self.timeout_seconds)
        value = self._value(reply)
        if not isinstance(value, list) or len(value) != count:
            raise self._error(f"answered with no list of {count} values")
        return value

    def _start(self) -> None:
        request_read, self._to_child = os.pipe()
        self._from_child, reply_write = os.pipe()
        paths = dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-s", "-S", "-B", str(CHILD)),
                    *(str(request_read), str(reply_write), str(self.memory_mib * 2**20)),
                    *paths,
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
        except OSError:
            os.close(self._to_child)
            os.close(self._from_child)
            raise
        finally:
            os.close(request_read)
            os.close(reply_write)
        os.set_blocking(self._to_child, False)
        self._exchange(None, START_TIMEOUT_SECONDS)
        load = {
            "op": "load",
            "source": self.source,
            "function": self.function,
            "name": f"<{self.node}>",
        }
        reply = self._exchange(load, max(self.timeout_seconds, DEFAULT_TIMEOUT_SECONDS))
        try:
            self._value(reply)
        except UserCodeError:
            self.close()
            raise

    def _value(self, reply: Mapping[str, Any]) -> Any:
        self.printed = str(reply.get("printed", ""))
        if reply.get("ok"):
            return reply.get("value")
        row = reply.get("row")
        trace = reply.get("trace")
        raise self._error(
            str(reply.get("message")),
            row=row if isinstance(row, int) else None,
            trace=str(trace) if trace else None,
        )

    def _error(
        self, message: str, *, row: int | None = None, trace: str | None = None
    ) -> UserCodeError:
        where = f", row {row}" if row is not None else ""
        return UserCodeError(f"{self.node}{where}: {message}", self.node, row, trace)

    def _exchange(self, request: Mapping[str, Any] | None, seconds: float) -> dict[str, Any]:
        """Send a request (None: only wait) and get the reply, or end the child and say why."""
        deadline = time.monotonic() + seconds
        try:
            if request is not None:
                self._allow_cpu(seconds)
                self._send(json.dumps(request, default=_plain).encode(), deadline)
            return self._receive(deadline)
        except _Late:
            message = f"did not answer within {seconds:g} seconds and was stopped"
        except _TooLong:
            message = f"answered with more than {LARGEST_REPLY // 2**20} MiB"
        except (_Ended, OSError, ValueError):
            message = self._how_it_ended()
        except BaseException:
            self.close()
            raise
        self.close()
        raise self._error(message)

    def _allow_cpu(self, seconds: float) -> None:
        """CPU time up to a bit more than the deadline, so that an orphan ends by itself."""
        assert self._process is not None
        if not hasattr(resource, "prlimit"):
            return
        times = Path(f"/proc/{self._process.pid}/stat").read_text(
            encoding="ascii", errors="replace"
        )
        fields = times.rpartition(")")[2].split()
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        limit = int(used + seconds) + 2
        _, hard = resource.prlimit(self._process.pid, resource.RLIMIT_CPU)
        resource.prlimit(self._process.pid, resource.RLIMIT_CPU, (limit, hard))

    def _how_it_ended(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        if code >= 0:
            return f"ended its process (os._exit({code}))"
        name = signal.Signals(-code).name
        hint = {
            "SIGXCPU": ": it used too much CPU time",
            "SIGSEGV": ": it crashed, often by endless recursion",
            "SIGKILL": ": it was killed, often for memory",
        }.get(name, "")
        return f"its process ended by {name}{hint}"

    def _send(self, payload: bytes, deadline: float) -> None:
        left = memoryview(len(payload).to_bytes(8, "big") + payload)
        while left:
            self._wait([], [self._to_child], deadline)
            try:
                left = left[os.write(self._to_child, left[: CHUNK * 16]) :]
            except BrokenPipeError:
                raise _Ended from None

    def _receive(self, deadline: float) -> dict[str, Any]:
        length = int.from_bytes(self._read(8, deadline), "big")
        if length > LARGEST_REPLY:
            raise _TooLong
        reply = json.loads(self._read(length, deadline))
        if not isinstance(reply, dict):
            raise ValueError("no reply")
        return reply

    def _read(self, count: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while count:
            self._wait([self._from_child], [], deadline)
            part = os.read(self._from_child, min(count, CHUNK * 16))
            if not part:
                raise _Ended
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _wait(self, reads: Sequence[int], writes: Sequence[int], deadline: float) -> None:
        """Until a pipe is ready; raises `_Late` after the deadline, and what the tick raises."""
        while (left := deadline - time.monotonic()) > 0:
            readable, writable, _ = select.select(reads, writes, [], min(left, TICK_SECONDS))
            if readable or writable:
                return
            if self.tick is not None:
                self.tick()
        raise _Late


def _plain(value: Any) -> Any:
    """A value that JSON lacks, as text: user code sees what it is, not the object."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)
