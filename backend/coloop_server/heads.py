"""Heads of requests are short and come soon: who has sent no whole request has shown no token
either, and holds a descriptor and memory of the server."""

import asyncio
from typing import Any

MOST_BYTES = 64 * 1024
"""Of an address with its headers, and of what lies between two parts of a body."""
SECONDS = 30.0
"""From the first byte of a request, or from a connection, to the end of its head."""


def bounded(base: Any, seconds: float = SECONDS) -> Any:
    """A protocol of uvicorn that ends connections whose heads are long or slow.

    Args:
        base: the protocol's class, of HTTP. One that is not written with httptools has a limit of
            its own for the length, and is left as it is.
    """
    if not hasattr(base, "on_header"):
        return base

    class Bounded(base):  # type: ignore[misc]
        patience: asyncio.TimerHandle | None = None
        head = 0
        """Bytes of the address and the headers so far, those after a body among them."""
        unread = 0
        """Bytes that came since the parser last had something whole."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.expect_head()

        def data_received(self, data: bytes) -> None:
            self.unread += len(data)
            super().data_received(data)
            if self.unread > MOST_BYTES and not self.transport.is_closing():
                self.transport.abort()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.head = 0
            self.expect_head()

        def on_url(self, url: bytes) -> None:
            self.count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self.count(len(name) + len(value) + len(": \r\n"))
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self.end_patience()
            self.unread = 0
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self.unread = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self.unread = 0
            super().on_message_complete()

        def connection_lost(self, error: Exception | None) -> None:
            self.end_patience()
            super().connection_lost(error)

        def count(self, size: int) -> None:
            self.head += size
            if self.head > MOST_BYTES:
                raise ValueError("the head of this request is too long")  # the parser answers 400

        def expect_head(self) -> None:
            self.end_patience()
            loop = asyncio.get_running_loop()
            self.patience = loop.call_later(seconds, self.transport.abort)

        def end_patience(self) -> None:
            if self.patience is not None:
                self.patience.cancel()
                self.patience = None

    return Bounded
