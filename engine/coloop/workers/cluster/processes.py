"""Ranks in processes beside the driver.

    driver, thread of the rank ──── work ────> process, main thread: the host's calls, one by one
    driver, whoever waits      ── control ───> process, second thread: how far, give up

Stop signals reach the driver alone, which asks its ranks; if it is gone, the sockets close and the
ranks end. Ranks without GPUs are forked (`fork_server`).
"""

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from coloop.workers.cluster.fork_server import ForkServer, RankHandle
from coloop.workers.cluster.ranks import RankEnded
from coloop.workers.messages import Poll
from coloop.workers.packing import Packed, pack, unpack
from coloop.workers.settings import HostSettings, environment_of

# What a process wrote before it ended, for the error that tells of it.

LINES = 12
LINE_BYTES = 400


def last_words_in(log: Path | None) -> Callable[[], str]:
    """What tells the end of what goes to a run's log from now on; None: nothing is kept."""
    begin = log.stat().st_size if log is not None and log.exists() else 0

    def told() -> str:
        lines: list[str] = []
        if log is not None and log.exists():
            with log.open("rb") as file:
                file.seek(max(begin, log.stat().st_size - LINES * LINE_BYTES))
                text = file.read().decode("utf-8", errors="replace")
            lines = [line for line in text.splitlines() if line.strip()][-LINES:]
        if not lines:
            return "it wrote no output"
        text = "".join(f"\n    {line}" for line in lines)
        return f"fix the error and run again; the end of {log}:{text}"

    return told


LOCALHOST = "127.0.0.1"
END_SECONDS = 10.0  # that a process may take to end in good order
END = "end"  # in place of a method: nothing more is asked
POLL, GIVE_UP = "poll", "give up"  # what is asked of a running call


class ProcessCrew:
    """The ranks of a pool, each in a process; see `Crew`."""

    def __init__(
        self,
        name: str,
        settings: Sequence[HostSettings],
        start: Callable[..., RankHandle],
        last_words: Callable[[], str],
    ) -> None:
        """`start`: gives a rank's process, by its number and its sockets."""
        self._number = 0
        self._ranks: list[RankProcess] = []
        try:
            for rank, own in enumerate(settings):
                process = partial(start, rank)
                self._ranks.append(RankProcess(f"pool-{name}-{rank}", own, process, last_words))
        except BaseException:
            self.kill()
            raise

    @property
    def size(self) -> int:
        return len(self._ranks)

    def address(self) -> str:
        return LOCALHOST

    def begin(self, method: str, arguments: tuple[Any, ...]) -> list[Future[Any]]:
        self._number += 1
        packed = pack(arguments)
        return [rank.begin(self._number, method, packed) for rank in self._ranks]

    def answer(self, ticket: Future[Any]) -> Any:
        return ticket.result()

    def polls(self) -> list[Poll | None]:
        return [rank.poll(self._number) for rank in self._ranks]

    def interrupt(self) -> None:
        for rank in self._ranks:
            rank.give_up(self._number)

    @property
    def has_ended(self) -> bool:
        return all(rank.process.poll() is not None for rank in self._ranks)

    def kill(self) -> None:
        for rank in self._ranks:
            rank.process.kill()
        for rank in self._ranks:
            rank.end(END_SECONDS)

    def close(self) -> None:
        self.interrupt()
        for rank in self._ranks:
            rank.ask_to_end()
        until = time.monotonic() + END_SECONDS
        for rank in self._ranks:
            rank.end(max(0.0, until - time.monotonic()))


class RankProcess:
    """One rank: its process, and the driver's thread that speaks with it."""

    def __init__(
        self,
        name: str,
        settings: HostSettings,
        start: Callable[..., RankHandle],
        last_words: Callable[[], str],
    ) -> None:
        self._work, work = _connection()
        self._control, control = _connection()
        self._last_words = last_words
        self._has_answered = False
        self._asked_for: int | None = None
        """The call whose progress was asked for, until there is an answer."""
        self._given_up = 0
        with work, control:
            self.process = start(work.fileno(), control.fileno())
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._thread.submit(self._work.send, settings)

    def begin(self, number: int, method: str, arguments: Packed) -> Future[Any]:
        """Ask for a call; the future holds its answer."""
        return self._thread.submit(self._call, number, method, arguments)

    def poll(self, number: int) -> Poll | None:
        """How far it is in this call, once it has said so; it is asked once at a time."""
        try:
            if self._asked_for is None:
                self._control.send((POLL, number))
                self._asked_for = number
            if not self._control.poll(0):
                return None
            asked_for, self._asked_for = self._asked_for, None
            poll: Poll = self._control.recv()
        except (OSError, EOFError):  # it has ended: who waits for its answer is told
            return None
        return poll if asked_for == number else None

    def give_up(self, number: int) -> None:
        """Ask it, once, to give up a call."""
        if self._given_up != number:
            self._given_up = number
            with suppress(OSError):
                self._control.send((GIVE_UP, number))

    def ask_to_end(self) -> None:
        with suppress(RuntimeError):  # it has ended before
            self._thread.submit(self._call, 0, END, pack(()))

    def end(self, seconds: float) -> None:
        """Wait for its end; it is killed after so many seconds."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            with suppress(subprocess.TimeoutExpired):  # who would say that it has ended hangs
                self.process.wait(END_SECONDS)
        if not self._work.closed:  # the thread may wait for an answer
            own = socket.socket(fileno=os.dup(self._work.fileno()))
            with own, suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._work.close()
        self._control.close()

    def _call(self, number: int, method: str, arguments: Packed) -> Any:
        try:
            send(self._work, (number, method), arguments)
            is_error, packed = receive(self._work)
        except (OSError, EOFError) as error:
            raise RankEnded(self._how_it_ended()) from error
        self._has_answered = True
        answer = unpack(packed)
        if is_error:
            raise answer
        return answer

    def _how_it_ended(self) -> str:
        try:
            code = self.process.wait(END_SECONDS)
            how = f"exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        except subprocess.TimeoutExpired:
            how = "it closed its connection"
        if self._has_answered:
            return how
        return f"{how}, before it answered; {self._last_words()}"


def send(connection: Connection, what: Any, packed: Packed) -> None:
    connection.send_bytes(pickle.dumps((what, packed.head, len(packed.buffers))))
    for buffer in packed.buffers:
        connection.send_bytes(memoryview(buffer).cast("B"))


def receive(connection: Connection) -> tuple[Any, Packed]:
    what, head, count = pickle.loads(connection.recv_bytes())
    return what, Packed(head=head, buffers=[connection.recv_bytes() for _ in range(count)])


def _connection() -> tuple[Connection, socket.socket]:
    ours, theirs = socket.socketpair()
    return Connection(ours.detach()), theirs


def start_fork_server(log: Path | None) -> ForkServer | None:
    """For the ranks of pools without GPUs; None where there is none and each loads for itself."""
    if sys.platform != "linux":
        return None
    return ForkServer(_environment(1, ""), str(log or os.devnull))


def start_alone(settings: HostSettings, gpu: str, *sockets: int) -> "subprocess.Popen[bytes]":
    """A rank's process without a fork server; what its libraries print goes to the run's log."""
    with open(settings.log or os.devnull, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "coloop.workers.cluster.rank_process", *map(str, sockets)],
            env=_environment(settings.threads, gpu),
            pass_fds=sockets,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _environment(threads: int, gpu: str) -> dict[str, str]:
    paths = [path for path in sys.path if path]
    return {
        **os.environ,
        **environment_of(threads),
        "PYTHONPATH": os.pathsep.join(paths),
        "CUDA_VISIBLE_DEVICES": gpu,
    }
