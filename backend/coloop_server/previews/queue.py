"""One queue for all previews; at most `MAX_RUNNING` run at a time. A preview is stopped when its
client disconnects or the server shuts down."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

from coloop_server.errors import Invalid, TooMany, Unavailable
from coloop_server.previews.fork_server import Child, ForkServer
from coloop_server.previews.schemas import Limits

MAX_RUNNING = 2
MAX_WAITING = 8
TICK_SECONDS = 0.1
IDLE_SECONDS = 600.0
"""Time without previews after which the fork server is closed."""

Gone = Callable[[], Awaitable[object]]
"""Returns when the client has disconnected."""


class PreviewQueue:
    def __init__(self, ending: threading.Event) -> None:
        """
        Args:
            ending: set when the server shuts down.
        """
        self.fork_server = ForkServer()
        self._ending = ending
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._pending = 0
        self._last_used = time.monotonic()

    async def ask(self, job: bytes, limits: Limits, gone: Gone) -> bytes:
        """Run a job in a child of the fork server; returns its result.

        Raises:
            TooMany: the queue is full.
            Unavailable: the client has disconnected, or the server shuts down.
            Invalid: it exceeded one of its limits.
        """
        if self._pending >= MAX_RUNNING + MAX_WAITING:
            raise TooMany(
                "preview.too_many", "other previews are waiting just now; try again in a moment"
            )
        self._pending += 1
        disconnect = asyncio.ensure_future(gone())
        try:
            work = asyncio.ensure_future(self._run_in_slot(job, limits))
            try:
                return await self._result_of(work, disconnect)
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        finally:
            self._pending -= 1
            self._last_used = time.monotonic()
            disconnect.cancel()
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._close_if_idle)

    async def prepare(self) -> None:
        """Start the fork server, which loads the engine, for the next preview."""
        self._last_used = time.monotonic()
        await run_in_threadpool(self.fork_server.prepare)
        asyncio.get_running_loop().call_later(IDLE_SECONDS, self._close_if_idle)

    async def close(self) -> None:
        await run_in_threadpool(self.fork_server.close)

    async def _result_of(
        self, work: "asyncio.Future[bytes]", disconnect: "asyncio.Future[object]"
    ) -> bytes:
        while not work.done():
            futures: set[asyncio.Future[Any]] = {work, disconnect}
            await asyncio.wait(futures, timeout=TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if self._ending.is_set():
                raise Unavailable(
                    "server.ending", "the server is shutting down, and the preview with it"
                )
            if disconnect.done() and not work.done():
                raise Unavailable(
                    "preview.cancelled", "the client that asked for the preview has gone"
                )
        return work.result()

    async def _run_in_slot(self, job: bytes, limits: Limits) -> bytes:
        async with self._slots:
            starting = asyncio.ensure_future(run_in_threadpool(self.fork_server.begin, job, limits))
            try:
                child = await asyncio.shield(starting)
            except asyncio.CancelledError:
                starting.add_done_callback(_end_at_once)
                raise
            try:
                await self._wait_until_ended(child, limits.seconds)
                return await run_in_threadpool(child.said)
            finally:
                child.end()

    async def _wait_until_ended(self, child: Child, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(child.handle, ended.set)
        try:
            async with asyncio.timeout(seconds):
                await ended.wait()
        except TimeoutError:
            raise Invalid(
                "preview.late",
                f"the preview did not end within {seconds:g} seconds and was stopped; take fewer "
                "rows, or give the code less to do",
            ) from None
        finally:
            loop.remove_reader(child.handle)

    def _close_if_idle(self) -> None:
        if self._pending == 0 and time.monotonic() - self._last_used >= IDLE_SECONDS - 1:
            threading.Thread(target=self.fork_server.close, daemon=True).start()


def _end_at_once(starting: "asyncio.Future[Child]") -> None:
    """End the child of a job that was cancelled while its child was starting."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result().end()
