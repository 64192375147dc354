"""The live stream of one run to one client.

      events.jsonl --log--> | cursor: the last seq sent  |
      gauges.json ---------> | version of gauges sent    | --> hello, events, gauges, ping, end
      hub: "there is news" -> wake up                    |

A client has no queue that could grow: it has a cursor, and what it has not read yet lies in the
file. Gauges that came between two messages are left out. A client that does not take a message in
time is closed with 4008 and resumes with `after=`.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from coloop.runtime.run_files.events import RunStateName
from coloop_server.database.connect import Sessions
from coloop_server.errors import NotFound
from coloop_server.runs import repository
from coloop_server.runs.schemas import Run, StreamEnd, StreamHello, StreamPing
from coloop_server.runs.service import show
from coloop_server.runs.supervisor import Hub
from coloop_server.runs.watch import Watch

logger = logging.getLogger(__name__)

TOO_SLOW = 4008
NO_SUCH_RUN = 4404
SIGNED_OUT = 4401
BATCH = 500
GAUGES_SECONDS = 0.25
PING_SECONDS = 10.0
CLOSE_SECONDS = 60.0


class Stream:
    """State of one client's stream of one run."""

    def __init__(
        self,
        socket: WebSocket,
        run_id: str,
        watch: Watch,
        sessions: Sessions,
        *,
        after: int,
        send_seconds: float,
        is_allowed: Callable[[], bool],
    ) -> None:
        self.socket = socket
        self.run_id = run_id
        self.watch = watch
        self.sessions = sessions
        self.cursor = after
        self.send_seconds = send_seconds
        self.is_allowed = is_allowed
        self.told: tuple[RunStateName, str | None] | None = None
        self.gauges_version = 0
        self.gauges_at = 0.0

    async def serve(self, hub: Hub) -> None:
        """Send until the run is over, or the client leaves or is too slow."""
        with hub.listen(self.run_id) as news:
            leaving = asyncio.create_task(self.wait_until_left())
            try:
                await self.send_all(news, leaving)
            except TimeoutError:
                await self.cut_off()
            except NotFound:
                await self.within(self.socket.close(NO_SUCH_RUN, "deleted"))
            except (WebSocketDisconnect, RuntimeError):
                pass  # the client left while it was sent something
            finally:
                leaving.cancel()

    async def send_all(self, news: asyncio.Event, leaving: "asyncio.Task[None]") -> None:
        await run_in_threadpool(self.watch.poll)
        while not leaving.done():
            news.clear()
            if not self.is_allowed():
                await self.within(self.socket.close(SIGNED_OUT, "signed out"))
                return
            # The state is read before the events: an end is told only after all of them.
            run = await run_in_threadpool(self.read_run)
            await self.greet(run)
            await self.send_events()
            due = await self.send_gauges()
            if run.state.is_final and self.cursor >= self.watch.log.last_seq:
                await self.send_last_gauges()
                await self.send(StreamEnd(run=run).model_dump_json())
                await self.within(self.socket.close(1000))
                return
            await self.wait(news, leaving, due)

    async def greet(self, run: Run) -> None:
        """Send the run's state, at first and when it changes without an event, such as why a run
        waits."""
        told = (run.state, run.message)
        if told != self.told and not (self.told and run.state.is_final):
            self.told = told
            await self.send(StreamHello(run=run, seq=self.watch.log.last_seq).model_dump_json())

    async def send_events(self) -> None:
        while message := await run_in_threadpool(self.watch.log.read_message, self.cursor, BATCH):
            last, texts = message
            await self.send(f'{{"kind":"events","events":[{texts}]}}')
            self.cursor = last

    async def send_gauges(self) -> float | None:
        """Send new gauges; if that is too soon, return the seconds until they are due."""
        if self.gauges_version == self.watch.gauges_version:
            return None
        wait = self.gauges_at + GAUGES_SECONDS - time.monotonic()
        if wait > 0:
            return wait
        await self.send_last_gauges()
        return None

    async def send_last_gauges(self) -> None:
        version, gauges = self.watch.gauges_version, self.watch.gauges
        if gauges is None or version == self.gauges_version:
            return
        self.gauges_version, self.gauges_at = version, time.monotonic()
        await self.send(f'{{"kind":"gauges","gauges":{gauges}}}')

    async def wait(
        self, news: asyncio.Event, leaving: "asyncio.Task[None]", due: float | None
    ) -> None:
        told = asyncio.create_task(news.wait())
        try:
            done, _ = await asyncio.wait(
                (told, leaving),
                timeout=PING_SECONDS if due is None else due,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            told.cancel()
        if not done and due is None:
            await self.send(StreamPing(at=datetime.now(UTC)).model_dump_json())

    async def wait_until_left(self) -> None:
        """Clients send no requests over the stream; their messages are ignored."""
        with suppress(WebSocketDisconnect, RuntimeError):
            while (await self.socket.receive())["type"] != "websocket.disconnect":
                pass

    async def send(self, text: str) -> None:
        await self.within(self.socket.send_text(text))

    async def within(self, sending: Awaitable[Any]) -> None:
        await asyncio.wait_for(sending, self.send_seconds)

    async def cut_off(self) -> None:
        """Close hard: a regular close would queue behind data that the client never reads."""
        logger.warning(
            "%s: a client took nothing for %g s: cut off", self.run_id, self.send_seconds
        )
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            await asyncio.wait_for(self.socket.close(TOO_SLOW, "resume"), CLOSE_SECONDS)

    def read_run(self) -> Run:
        with self.sessions() as session:
            return show(session, repository.get_outline(session, self.run_id))
