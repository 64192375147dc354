"""Who a connection comes from, as far as its headers prove it."""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.requests import HTTPConnection

from coloop_server.session.tickets import TicketOffice, cookie_name


def given_token(connection: HTTPConnection) -> str | None:
    """The token of a program; None where it brings none."""
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    return given.strip() or None if scheme.lower() == "bearer" else None


def given_ticket(connection: HTTPConnection) -> str:
    """The ticket of a browser; empty where it brings none."""
    name = cookie_name(connection.headers.get("host", ""))
    return read_cookies(connection.headers).get(name, "")


def is_signed_in(connection: HTTPConnection, tickets: TicketOffice) -> bool:
    token = given_token(connection)
    if token is not None and tickets.is_token(token):
        return True
    return tickets.is_valid(given_ticket(connection))


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client is not None else ""


def read_cookies(headers: Mapping[str, Any]) -> dict[str, str]:
    try:
        jar = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}
