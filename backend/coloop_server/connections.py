"""Limits on clients, as protocols of uvicorn: request heads must be short and arrive soon, and
responses must be read.

Until its request is complete, a client has no token either, and unread data would stay in memory.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

MOST_BYTES = 64 * 1024
"""Limit for an address with its headers, and for data between two parts of a body."""
HEAD_SECONDS = 30.0
"""Limit from the first byte of a request, or from the connection, to the end of the head."""


class Deadline:
    """Runs an action after a delay, unless it is stopped."""

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self.seconds = seconds
        self.act = act
        self.handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self.stop()
        self.handle = asyncio.get_running_loop().call_later(self.seconds, self.act)

    def stop(self) -> None:
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None


def impatient(base: Any, seconds: float) -> Any:
    """An HTTP or WebSocket protocol of uvicorn that disconnects clients that read nothing for so
    long."""

    class Impatient(base):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            self.unread_for = Deadline(seconds, self.cut)
            super().connection_made(transport)

        def pause_writing(self) -> None:
            """Too much data is waiting for the client."""
            super().pause_writing()
            self.unread_for.start()

        def resume_writing(self) -> None:
            self.unread_for.stop()
            super().resume_writing()

        def connection_lost(self, error: Exception | None) -> None:
            self.unread_for.stop()
            super().connection_lost(error)

        def cut(self) -> None:
            """Disconnect at once and discard data that waits for the client."""
            now = struct.pack("ii", 1, 0)
            connection = self.transport.get_extra_info("socket")
            if connection is not None:
                with suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
            self.transport.abort()

    return Impatient


def bounded(base: Any, seconds: float = HEAD_SECONDS) -> Any:
    """A protocol of uvicorn that ends connections whose heads are long or slow.

    Args:
        base: the protocol's class, of HTTP. One that is not written with httptools has a limit of
            its own for the length, and is left as it is.
    """
    if not hasattr(base, "on_header"):
        return base

    class Bounded(base):  # type: ignore[misc]
        head = 0
        """Bytes of address and headers so far, including trailers."""
        unread = 0
        """Bytes since the parser last completed something."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.headless_for = Deadline(seconds, self.transport.abort)
            self.headless_for.start()

        def data_received(self, data: bytes) -> None:
            self.unread += len(data)
            super().data_received(data)
            if self.unread > MOST_BYTES and not self.transport.is_closing():
                self.transport.abort()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.head = 0
            self.headless_for.start()

        def on_url(self, url: bytes) -> None:
            self.count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self.count(len(name) + len(value) + len(": \r\n"))
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self.headless_for.stop()
            self.unread = 0
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self.unread = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self.unread = 0
            super().on_message_complete()

        def connection_lost(self, error: Exception | None) -> None:
            self.headless_for.stop()
            super().connection_lost(error)

        def count(self, size: int) -> None:
            self.head += size
            if self.head > MOST_BYTES:
                raise ValueError("the head of this request is too long")  # the parser answers 400

    return Bounded
