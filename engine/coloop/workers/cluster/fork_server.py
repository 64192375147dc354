"""The process that loads what ranks compute with once and forks them, so they begin at once.

    driver ── two sockets of a rank ──> fork server ── fork ──> rank: the host's calls, one by one
           <── began, ended ─────────

It ends when the driver does.
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


class ForkServer:
    def __init__(self, environment: dict[str, str], log: str) -> None:
        """`environment`: its own and its ranks'; `log`: gets what libraries print."""
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ranks: list[ForkedRank] = []
        with theirs, open(log, "ab") as out:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "coloop.workers.cluster.fork_server_process"),
                    str(theirs.fileno()),
                ],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, name="fork-server", daemon=True)
        self._listener.start()

    def start(self, *sockets: int) -> "ForkedRank":
        """A rank that speaks over these sockets; it may begin later."""
        rank = ForkedRank()
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

    @property
    def is_behind(self) -> bool:
        """Whether ranks were given up before it has begun them: it may hang."""
        return any(rank.is_unwanted and not rank.pid.done() for rank in self._ranks)

    def kill(self) -> None:
        """End it; ranks that it has not started never begin."""
        self._process.kill()

    def close(self) -> None:
        self.kill()
        self._listener.join()
        self._orders.close()

    def _listen(self) -> None:
        """Note what it says of its ranks; if it is gone, all its ranks are ended."""
        with suppress(OSError):
            while told := self._orders.recv(256):
                number, what, value = pickle.loads(told)
                rank = self._ranks[number]
                if what == "began":
                    rank.began(value)
                else:
                    rank.reaped(value)
        code = self._process.wait()
        for rank in self._ranks:
            rank.orphaned(code)


class ForkedRank:
    """The process of a rank that was forked from another one; as `subprocess.Popen`."""

    def __init__(self) -> None:
        self.pid: Future[int] = Future()
        self.code: Future[int] = Future()
        self.is_unwanted = False
        self._is_gone = False

    def poll(self) -> int | None:
        return self.code.result() if self.code.done() else None

    def wait(self, timeout: float | None = None) -> int:
        try:
            return self.code.result(timeout)
        except NotYet:
            raise subprocess.TimeoutExpired("rank", timeout or 0.0) from None

    def kill(self) -> None:
        """End this rank alone, or as soon as it begins."""
        self.is_unwanted = True
        if self.pid.done():
            self._end()
        else:
            self._ended(-signal.SIGKILL)

    def began(self, pid: int) -> None:
        self.pid.set_result(pid)
        if self.is_unwanted:
            self._end()

    def reaped(self, code: int) -> None:
        """It has ended, with this exit code: its number may be another process's by now."""
        self._is_gone = True
        self._ended(code)

    def orphaned(self, code: int) -> None:
        """Its fork server has ended, with this exit code."""
        if self.pid.done():
            self._end()
            code = -signal.SIGKILL
        self._ended(code)

    def _end(self) -> None:
        if not self._is_gone:
            with suppress(ProcessLookupError):
                os.kill(self.pid.result(), signal.SIGKILL)

    def _ended(self, code: int) -> None:
        with suppress(InvalidStateError):  # it had ended before
            self.code.set_result(code)


RankHandle = subprocess.Popen[bytes] | ForkedRank
