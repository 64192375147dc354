"""Connections that nobody reads are cut: what was written to them would lie in memory for ever."""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any


def impatient(base: Any, seconds: float) -> Any:
    """A protocol of uvicorn that gives up a client which takes nothing for so long.

    Args:
        base: the protocol's class, of HTTP or of WebSockets.
    """

    class Impatient(base):  # type: ignore[misc]
        patience: asyncio.TimerHandle | None = None

        def pause_writing(self) -> None:
            """What waits for the client has become too much."""
            super().pause_writing()
            loop = asyncio.get_running_loop()
            self.patience = loop.call_later(seconds, self.cut)

        def cut(self) -> None:
            """At once, with what waits in the system for a client that never takes it."""
            now = struct.pack("ii", 1, 0)
            connection = self.transport.get_extra_info("socket")
            if connection is not None:
                with suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
            self.transport.abort()

        def resume_writing(self) -> None:
            self.end_patience()
            super().resume_writing()

        def connection_lost(self, error: Exception | None) -> None:
            self.end_patience()
            super().connection_lost(error)

        def end_patience(self) -> None:
            if self.patience is not None:
                self.patience.cancel()
                self.patience = None

    return Impatient
