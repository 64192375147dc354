"""Who has shown no token holds no memory and no time of the server: heads, bodies, cookies."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from tests.backend.signed_in import ADDRESS
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coloop_server import bodies
from coloop_server.app import create_app
from coloop_server.connections import MOST_BYTES, bounded
from coloop_server.settings import Settings

SOON = 10.0
GIVEN_UP_SECONDS = 20 * SOON
PIECE = b"b" * 4096


class Clock(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward, so that nothing waits for a real one."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class Server:
    """What an attack has of the server: connections, the clock, and what has come there."""

    def __init__(self, clock: Clock, address: tuple[str, int], came: asyncio.Condition) -> None:
        self._clock = clock
        self._address = address
        self._came = came
        self.connections = 0
        self.bytes = 0

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self._address)

    def later(self, seconds: float) -> None:
        self._clock.ahead += seconds

    async def has(self, what: Callable[["Server"], bool]) -> None:
        async with self._came:
            await self._came.wait_for(lambda: what(self))


Attack = Callable[[Server], Awaitable[None]]


def with_server(attack: Attack) -> None:
    """A server of uvicorn's own, and an attack on it."""
    clock = Clock()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            await PlainTextResponse("served")(scope, receive, send)

    async def run() -> None:
        came = asyncio.Condition()
        told: set[asyncio.Task[None]] = set()

        async def tell() -> None:
            async with came:
                came.notify_all()

        class Told(bounded(HttpToolsProtocol, SOON)):  # type: ignore[misc]
            def connection_made(self, transport: asyncio.Transport) -> None:
                super().connection_made(transport)
                known.connections += 1
                told.add(asyncio.ensure_future(tell()))

            def data_received(self, data: bytes) -> None:
                super().data_received(data)
                known.bytes += len(data)
                told.add(asyncio.ensure_future(tell()))

        config = uvicorn.Config(app, port=0, http=Told, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        known = Server(clock, server.servers[0].sockets[0].getsockname(), came)
        try:
            async with asyncio.timeout(GIVEN_UP_SECONDS):
                await attack(known)
        finally:
            await server.shutdown()

    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        runner.run(run())


async def pour(writer: asyncio.StreamWriter) -> None:
    for _ in range(10_000):
        writer.write(PIECE)
        await writer.drain()
        await asyncio.sleep(0)  # the server is in the same loop


@pytest.mark.parametrize(
    "start",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\na: ",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nb: ",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1;",
    ],
    ids=["address", "header", "trailer", "chunk"],
)
def test_what_has_no_end_is_cut(start: bytes) -> None:
    async def attack(server: Server) -> None:
        _, writer = await server.connect()
        writer.write(start)
        with pytest.raises(ConnectionError):
            await pour(writer)

    with_server(attack)


def test_many_short_headers_are_counted_together() -> None:
    async def attack(server: Server) -> None:
        reader, writer = await server.connect()
        lines = b"".join(b"a%d: b\r\n" % number for number in range(MOST_BYTES // 8))
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n" + lines + b"\r\n")
        assert b"served" not in await answer(reader)

    with_server(attack)


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\nhost: a\r\n"])
def test_a_head_that_does_not_come_ends_its_connection(start: bytes) -> None:
    async def attack(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(start)
        await server.has(lambda one: one.connections == 1 and one.bytes == len(start))
        server.later(0.9 * SOON)
        still_open = asyncio.ensure_future(answer(reader))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not still_open.done()
        server.later(0.2 * SOON)
        assert await still_open == b""

    with_server(attack)


def test_what_is_asked_in_time_is_served_however_long_its_body() -> None:
    async def attack(server: Server) -> None:
        reader, writer = await server.connect()
        for _ in range(2):
            size = 8 * MOST_BYTES
            head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % size
            writer.write(head)
            wanted = server.bytes + len(head)
            await server.has(lambda one, wanted=wanted: one.bytes == wanted)
            for _ in range(8):
                writer.write(b"b" * MOST_BYTES)
                wanted += MOST_BYTES
                await server.has(lambda one, wanted=wanted: one.bytes == wanted)
                server.later(SOON / 4)  # the whole of it takes longer than a head may
            head = await reader.readuntil(b"served")
            assert head.startswith(b"HTTP/1.1 200")
        writer.close()

    with_server(attack)


async def answer(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the connection is closed, in whatever way."""
    got = bytearray()
    try:
        while piece := await reader.read(65536):
            got += piece
    except ConnectionError:
        pass
    return bytes(got)


def test_a_body_that_does_not_come_is_not_waited_for(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_TIMEOUT", 0.2)

    async def never() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    sent: list[dict[str, Any]] = []

    async def keep(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(bodies.JsonBodyMiddleware(client.app, 100)(scope, never, keep))

    assert sent[0]["status"] == 400
    assert b"request.cut_off" in sent[1]["body"]


@pytest.mark.sample(7)
@pytest.mark.attack
@pytest.mark.parametrize("path", ["/api/health", "/api/session", "/api/loops"])
@pytest.mark.parametrize("piece", ["\\\\", '\\"', "\\101", "a=b;"])
def test_cookies_are_read_in_the_time_of_their_length(
    settings: Settings, path: str, piece: str
) -> None:
    """Python before 3.11.10 unquotes 60,000 characters in 20 s; nobody needs a token for it."""
    name = "coloop_session_8321"
    cookie = f'{name}="' + piece * (60_000 // len(piece)) + '"'
    with TestClient(create_app(settings), base_url=ADDRESS) as stranger:
        before = time.process_time()
        answer = stranger.get(path, headers={"Cookie": cookie})
        seconds = time.process_time() - before

    assert answer.status_code == (401 if path == "/api/loops" else 200)
    assert seconds < 5
