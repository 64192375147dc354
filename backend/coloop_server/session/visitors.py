"""Who a connection comes from, as far as its headers prove it."""

from starlette.requests import HTTPConnection
from starlette.types import Scope

from coloop_server.session.tickets import MAX_TICKET, TicketOffice, cookie_name


def given_token(connection: HTTPConnection) -> str | None:
    """The token of a program; None where it brings none."""
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    return given.strip() or None if scheme.lower() == "bearer" else None


def given_ticket(connection: HTTPConnection) -> str:
    """The ticket of a browser; empty where it brings none. A ticket is never in quotes: unquoting
    takes Python's own reader of cookies time that grows with the square of their length."""
    name = cookie_name(connection.headers.get("host", ""))
    pairs = [one.partition("=") for one in connection.headers.get("cookie", "").split(";")]
    given = [value.strip() for key, _, value in pairs if key.strip() == name]
    return given[-1] if given and len(given[-1]) <= MAX_TICKET else ""


def hide_other_cookies(scope: Scope) -> None:
    """Leave a browser's ticket alone among its cookies, for what reads all of them later."""
    connection = HTTPConnection(scope)
    ticket = given_ticket(connection)
    kept = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
    if ticket:
        name = cookie_name(connection.headers.get("host", ""))
        kept.append((b"cookie", f"{name}={ticket}".encode("latin-1")))
    scope["headers"] = kept


def is_signed_in(connection: HTTPConnection, tickets: TicketOffice) -> bool:
    token = given_token(connection)
    if token is not None and tickets.is_token(token):
        return True
    return tickets.is_valid(given_ticket(connection))


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client is not None else ""
