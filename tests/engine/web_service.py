"""A real HTTP server on the loopback that answers as a test says, byte for byte where it wants."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Asked:
    """One request as it came."""

    line: str
    headers: dict[str, str]
    body: Any


Answer = bytes | Iterator[bytes] | list[Any] | dict[str, Any] | tuple[int, Any]
Behaviour = Callable[[Asked], Answer]


@dataclass
class WebService:
    """The server while it runs."""

    listener: socket.socket
    behave: Behaviour
    context: ssl.SSLContext | None = None
    asked: list[Asked] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over: what waits for nothing waits for it."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/score"

    def close(self) -> None:
        self.ended.set()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
            reader = connection.makefile("rb")
            while (asked := _read(reader)) is not None:
                with self.lock:
                    self.asked.append(asked)
                    self.at_once += 1
                    self.most_at_once = max(self.most_at_once, self.at_once)
                try:
                    answer = self.behave(asked)
                    if isinstance(answer, bytes | Iterator):
                        for part in [answer] if isinstance(answer, bytes) else answer:
                            connection.sendall(part)
                        return
                    connection.sendall(whole(answer))
                finally:
                    with self.lock:
                        self.at_once -= 1


def _read(reader: Any) -> Asked | None:
    line = reader.readline().decode().strip()
    if not line:
        return None
    headers = {}
    while text := reader.readline().decode().strip():
        name, _, value = text.partition(":")
        headers[name.lower()] = value.strip()
    size = int(headers.get("content-length", 0))
    body = reader.read(size)
    if len(body) < size:
        return None  # the client has gone
    return Asked(line=line, headers=headers, body=json.loads(body))


def whole(answer: Any, *headers: str) -> bytes:
    """A reply of HTTP: JSON, or `(status, text or JSON)`."""
    status, value = answer if isinstance(answer, tuple) else (200, answer)
    body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@contextmanager
def serving(behave: Behaviour, *, tls: tuple[Path, Path] | None = None) -> Iterator[WebService]:
    """A server that is ended with the block.

    Args:
        tls: files of its certificate and its key.
    """
    context = None if tls is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if context is not None and tls is not None:
        context.load_cert_chain(*tls)
    service = WebService(
        listener=socket.create_server(("127.0.0.1", 0)), behave=behave, context=context
    )
    threading.Thread(target=service.serve, daemon=True).start()
    try:
        yield service
    finally:
        service.close()
