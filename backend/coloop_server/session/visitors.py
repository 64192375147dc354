"""Who a connection comes from, as far as its headers prove it.

    Authorization: Bearer TOKEN              a program
    Authorization: Bearer TICKET             a page
    Sec-WebSocket-Protocol: coloop.v1, ticket.TICKET
                                             a page's WebSocket, which can send no other header

Cookies prove nothing: a browser sends those of 127.0.0.1 to every port on it.
"""

from starlette.requests import HTTPConnection
from starlette.types import Scope

from coloop_server.session.tickets import TicketOffice

PROTOCOL = "coloop.v1"
"""The only subprotocol that the server accepts, so that it never echoes the one with the ticket."""
TICKET_PREFIX = "ticket."


def given_token(connection: HTTPConnection) -> str | None:
    """A program's token or a page's ticket, from `Authorization`; None where it has neither."""
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    return given.strip() or None if scheme.lower() == "bearer" else None


def given_ticket(connection: HTTPConnection) -> str:
    """What was sent as a ticket, in either header; empty where nothing was."""
    if (given := given_token(connection)) is not None:
        return given
    tickets = [name for name in offered_protocols(connection) if name.startswith(TICKET_PREFIX)]
    return tickets[-1].removeprefix(TICKET_PREFIX) if tickets else ""


def offered_protocols(connection: HTTPConnection) -> list[str]:
    """The subprotocols that a WebSocket offers; empty for any other connection."""
    if connection.scope["type"] != "websocket":
        return []
    return list(connection.scope.get("subprotocols", ()))


def chosen_protocol(connection: HTTPConnection) -> str | None:
    """The subprotocol to accept: a browser that offers some fails the WebSocket if none is."""
    return PROTOCOL if PROTOCOL in offered_protocols(connection) else None


def drop_cookies(scope: Scope) -> None:
    """Remove the cookies, which the server never uses. Python's cookie parser takes time quadratic
    in their length, so nothing should parse them by accident either."""
    scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"cookie"]


def is_signed_in(connection: HTTPConnection, tickets: TicketOffice) -> bool:
    token = given_token(connection)
    if token is not None and tickets.is_token(token):
        return True
    return tickets.is_valid(given_ticket(connection))


def is_guess(connection: HTTPConnection, tickets: TicketOffice) -> bool:
    """Whether a connection that is not signed in sent a made-up token, not just an old ticket."""
    token = given_token(connection)
    return token is not None and not tickets.was_issued(token)


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client is not None else ""
