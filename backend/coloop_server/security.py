"""Who may talk to the server: checks that stand in front of every route and every WebSocket.

    request -> Host known? -> Origin ours? -> token right? -> routes

The Host check stops DNS rebinding, the Origin check stops foreign pages from acting in the user's
name, the token stands for the user: other users of this machine reach the port too. There is no
CORS: a foreign page reads nothing. The page's own files need no token; they hold no secret.
"""

import ipaddress
import logging
import socket
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coloop_server.errors import (
    NotAllowed,
    ServerError,
    SignInNeeded,
    error_response,
)
from coloop_server.pages import OPEN_DOCS
from coloop_server.session.tickets import TicketOffice
from coloop_server.session.visitors import (
    address_of,
    drop_cookies,
    is_guess,
    is_signed_in,
)
from coloop_server.settings import Settings

logger = logging.getLogger(__name__)

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS = OPEN_DOCS | {"/api/health", "/api/session"}
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def is_loopback(host: str) -> bool:
    """Whether `host` can be reached only from this machine."""
    address = ip_address_of(host.strip("[]"))
    return host == "localhost" or (address is not None and address.is_loopback)


def ip_address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def split_netloc(netloc: str, scheme: str) -> tuple[str, int | None] | None:
    """`localhost:8321` -> ("localhost", 8321); None if invalid."""
    try:
        parts = urlsplit(f"//{netloc}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.path or parts.query or parts.username is not None:
        return None
    return host.rstrip("."), port or DEFAULT_PORTS.get(scheme)


class Guard:
    """The checks, as ASGI middleware."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.is_local = is_loopback(settings.host)
        names = {settings.host, *settings.allowed_hosts}
        if not self.is_local:
            names |= {socket.gethostname(), socket.getfqdn()}
        self.names = LOCAL_NAMES | {name.lower().strip("[]") for name in names}
        self.origins = frozenset(origin.rstrip("/").lower() for origin in settings.allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        drop_cookies(scope)
        connection = HTTPConnection(scope)
        try:
            self.check_host(connection)
            self.check_origin(connection)
            moved = await self.clear_address(connection)
            if moved is None:
                await self.check_token(connection)
        except ServerError as error:
            await refuse(error, scope, receive, send)
            return
        if moved is not None:
            await moved(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def check_host(self, connection: HTTPConnection) -> None:
        given = connection.headers.get("host", "")
        parts = split_netloc(given, connection.url.scheme)
        if parts is not None:
            host = parts[0].lower()
            if host in self.names or (not self.is_local and ip_address_of(host)):
                return
        raise NotAllowed(
            "host.not_allowed",
            f"this server does not answer to the host {given!r}; "
            "name it in COLOOP_ALLOWED_HOSTS if it is yours",
        )

    def check_origin(self, connection: HTTPConnection) -> None:
        """Browsers send Origin with every WebSocket and every request that may change state."""
        is_socket = connection.scope["type"] == "websocket"
        if not is_socket and connection.scope["method"] in SAFE_METHODS:
            return
        origin = connection.headers.get("origin")
        if origin is None:
            if connection.headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
                return
        elif self.is_own_origin(origin, connection):
            return
        raise NotAllowed(
            "origin.not_allowed",
            f"a page of {origin or 'another site'} may not use this server; "
            "name its origin in COLOOP_ALLOWED_ORIGINS if it is yours",
        )

    def is_own_origin(self, origin: str, connection: HTTPConnection) -> bool:
        if origin.lower() in self.origins:
            return True
        scheme, _, netloc = origin.lower().partition("://")
        if scheme not in ("http", "https"):
            return False
        ours = split_netloc(connection.headers.get("host", ""), scheme)
        return ours is not None and split_netloc(netloc, scheme) == ours

    async def check_token(self, connection: HTTPConnection) -> None:
        path = connection.scope["path"]
        if path in OPEN_PATHS or not is_api(path):
            return
        tickets: TicketOffice = connection.app.state.tickets
        if is_signed_in(connection, tickets):
            return
        if is_guess(connection, tickets):
            await connection.app.state.throttle.wrong_token(address_of(connection))
        raise SignInNeeded(
            "session.token_needed",
            "this server requires a token: send it as `Authorization: Bearer TOKEN`, "
            "or open the page with #token=TOKEN once",
        )

    async def clear_address(self, connection: HTTPConnection) -> Response | None:
        """Redirects `/?token=SECRET` to `/#token=PASS`. The page exchanges the pass for a ticket,
        so the secret leaves the address; a pass works once and reaches no server's log."""
        if connection.scope["type"] != "http" or connection.scope["method"] != "GET":
            return None
        if is_api(connection.scope["path"]):
            return None
        query = parse_qsl(connection.url.query, keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if not given:
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + connection.scope["path"].lstrip("/\\")
        target = f"{path}?{rest}" if rest else path
        tickets: TicketOffice = connection.app.state.tickets
        if tickets.take(given[-1]):
            target += f"#token={tickets.new_pass()}"
        else:
            await connection.app.state.throttle.wrong_token(address_of(connection))
        return RedirectResponse(target, 303, {"cache-control": "no-store"})


class SecurityHeaders:
    """Headers that restrict the browser to this server's files."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if is_api(scope["path"]):
                    headers.setdefault("cache-control", "no-store")
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def is_api(path: str) -> bool:
    return path == "/api" or path.startswith("/api/")


async def refuse(error: ServerError, scope: Scope, receive: Receive, send: Send) -> None:
    logger.info("refused %s: %s", scope["path"], error)
    if scope["type"] == "websocket":
        # Before the handshake is accepted a close becomes an HTTP 403.
        await send({"type": "websocket.close", "code": 1008, "reason": error.body.code})
        return
    await error_response(error)(scope, receive, send)
