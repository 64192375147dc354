"""Signing in and out. These routes are open; everything else of the API is behind the token."""

from fastapi import APIRouter, Request, Response

from coloop_server.dependencies import SettingsOf
from coloop_server.errors import SignInNeeded
from coloop_server.session.schemas import SessionState, SignIn
from coloop_server.session.tickets import COOKIE, TicketOffice, set_ticket

router = APIRouter(prefix="/session", tags=["session"])


@router.get("", operation_id="getSession")
def get_session(request: Request, settings: SettingsOf) -> SessionState:
    tickets = TicketOffice(settings.secret)
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    known = tickets.is_token(bearer) or tickets.is_valid(request.cookies.get(COOKIE, ""))
    needed = settings.secret is not None
    return SessionState(token_needed=needed, signed_in=known or not needed)


@router.post("", operation_id="signIn", status_code=204)
def sign_in(body: SignIn, request: Request, response: Response, settings: SettingsOf) -> None:
    tickets = TicketOffice(settings.secret)
    if settings.secret is not None and not tickets.is_token(body.token.strip()):
        raise SignInNeeded("session.wrong_token", "this is not the server's token")
    if settings.secret is not None:
        set_ticket(response, tickets, is_secure=request.url.scheme == "https")


@router.delete("", operation_id="signOut", status_code=204)
def sign_out(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/")
