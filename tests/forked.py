"""Python processes for tests that begin with `coloop` loaded: what takes ten seconds of a processor
in an interpreter of its own is a copy here.

    begin("-m", "coloop", "run", ...)   as `subprocess.Popen([sys.executable, ...])`
    run("-m", "coloop", "run", ...)     as `subprocess.run`
    drivers(folder)                     a command that is `coloop run` for whoever starts it

They come from one process that has loaded torch, transformers and the driver (`forkserver` of
`multiprocessing`) with the environment of the tests, so what is decided while those load is as it
is there; all else of a process is its own: arguments, environment, folder, session, exit code.
"""

import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import IO

LOADED = (
    "coloop.cli.run",
    "coloop.runtime.start",
    "coloop.workers.cluster.local",
    "coloop.workers.worker",
    "coloop_server.cli",
    "coloop_server.app",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "transformers.models.qwen3.modeling_qwen3",
    "tests.engine.training.conftest",
)
"""What drivers, servers and the tests of ranks import themselves."""
ALONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""So that what is loaded starts no threads: of those a copy would have the locks, but not the
threads that open them."""


class Forked:
    """A process, with what `subprocess.Popen` has of one."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        """
        Args:
            words: what stands behind `python` on a command line: `-m module`, `-c code` or a file,
                then the arguments.
            stdout: number of an open file; without it what it writes can be read here.
            stderr: as of `Popen`; without it what it writes there is not kept.
        """
        self.args = list(words)
        self.stdout: IO[str]
        if stdout is None:
            self.stdout, output = _pipe()
        else:
            self.stdout, output = io.StringIO(), Connection(os.dup(stdout), readable=False)
        self.stderr, errors = _pipe() if stderr == subprocess.PIPE else (None, None)
        if stderr == subprocess.STDOUT:
            errors = output
        environment = dict(os.environ if env is None else env)
        place = str(cwd or Path.cwd())
        self._process = context().Process(
            target=_be, args=(self.args, environment, place, output, errors), daemon=True
        )
        with _alone():
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        for end in {output, errors} - {None}:
            end.close()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it wrote from here on, to its output and of its errors, once it has ended."""
        texts = ["", ""]

        def read(index: int, stream: IO[str]) -> None:
            with stream:
                texts[index] = stream.read()

        readers = [
            threading.Thread(target=read, args=(index, stream), daemon=True)
            for index, stream in enumerate((self.stdout, self.stderr))
            if stream is not None and not stream.closed
        ]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        return texts[0], texts[1]


def begin(
    *words: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stderr: int | None = None,
) -> Forked:
    """A process in a session of its own; its output can be read."""
    return Forked(words, env=env, cwd=cwd, stderr=stderr)


def run(
    *words: str,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> "subprocess.CompletedProcess[str]":
    """A process to its end; one that takes longer is killed, and `TimeoutExpired` raised."""
    process = begin(*words, env=env, cwd=cwd, stderr=subprocess.PIPE)
    try:
        output, errors = process.communicate(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    return subprocess.CompletedProcess(process.args, process.wait(), output, errors)


CLIENT = Path(__file__).with_name("forked_client.py")


@contextmanager
def drivers(folder: Path) -> Iterator[list[str]]:
    """The command of a program that is `coloop run` to who starts it: it ends when the copy does
    and with its code, hands on what asks it to end, and takes the copy along when it is killed.

    Args:
        folder: of the socket over which the program asks for its copy.
    """
    address = folder / "drivers"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen()

        def accept() -> None:
            with suppress(OSError):  # closed
                while True:
                    asking, _ = listener.accept()
                    threading.Thread(target=_drive, args=(asking,), daemon=True).start()

        threading.Thread(target=accept, name="drivers", daemon=True).start()
        yield [sys.executable, "-S", "-E", str(CLIENT), str(address)]
        listener.shutdown(socket.SHUT_RDWR)


def _drive(asking: socket.socket) -> None:
    """A driver for a client: its order, then numbers of signals, until either of them has ended."""
    with asking:
        order, files, _, _ = socket.recv_fds(asking, 1 << 20, 1)
        if not files:
            return
        told = json.loads(order)
        words = ("-m", "coloop", "run", *told["arguments"])
        driver = Forked(
            words,
            env=told["environment"],
            cwd=Path(told["folder"]),
            stdout=files[0],
            stderr=subprocess.STDOUT,
        )
        os.close(files[0])

        def end() -> None:
            code = driver.wait()
            with suppress(OSError):
                asking.send(str(code).encode())

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        with suppress(OSError):
            while number := asking.recv(16):
                driver.send_signal(int(number))
        driver.kill()
        ending.join()


@cache
def context() -> ForkServerContext:
    """What starts copies of the one process that has loaded all that."""
    found = get_context("forkserver")
    found.set_forkserver_preload(list(LOADED))
    return found


def share_server() -> None:
    """Start the process that all are copies of; copies of this one ask it as well."""
    with _alone():
        context()
        forkserver.ensure_running()

    def keep() -> None:
        # Only who has started it can ask the system whether it still runs.
        forkserver._forkserver.ensure_running = lambda: None  # type: ignore[method-assign]

    os.register_at_fork(after_in_child=keep)


@contextmanager
def _alone() -> Iterator[None]:
    """The first process starts the one that all are copies of, with the environment of now."""
    before = {name: os.environ.get(name) for name in ALONE}
    os.environ.update(ALONE)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _pipe() -> tuple[IO[str], Connection]:
    reader, writer = context().Pipe(duplex=False)
    with reader:
        return os.fdopen(os.dup(reader.fileno()), encoding="utf-8", errors="replace"), writer


def _be(
    words: list[str],
    environment: dict[str, str],
    cwd: str,
    output: Connection,
    errors: Connection | None,
) -> None:
    """Be `python *words`."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(output.fileno(), 1)
    os.dup2(nothing if errors is None else errors.fileno(), 2)
    for end in (output, errors):
        if end is not None and not end.closed:
            end.close()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    kind, *rest = words
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")
