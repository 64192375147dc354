"""The endpoint of a service: its address, limits and errors, and checked connections to it."""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final
from urllib.parse import quote, urlsplit

from httpcore2 import AnyIOBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from coloop.errors import ServiceFailed
from coloop.spec.remotes import (
    Address,
    AllowedRemotes,
    Refused,
    literal_address,
    refusal,
    refusal_of_address,
    refusal_of_secret,
    secret_value,
    secret_variable,
)

PATH: Final = "/%:@!$&'()*+,;=~-._"
QUERY: Final = f"{PATH}?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address, secret and limits of a service that a node uses, and errors about it."""

    node: str
    field: str
    """Path of the field with the address, such as `source.url`."""
    url: str
    secret: str | None = None
    """Name of the secret to send; None: none."""
    timeout_seconds: float = 60.0
    """Time limit of one attempt."""
    retries: int = 3
    concurrency: int = 8
    seed: int = 0
    """Seed of the pauses between attempts."""

    @property
    def shown(self) -> str:
        """The address for messages, without user and query, which may be confidential."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def target(self) -> str:
        """The address to request: ASCII, without user and fragment."""
        parts = urlsplit(self.url)
        host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
        host = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port is not None else ""
        query = f"?{quote(parts.query, safe=QUERY)}" if parts.query else ""
        return f"{parts.scheme}://{host}{port}{quote(parts.path, safe=PATH) or '/'}{query}"

    def failure(self, what: str, hint: str, field: str | None = None) -> ServiceFailed:
        """An error about the service. `field`: another field of its section, instead of `url`."""
        return self._error(f"{self.shown} {what}; {hint}", field)

    def _error(self, told: str, field: str | None = None) -> ServiceFailed:
        at = self.field if field is None else f"{self.field.rpartition('.')[0]}.{field}"
        return ServiceFailed(f"{self.node}: {at}: {told}", self.node, at)

    def check(self, allowed: AllowedRemotes) -> None:
        """Raise ServiceFailed if the service may not be called."""
        refused = refusal(self.url, allowed)
        if refused is None and self.secret is not None:
            refused = refusal_of_secret(self.url)
        if refused is not None:
            raise self.refused(refused)

    def refused(self, refused: Refused) -> ServiceFailed:
        """The error for a service that may not be called; it does not contain the address."""
        return self._error(f"the service may not be called: {refused.found}; {refused.hint}")

    def authorization(self) -> str | None:
        """The value of `Authorization`: the secret, if it has no scheme as a bearer token; None
        without a secret. Raises ServiceFailed if it is not set."""
        if self.secret is None:
            return None
        value, variable = secret_value(self.secret), secret_variable(self.secret)
        if value is None:
            raise self._error(
                f"needs the secret `{self.secret}`, and {variable} is not set in this environment "
                f"({variable}=... before the command, or a file `{variable.lower()}` in "
                "COLOOP_SECRETS_DIR)"
            )
        if not (value.isascii() and value.isprintable()):
            raise self._error(f"{variable} is not plain ASCII text")
        return value if " " in value else f"Bearer {value}"


# Connections to checked addresses: a name is resolved, all of its addresses are checked, and the
# connection goes to one of these, so that the name cannot be resolved to another one. TLS still
# verifies the name.

MOST_ADDRESSES: Final = 32
"""Maximum addresses of a name that are tried."""


class CheckedNetwork(AnyIOBackend):
    """A network backend of httpcore that only connects to allowed addresses."""

    def __init__(self, endpoint: Endpoint, allowed: AllowedRemotes) -> None:
        self._endpoint = endpoint
        self._allowed = allowed

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        del timeout  # each address has its part of the time
        last: Exception = ConnectError("the name has no address")
        addresses = await self._checked(host, port)
        for address in addresses:
            patience = self._endpoint.timeout_seconds / len(addresses)
            try:
                return await super().connect_tcp(
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

    async def _checked(self, host: str, port: int) -> list[Address]:
        """The addresses of a host; raises ServiceFailed if one of them may not be called."""
        self._endpoint.check(self._allowed)
        literal = literal_address(host)
        addresses = [literal] if literal is not None else await resolved(host, port)
        for address in addresses:
            refused = refusal_of_address(host, port, address, self._allowed)
            if refused is not None:
                raise self._endpoint.refused(refused)
        return addresses[:MOST_ADDRESSES]


async def resolved(host: str, port: int) -> list[Address]:
    """The addresses of a name, in the resolver's order; in a thread of its own, as it may hang."""
    future: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            future.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            future.set_exception(error)

    Thread(target=look_up, daemon=True, name="coloop-resolver").start()
    try:
        entries = await asyncio.shield(asyncio.wrap_future(future))
    except (OSError, UnicodeError) as error:
        raise ConnectError(f"the name `{host}` cannot be resolved ({error})") from None
    texts = dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries)
    return [ipaddress.ip_address(text) for text in texts]
