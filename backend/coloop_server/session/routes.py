"""Signing in and out. These routes are open; everything else of the API is behind the token."""

from fastapi import Request

from coloop_server.dependencies import GuessesOf, TicketsOf
from coloop_server.errors import SignInNeeded
from coloop_server.routers import router_of
from coloop_server.session.schemas import SessionState, SignedIn, SignIn
from coloop_server.session.visitors import address_of, given_ticket, is_guess, is_signed_in

router = router_of("session", "/session")


@router.get("", operation_id="getSession")
async def get_session(request: Request, tickets: TicketsOf, guesses: GuessesOf) -> SessionState:
    known = is_signed_in(request, tickets)
    if not known and is_guess(request, tickets):
        await guesses.wrong(address_of(request))
    return SessionState(token_needed=True, signed_in=known)


@router.post("", operation_id="signIn")
async def sign_in(
    body: SignIn, request: Request, tickets: TicketsOf, guesses: GuessesOf
) -> SignedIn:
    """Exchange the token for a ticket, which is sent in its place: as `Authorization: Bearer
    TICKET`, and by a WebSocket as the protocols `coloop.v1` and `ticket.TICKET`."""
    if not tickets.take(body.token.strip()):
        await guesses.wrong(address_of(request))
        raise SignInNeeded("session.wrong_token", "the token is wrong")
    return SignedIn(ticket=tickets.issue())


@router.delete("", operation_id="signOut", status_code=204)
def sign_out(request: Request, tickets: TicketsOf) -> None:
    """The browser's ticket is void from now on, wherever a copy of it lies."""
    tickets.revoke(given_ticket(request))
