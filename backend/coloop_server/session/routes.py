"""Signing in and out. These routes are open; everything else of the API is behind the token."""

from fastapi import APIRouter, Request, Response

from coloop_server.dependencies import TicketsOf
from coloop_server.errors import SignInNeeded
from coloop_server.session.schemas import SessionState, SignIn
from coloop_server.session.tickets import cookie_name, set_ticket

router = APIRouter(prefix="/session", tags=["session"])


@router.get("", operation_id="getSession")
def get_session(request: Request, tickets: TicketsOf) -> SessionState:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    ticket = request.cookies.get(cookie_name(host_of(request)), "")
    known = tickets.is_token(bearer) or tickets.is_valid(ticket)
    return SessionState(token_needed=True, signed_in=known)


@router.post("", operation_id="signIn", status_code=204)
def sign_in(body: SignIn, request: Request, response: Response, tickets: TicketsOf) -> None:
    if not tickets.take(body.token.strip()):
        raise SignInNeeded("session.wrong_token", "this is not the server's token")
    is_secure = request.url.scheme == "https"
    set_ticket(response, tickets, host=host_of(request), is_secure=is_secure)


@router.delete("", operation_id="signOut", status_code=204)
def sign_out(request: Request, response: Response) -> None:
    response.delete_cookie(cookie_name(host_of(request)), path="/")


def host_of(request: Request) -> str:
    return request.headers.get("host", "")
