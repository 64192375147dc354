"""Signing in and out. These routes are open; everything else of the API is behind the token."""

from fastapi import Request, Response

from coloop_server.dependencies import GuessesOf, TicketsOf
from coloop_server.errors import SignInNeeded
from coloop_server.routers import router_of
from coloop_server.session.schemas import SessionState, SignIn
from coloop_server.session.tickets import cookie_name, set_ticket
from coloop_server.session.visitors import address_of, given_ticket, given_token, is_signed_in

router = router_of("session", "/session")


@router.get("", operation_id="getSession")
async def get_session(request: Request, tickets: TicketsOf, guesses: GuessesOf) -> SessionState:
    known = is_signed_in(request, tickets)
    if not known and given_token(request) is not None:
        await guesses.wrong(address_of(request))
    return SessionState(token_needed=True, signed_in=known)


@router.post("", operation_id="signIn", status_code=204)
async def sign_in(
    body: SignIn, request: Request, response: Response, tickets: TicketsOf, guesses: GuessesOf
) -> None:
    if not tickets.take(body.token.strip()):
        await guesses.wrong(address_of(request))
        raise SignInNeeded("session.wrong_token", "this is not the server's token")
    is_secure = request.url.scheme == "https"
    set_ticket(response, tickets, host=host_of(request), is_secure=is_secure)


@router.delete("", operation_id="signOut", status_code=204)
def sign_out(request: Request, response: Response, tickets: TicketsOf) -> None:
    """The browser's ticket is void from now on, wherever a copy of it lies."""
    tickets.revoke(given_ticket(request))
    response.delete_cookie(cookie_name(host_of(request)), path="/")


def host_of(request: Request) -> str:
    return request.headers.get("host", "")
