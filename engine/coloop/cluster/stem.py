"""The process from which the ranks of a pool on this machine stem: it loads once what they compute
with, and each of them begins as a copy of it.

    driver ── two sockets of a rank ──> stem ── fork ──> rank: the host's calls, one by one
           <── began, ended ─────────

What was loaded lies in memory once for all ranks, until one of them changes a page of it, and a
rank begins at once. A stem does nothing else and ends when the driver does.
"""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Protocol


class RankHandle(Protocol):
    """The process of a rank, as `subprocess.Popen` has it."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended; raises `subprocess.TimeoutExpired`."""
        ...

    def kill(self) -> None: ...


class Stem:
    """The driver's side."""

    def __init__(self, environment: dict[str, str], log: str) -> None:
        """
        Args:
            environment: in which it loads, and which its ranks have.
            log: to which goes what libraries print.
        """
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ranks: list[Copied] = []
        with theirs, open(log, "ab") as out:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "coloop.cluster.stem_process"),
                    str(theirs.fileno()),
                ],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, name="stem", daemon=True)
        self._listener.start()

    def start(self, *sockets: int) -> "Copied":
        """A rank that speaks over these sockets; it may begin later."""
        rank = Copied(self)
        self._ranks.append(rank)
        number = str(len(self._ranks) - 1).encode()
        try:
            socket.send_fds(self._orders, [number], sockets)
        except OSError:
            rank.orphaned(self._process.wait())
        return rank

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it; ranks that it has not started never begin."""
        self._process.kill()

    def close(self) -> None:
        """End it, after its ranks."""
        self.kill()
        self._listener.join()
        self._orders.close()

    def _listen(self) -> None:
        """Note what it tells of its ranks; whose stem is gone is ended, as nobody would hear how it
        ends."""
        with suppress(OSError):
            while told := self._orders.recv(256):
                number, what, value = pickle.loads(told)
                rank = self._ranks[number]
                (rank.pid if what == "began" else rank.code).set_result(value)
        code = self._process.wait()
        for rank in self._ranks:
            rank.orphaned(code)


class Copied:
    """The process of a rank that stems from another one; a `RankHandle`."""

    def __init__(self, stem: Stem) -> None:
        self._stem = stem
        self.pid: Future[int] = Future()
        self.code: Future[int] = Future()

    def poll(self) -> int | None:
        return self.code.result() if self.code.done() else None

    def wait(self, timeout: float | None = None) -> int:
        try:
            return self.code.result(timeout)
        except NotYet:
            raise subprocess.TimeoutExpired("rank", timeout or 0.0) from None

    def kill(self) -> None:
        if self.code.done():
            return
        if self.pid.done():
            with suppress(ProcessLookupError):
                os.kill(self.pid.result(), signal.SIGKILL)
        else:
            self._stem.kill()

    def orphaned(self, code: int) -> None:
        """Its stem has ended, with this exit code."""
        if self.pid.done():
            self.kill()
            code = -signal.SIGKILL
        with suppress(InvalidStateError):  # it had ended before
            self.code.set_result(code)
