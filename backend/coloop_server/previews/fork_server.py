"""The fork server of previews and its children; `inside/__main__.py` is the other end."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import IO

from coloop_server.errors import Invalid, Unavailable
from coloop_server.previews.schemas import MIB, Limits
from coloop_server.processes import child_environment

START_SECONDS = 180.0
"""Time to load the engine on a busy machine."""
ANSWER_SECONDS = 30.0
"""Time to start a child."""
END_SECONDS = 10.0


class Child:
    """A process for one job, ended by its holder."""

    def __init__(self, handle: int, answer: IO[bytes], limits: Limits) -> None:
        self.handle = handle
        self._answer = answer
        self._limits = limits

    def said(self) -> bytes:
        size = os.fstat(self._answer.fileno()).st_size
        if size == 0:
            limits = self._limits
            raise Invalid(
                "preview.ended",
                "the preview ended without an answer: it may have needed more memory than "
                f"{limits.memory_bytes // MIB} MiB, or more than {limits.cpu_seconds} seconds of a "
                "processor; take fewer rows",
            )
        if size > self._limits.answer_bytes:
            raise Invalid(
                "preview.too_large",
                f"the answer has {size / MIB:.0f} MiB, at most {self._limits.answer_bytes // MIB} "
                "are sent; take fewer rows",
            )
        self._answer.seek(0)
        return self._answer.read()

    def end(self) -> None:
        """End it at any point, with its sandboxes."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        os.close(self.handle)
        self._answer.close()


class ForkServer:
    """Starts with the first preview, and again if it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None

    def begin(self, job: bytes, limits: Limits) -> Child:
        with self._lock:
            try:
                return self._begin(job, limits)
            except OSError:
                self._stop()
            try:
                return self._begin(job, limits)
            except OSError as error:
                self._stop()
                raise Unavailable(
                    "preview.not_started", f"no process for previews can be started: {error}"
                ) from error

    def prepare(self) -> None:
        """Start it for the next job."""
        with self._lock, suppress(OSError):
            self._ensure()

    def close(self) -> None:
        with self._lock:
            self._stop()

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def _begin(self, job: bytes, limits: Limits) -> Child:
        orders = self._ensure()
        answer: IO[bytes] = tempfile.TemporaryFile(prefix="coloop-preview-")  # noqa: SIM115
        try:
            with tempfile.TemporaryFile(prefix="coloop-preview-") as asked:
                asked.write(job)
                asked.seek(0)
                told = limits.model_dump_json().encode()
                socket.send_fds(orders, [told], [asked.fileno(), answer.fileno()])
            begun, handles, _, _ = socket.recv_fds(orders, 64, 1)
            if not begun or not handles:
                raise OSError("the process for previews has ended")
            return Child(handles[0], answer, limits)
        except BaseException:
            answer.close()
            raise

    def _ensure(self) -> socket.socket:
        if self._process is not None and self._process.poll() is None and self._orders is not None:
            return self._orders
        self._stop()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "coloop_server.previews.inside", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=child_environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"),
                start_new_session=True,
            )
        self._orders = ours
        ours.settimeout(START_SECONDS)
        if ours.recv(16) != b"ready":
            raise OSError("the process for previews did not start")
        ours.settimeout(ANSWER_SECONDS)
        return ours

    def _stop(self) -> None:
        orders, self._orders = self._orders, None
        process, self._process = self._process, None
        if orders is not None:
            orders.close()
        if process is not None:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
