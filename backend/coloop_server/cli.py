"""`coloop serve`: checks what can go wrong before the server starts, then serves.

What a user can set wrongly ends in one line on standard error and a status that is not 0.
"""

import errno
import logging
import os
import signal
import socket
import sys
import threading
import time
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import ValidationError
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

from coloop.sandbox.inside.kernel import keep_private
from coloop.workers import collecting
from coloop_server.app import create_app
from coloop_server.calibrating import calibrated
from coloop_server.connections import bounded, impatient
from coloop_server.database.connect import migrate, open_engine, open_sessions
from coloop_server.errors import ServerError
from coloop_server.launchers.local_ray import free_ports
from coloop_server.lock import DatabaseLease, DataLock
from coloop_server.private import ensure_private_folder
from coloop_server.processes import PRIVATE_UMASK
from coloop_server.runs.stream import CLOSE_SECONDS
from coloop_server.security import is_loopback
from coloop_server.session.tickets import TicketOffice, own_secret
from coloop_server.settings import FILES, Settings

PING_SECONDS = 15.0
OPEN_SECONDS = 30.0
STALLS = 3
"""Multiples of `send_seconds` after which a client that does not read is disconnected. A client of
the live stream has until its close is given up."""


def serve(
    host: str | None = None,
    port: int | None = None,
    open_browser: bool = True,
    data_dir: Path | None = None,
    allow_remote_code: bool | None = None,
) -> None:
    """Serve until interrupted. None: from the environment, or the default."""
    keep_private()
    os.umask(PRIVATE_UMASK)
    settings = read_settings(
        host=host, port=port, data_dir=data_dir, allow_remote_code=allow_remote_code
    )
    check_address(settings)
    listener = listen(settings.host, settings.port)
    try:
        with DataLock(settings.data_dir) as lock:
            if settings.allowed_roots[0] == settings.data_dir / FILES:
                ensure_private_folder(settings.allowed_roots[0])
            own_secret(settings)
            check_database(settings)
            run_server(settings, listener, lock, open_browser=open_browser)
    except ServerError as error:
        raise SystemExit(f"error: {error}") from error
    finally:
        listener.close()


def read_settings(**given: Any) -> Settings:
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        lines = [
            f"error: COLOOP_{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}"
            for problem in error.errors(include_input=False)
        ]
        raise SystemExit("\n".join(lines)) from error


def check_address(settings: Settings) -> None:
    if settings.secret is None and not is_loopback(settings.host):
        raise SystemExit(
            f"error: {settings.host} can be reached from other machines, so a token is needed: "
            "set COLOOP_TOKEN to a long secret, or leave --host at 127.0.0.1"
        )


def check_database(settings: Settings) -> None:
    """Open, migrate and claim the database, so that an unusable one ends the start in a line."""
    engine = open_engine(settings.database)
    try:
        migrate(engine)
        lease = DatabaseLease(open_sessions(engine), settings.data_dir)
        lease.claim()
        lease.close()
    finally:
        engine.dispose()


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, so that a used port is detected before anything starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise SystemExit(describe_bind_error(host, port, error)) from error
    return listener


def describe_bind_error(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            [free] = free_ports(1)
            return (
                f"error: port {port} on {host} is in use by another program; "
                f"port {free} is free: coloop serve --port {free}"
            )
        case errno.EACCES:
            return f"error: this user may not use port {port}; choose one above 1023"
        case _:
            return f"error: cannot serve on {host}:{port}: {error.strerror or error}"


class Server(uvicorn.Server):
    """Notifies the server's threads when it is asked to end."""

    def __init__(self, config: uvicorn.Config, ending: threading.Event) -> None:
        super().__init__(config)
        self.ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.ending.set()
        super().handle_exit(sig, frame)


def run_server(
    settings: Settings, listener: socket.socket, lock: DataLock, *, open_browser: bool
) -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # every request to the hub
    app = create_app(settings, lock)
    collecting.less_often_until_exit()
    config = uvicorn.Config(
        app,
        http=bounded(impatient(AutoHTTPProtocol, STALLS * settings.send_seconds)),
        ws=impatient(AutoWebSocketsProtocol, settings.send_seconds + CLOSE_SECONDS),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_max_size=64 * 1024,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=5,
        lifespan="on",
    )
    server = Server(config, app.state.ending)
    url = address_of(settings.host, listener.getsockname()[1])
    greeter = threading.Thread(target=greet, args=(server, app, url, open_browser), daemon=True)
    greeter.start()
    # uvicorn passes a signal on to whom it found here after it has ended in good order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    with calibrated():
        server.run(sockets=[listener])
    if not server.started:
        raise SystemExit("error: the server could not start; the lines above say why")


def greet(server: uvicorn.Server, app: FastAPI, url: str, open_browser: bool) -> None:
    """Print the page's address once it answers. A token from the settings is not printed."""
    deadline = time.monotonic() + OPEN_SECONDS
    while not server.started and not server.should_exit and time.monotonic() < deadline:
        time.sleep(0.05)
    if not server.started:
        return
    settings: Settings = app.state.settings
    tickets: TicketOffice = app.state.tickets
    shown = url if settings.secret else f"{url}/#token={own_secret(settings)}"
    sys.stdout.write(f"coloop is at {shown}\nCtrl-C ends it\n")
    sys.stdout.flush()
    if open_browser:
        # Other users see a browser's command line: what stands there is good for one look.
        webbrowser.open(f"{url}/#token={tickets.new_pass()}")


def address_of(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown and '[' not in shown else shown}:{port}"
