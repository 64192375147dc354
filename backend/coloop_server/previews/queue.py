"""One queue for all previews; few run at a time. A preview ends when its client leaves or the
server ends."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

from coloop_server.errors import Invalid, TooMany, Unavailable
from coloop_server.previews.fork_server import Child, ForkServer
from coloop_server.previews.schemas import Limits

AT_WORK = 2
WAITING = 8
TICK_SECONDS = 0.1
IDLE_SECONDS = 600.0
"""Idle time after which the fork server is ended."""

Gone = Callable[[], Awaitable[object]]
"""Returns when the client has gone."""


class PreviewQueue:
    def __init__(self, ending: threading.Event) -> None:
        """
        Args:
            ending: set once the server is about to end.
        """
        self.fork_server = ForkServer()
        self._ending = ending
        self._slots = asyncio.Semaphore(AT_WORK)
        self._asked = 0
        self._last = time.monotonic()

    async def ask(self, job: bytes, limits: Limits, gone: Gone) -> bytes:
        """The result of a job.

        Raises:
            TooMany: the queue is full.
            Unavailable: the client has gone, or the server ends.
            Invalid: it took longer, or more, than it may.
        """
        if self._asked >= AT_WORK + WAITING:
            raise TooMany(
                "preview.too_many", "other previews are waiting just now; try again in a moment"
            )
        self._asked += 1
        leaving = asyncio.ensure_future(gone())
        try:
            work = asyncio.ensure_future(self._in_turn(job, limits))
            try:
                return await self._watched(work, leaving)
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        finally:
            self._asked -= 1
            self._last = time.monotonic()
            leaving.cancel()
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._rest)

    async def prepare(self) -> None:
        """Load the engine for the next preview."""
        self._last = time.monotonic()
        await run_in_threadpool(self.fork_server.prepare)
        asyncio.get_running_loop().call_later(IDLE_SECONDS, self._rest)

    async def close(self) -> None:
        await run_in_threadpool(self.fork_server.close)

    async def _watched(
        self, work: "asyncio.Future[bytes]", leaving: "asyncio.Future[object]"
    ) -> bytes:
        while not work.done():
            both: set[asyncio.Future[Any]] = {work, leaving}
            await asyncio.wait(both, timeout=TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if self._ending.is_set():
                raise Unavailable(
                    "server.ending", "the server is shutting down, and the preview with it"
                )
            if leaving.done() and not work.done():
                raise Unavailable(
                    "preview.cancelled", "the client that asked for the preview has gone"
                )
        return work.result()

    async def _in_turn(self, job: bytes, limits: Limits) -> bytes:
        async with self._slots:
            beginning = asyncio.ensure_future(
                run_in_threadpool(self.fork_server.begin, job, limits)
            )
            try:
                child = await asyncio.shield(beginning)
            except asyncio.CancelledError:
                beginning.add_done_callback(_end_at_once)
                raise
            try:
                await self._ended(child, limits.seconds)
                return await run_in_threadpool(child.said)
            finally:
                child.end()

    async def _ended(self, child: Child, seconds: float) -> None:
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

    def _rest(self) -> None:
        if self._asked == 0 and time.monotonic() - self._last >= IDLE_SECONDS - 1:
            threading.Thread(target=self.fork_server.close, daemon=True).start()


def _end_at_once(beginning: "asyncio.Future[Child]") -> None:
    """End the child of a job that was cancelled while the child started."""
    if not beginning.cancelled() and beginning.exception() is None:
        beginning.result().end()
