"""Connections to addresses that were looked at: a name is resolved, every address that it leads to
is checked, and the connection goes to one of these, not to the name. TLS still asks for the name.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final

from httpcore2 import (
    AnyIOBackend,
    AsyncNetworkBackend,
    AsyncNetworkStream,
    ConnectError,
    ConnectTimeout,
)

from coloop.data.services.endpoint import Endpoint
from coloop.spec.remotes import Address, AllowedRemotes, literal_address, refusal_of_address

MOST_ADDRESSES: Final = 32
"""A name that leads to more is not asked at all of them."""


class CheckedNetwork(AsyncNetworkBackend):
    """See the module."""

    def __init__(self, endpoint: Endpoint, allowed: AllowedRemotes) -> None:
        self._endpoint = endpoint
        self._allowed = allowed
        self._inner = AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        del timeout  # each address has its part of the time
        last: Exception = ConnectError("the name leads to no address")
        addresses = await self._checked(host, port)
        for address in addresses:
            patience = self._endpoint.timeout_seconds / len(addresses)
            try:
                return await self._inner.connect_tcp(
                    str(address), port, patience, local_address, socket_options
                )
            except (ConnectError, ConnectTimeout) as error:
                last = error
        raise last

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        raise ConnectError("services are not called through files")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _checked(self, host: str, port: int) -> list[Address]:
        """The addresses that a host leads to, all of which a run may call."""
        self._endpoint.check(self._allowed)
        literal = literal_address(host)
        addresses = [literal] if literal is not None else await resolved(host, port)
        for address in addresses:
            refused = refusal_of_address(host, port, address, self._allowed)
            if refused is not None:
                raise self._endpoint.refused(refused)
        return addresses[:MOST_ADDRESSES]


async def resolved(host: str, port: int) -> list[Address]:
    """The addresses of a name, in the resolver's order. A resolver that hangs is left behind: it
    has a thread of its own."""
    found: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.set_exception(error)

    Thread(target=look_up, daemon=True, name="coloop-resolver").start()
    try:
        entries = await asyncio.shield(asyncio.wrap_future(found))
    except (OSError, UnicodeError) as error:
        raise ConnectError(f"the name `{host}` is not resolved ({error})") from None
    texts = dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries)
    return [ipaddress.ip_address(text) for text in texts]
