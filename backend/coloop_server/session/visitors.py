"""Who a connection comes from, as far as its headers prove it.

    Authorization: Bearer TOKEN              a program
    Authorization: Bearer TICKET             a page
    Sec-WebSocket-Protocol: coloop.v1, ticket.TICKET
                                             a page's WebSocket, which can send no other header

Cookies prove nothing: a browser sends those of 127.0.0.1 to every port of it.
"""

from starlette.requests import HTTPConnection
from starlette.types import Scope

from coloop_server.session.tickets import TicketOffice

PROTOCOL = "coloop.v1"
"""What the server answers to a WebSocket that offers protocols; never the one with the ticket."""
TICKET_PREFIX = "ticket."


def given_token(connection: HTTPConnection) -> str | None:
    """The token of a program, or the ticket of a page; None where the header has none."""
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    return given.strip() or None if scheme.lower() == "bearer" else None


def given_ticket(connection: HTTPConnection) -> str:
    """The ticket of a page; empty where it brings none."""
    if (given := given_token(connection)) is not None:
        return given
    offered = [one for one in offered_protocols(connection) if one.startswith(TICKET_PREFIX)]
    return offered[-1].removeprefix(TICKET_PREFIX) if offered else ""


def offered_protocols(connection: HTTPConnection) -> list[str]:
    """What a WebSocket offers; nothing where this is none."""
    if connection.scope["type"] != "websocket":
        return []
    return list(connection.scope.get("subprotocols", ()))


def chosen_protocol(connection: HTTPConnection) -> str | None:
    """What a WebSocket is answered; one that offers something is closed by a browser else."""
    return PROTOCOL if PROTOCOL in offered_protocols(connection) else None


def drop_cookies(scope: Scope) -> None:
    """Nothing here is asked of a cookie. Python's own reader of them takes time that grows with the
    square of their length, so that nothing may read them by chance either."""
    scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"cookie"]


def is_signed_in(connection: HTTPConnection, tickets: TicketOffice) -> bool:
    token = given_token(connection)
    if token is not None and tickets.is_token(token):
        return True
    return tickets.is_valid(given_ticket(connection))


def is_guess(connection: HTTPConnection, tickets: TicketOffice) -> bool:
    """Whether who is not signed in has brought something made up."""
    token = given_token(connection)
    return token is not None and not tickets.was_issued(token)


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client is not None else ""
