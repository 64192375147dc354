"""A limited process that runs one function of the user's, and answers within a deadline or is
replaced.

    Sandbox (here)                          inside/ (its own process and session)
      start ------ python, clean environment, two pipes --------> builds the wall, loads the code
      call  ------ rows as JSON, a number drawn now ------------> runs the function
            <----- scores, or what is wrong with which row ------
      between calls the code stands still
      late, dead, or too long an answer: killed by its id; the next call starts a new one

Invariants: a call returns or raises UserCodeError within its timeout, whatever the code does. While
it waits it ticks; what the tick raises ends the child and the call. The child gets nothing but its
own code and the rows; it holds no descriptor of ours but the two pipes. Every answer is looked at
as if the code had written it itself, which it can: a value of another kind, a second answer or one
to another request ends the child.

The strongest wall that the machine gives is taken (`inside/walls.py`). Where it gives none, code
runs only where the machine's owner said so (`COLOOP_CODE_WITHOUT_WALL=yes`).
"""

import json
import math
import os
import secrets
import select
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from coloop.errors import UserCodeError
from coloop.sandbox.inside.walls import Wall

CHILD: Final = Path(__file__).parent / "inside" / "__main__.py"
WITHOUT_WALL: Final = "COLOOP_CODE_WITHOUT_WALL"

DEFAULT_TIMEOUT_SECONDS: Final = 5.0
DEFAULT_MEMORY_MIB: Final = 512
START_TIMEOUT_SECONDS: Final = 30.0
LARGEST_REPLY: Final = 17 * 2**20
LONGEST_PRINTED: Final = 65 * 1024
LONGEST_MESSAGE: Final = 8 * 1024
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


class _NoWall(Exception):
    """This machine does not give the wall; says why."""


class _Forged(Exception):
    """The reply is none that the harness writes."""


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
        wall: Wall | None = None,
    ) -> None:
        """
        Args:
            tick: called a few times a second while an answer is waited for; it may raise.
            wall: this one and no other; None: the strongest that the machine gives.
        """
        self.wall = wall
        self.tick = tick
        self.source = source
        self.function = function
        self.node = node
        self.timeout_seconds = timeout_seconds
        self.memory_mib = memory_mib
        self.printed = ""
        """What the last call printed, cut at 64 KiB."""
        self._process: subprocess.Popen[bytes] | None = None
        self._worker = -1
        """A descriptor of the process that runs the code, which is not its watcher."""
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
        scores: list[Scored] = self._call(request, _is_score, count)
        return scores

    def keep(
        self, rows: Sequence[Mapping[str, Any]], *, seeds: Sequence[int] | None = None
    ) -> list[bool]:
        """`keep(**columns)` of each row, which draws by its own seed."""
        kept: list[bool] = self._each("keep", rows, seeds, lambda one: isinstance(one, bool))
        return kept

    def write(
        self, rows: Sequence[Mapping[str, Any]], *, seeds: Sequence[int] | None = None
    ) -> list[dict[str, Any] | None]:
        """`write(**columns)` of each row, which draws by its own seed: new columns, or None where
        the row is cut."""
        written: list[dict[str, Any] | None] = self._each(
            "write", rows, seeds, lambda one: one is None or isinstance(one, dict)
        )
        return written

    def _each(
        self,
        op: str,
        rows: Sequence[Mapping[str, Any]],
        seeds: Sequence[int] | None,
        check: Callable[[Any], bool],
    ) -> list[Any]:
        own = list(seeds) if seeds is not None else [0] * len(rows)
        request = {"op": op, "rows": rows, "seeds": own}
        answered: list[Any] = self._call(request, check, len(rows))
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
        for descriptor in (self._to_child, self._from_child, self._worker):
            if descriptor >= 0:
                os.close(descriptor)
        self._worker = -1
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

    def _call(self, request: Mapping[str, Any], check: Callable[[Any], bool], count: int) -> Any:
        self.load()
        value = self._value(self._exchange(request, self.timeout_seconds))
        if isinstance(value, list) and len(value) == count and all(map(check, value)):
            return value
        self.close()
        raise self._error(f"answered with no list of {count} values of its kind")

    def _start(self) -> None:
        """Behind the strongest wall; a weaker one is tried only before the code was sent."""
        walls = [self.wall] if self.wall is not None else _from(wall_here().wall)
        reasons = []
        for wall in walls:
            if wall is Wall.NONE and self.wall is None and not _allows_no_wall():
                break
            try:
                self._begin(wall)
                return
            except _NoWall as error:
                reasons.append(str(error))
        raise self._error(_no_wall_words(reasons or [wall_here().reason]))

    def _begin(self, wall: Wall) -> None:
        self._spawn(wall)
        hello = self._exchange(None, START_TIMEOUT_SECONDS)
        if not hello.get("ok"):
            self.close()
            raise _NoWall(f"{wall}: {hello.get('refused')}")
        if hasattr(os, "pidfd_open"):
            with suppress(ProcessLookupError):
                self._worker = os.pidfd_open(hello["worker"])
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

    def _spawn(self, wall: Wall) -> None:
        request_read, self._to_child = os.pipe()
        self._from_child, reply_write = os.pipe()
        paths = dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-s", "-S", "-B", str(CHILD)),
                    *(str(request_read), str(reply_write), str(self.memory_mib * 2**20)),
                    *(wall.value, *paths),
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

    def _value(self, reply: Mapping[str, Any]) -> Any:
        self.printed = str(reply.get("printed", ""))[:LONGEST_PRINTED]
        if reply.get("ok") is True:
            return reply.get("value")
        row = reply.get("row")
        trace = reply.get("trace")
        raise self._error(
            str(reply.get("message"))[:LONGEST_MESSAGE],
            row=row if type(row) is int and row >= 0 else None,
            trace=str(trace)[:LONGEST_MESSAGE] if trace else None,
        )

    def _error(
        self, message: str, *, row: int | None = None, trace: str | None = None
    ) -> UserCodeError:
        where = f", row {row}" if row is not None else ""
        return UserCodeError(f"{self.node}{where}: {message}", self.node, row, trace)

    def _exchange(self, request: Mapping[str, Any] | None, seconds: float) -> dict[str, Any]:
        """Send a request (None: only wait) and get the reply, or end the child and say why."""
        deadline = time.monotonic() + seconds
        number = secrets.token_hex(8) if request is not None else None
        try:
            if request is not None:
                if self._has_answer():
                    raise _Forged
                payload = json.dumps({**request, "id": number}, default=_plain)
                self._tell(signal.SIGCONT)
                self._send(payload.encode(), deadline)
            reply = self._receive(deadline)
            if reply.get("id") != number:
                raise _Forged
            self._tell(signal.SIGSTOP)
            return reply
        except _Late:
            message = f"did not answer within {seconds:g} seconds and was stopped"
        except _TooLong:
            message = f"answered with more than {LARGEST_REPLY // 2**20} MiB"
        except (_Forged, ValueError, RecursionError):
            message = "wrote an answer of its own, out of turn or unreadable, and was stopped"
        except (_Ended, OSError):
            message = self._how_it_ended()
        except BaseException:
            self.close()
            raise
        self.close()
        raise self._error(message)

    def _tell(self, number: signal.Signals) -> None:
        """Between calls the code stands still, with all threads that it may have left."""
        if self._worker >= 0:
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
        reply = json.loads(self._read(length, deadline), parse_constant=_no_constant)
        if not isinstance(reply, dict):
            raise _Forged
        return reply

    def _has_answer(self) -> bool:
        """Whether there is something to read though nothing was asked."""
        return bool(select.select([self._from_child], [], [], 0)[0])

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


def _is_score(value: Any) -> bool:
    """Whether this is what the harness makes of a score: finite, one number or one a step."""
    if isinstance(value, list):
        return all(one is None or _is_number(one) for one in value)
    return value is None or _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _from(wall: Wall) -> list[Wall]:
    """This wall and the weaker ones, the strongest first."""
    walls = list(Wall)
    return walls[walls.index(wall) :]


def _allows_no_wall() -> bool:
    return os.environ.get(WITHOUT_WALL, "").strip().lower() in ("yes", "true", "1")


def _no_wall_words(reasons: Sequence[str]) -> str:
    return (
        "this machine has no wall to run Python of a loop behind "
        f"({'; '.join(reason for reason in reasons if reason)}): that code could read and change "
        f"whatever you can. If you trust it, set {WITHOUT_WALL}=yes"
    )


def _plain(value: Any) -> Any:
    """A value that JSON lacks, as text: user code sees what it is, not the object."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class WallHere:
    """What this machine gives."""

    wall: Wall
    """The strongest that stood when it was tried."""
    reason: str = ""
    """Why stronger ones did not."""


@cache
def wall_here() -> WallHere:
    """Tried once in each process, with code of our own."""
    reasons: list[str] = []
    for wall in (Wall.NAMESPACES, Wall.CALLS):
        probe = Sandbox(
            "def keep(**columns): return True", function="keep", node="probe", wall=wall
        )
        with probe:
            try:
                if probe.keep([{}]) == [True]:
                    return WallHere(wall, "; ".join(reasons))
            except UserCodeError as error:
                reasons.append(str(error))
    return WallHere(Wall.NONE, "; ".join(reasons))
