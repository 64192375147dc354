"""A driver that loads before its run is known; its side is `coloop.cli.spare`."""

import json
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from coloop_server.own_ray.folder import Head
from coloop_server.private import ensure_private_file, ensure_private_folder
from coloop_server.processes import MARK_OPTION, end_group, identity, of_a_launch

LOOK_SECONDS = 0.2
END_SECONDS = 5.0


class Spare:
    def __init__(self, mark: str, log: Path, environment: Mapping[str, str]) -> None:
        """
        Args:
            mark: of the launch that it is to be.
            log: to which goes what it prints before it has its run.
        """
        self.mark = mark
        self.lock = threading.Lock()
        self.head: Head | None = None
        """The Ray that it joins."""
        self.has_run = False
        """Whether it is a run's driver by now."""
        ensure_private_folder(log.parent)
        ensure_private_file(log)
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "coloop.cli.spare", MARK_OPTION, mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                **of_a_launch(mark, environment),
            )
        self.started = identity(self.process.pid) or "gone"

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def join(self, head: Head, hosts: int) -> None:
        """Ask it once to join a Ray, and to load so many hosts there; `joined` tells how that
        went."""
        with self.lock:
            if self.head is None:
                self.head = head
                self.say(address=head.joined_at, hosts=hosts)

    def joined(self, seconds: float, is_over: Callable[[], bool]) -> str | None:
        """Wait until it has joined: None, or why it has not."""
        answers = self.process.stdout
        assert answers is not None
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(answers, selectors.EVENT_READ)
            while not selector.select(LOOK_SECONDS):
                if is_over():
                    return "the server ended"
                if time.monotonic() > deadline:
                    return f"its driver did not join it within {seconds:.0f} s"
        line = answers.readline()
        if not line:
            return f"its driver ended with exit code {self.process.wait()}"
        told: dict[str, Any] = json.loads(line)
        return None if told["joined"] else str(told["reason"])

    def become(self, arguments: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
        """The process, which is the driver of a run from now on. Raises OSError where it has just
        ended."""
        self.say(arguments=list(arguments), log=str(log))
        self.has_run = True
        self.let_go()
        return self.process

    def say(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def let_go(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def end(self) -> None:
        """Nobody needs it."""
        self.let_go()
        end_group(self.process.pid, self.started, seconds=END_SECONDS)
        self.process.wait()
