"""Signing in and out. These routes are open; everything else of the API is behind the token."""

from fastapi import Request
from pydantic import Field

from coloop_server.dependencies import ThrottleOf, TicketsOf
from coloop_server.errors import SignInNeeded, router_of
from coloop_server.schemas import Input, Output
from coloop_server.session.visitors import address_of, given_ticket, is_guess, is_signed_in


class SignIn(Input):
    token: str = Field(max_length=4096)
    """The server's token: COLOOP_TOKEN, or what the file `token` of its data folder says."""


class SignedIn(Output):
    ticket: str
    """Stands for the token for 30 days, or until its browser signs out."""


class SessionState(Output):
    token_needed: bool
    """Whether this server has a token at all."""
    signed_in: bool
    """Whether this browser may use the API."""


router = router_of("session", "/session")


@router.get("", operation_id="getSession")
async def get_session(request: Request, tickets: TicketsOf, throttle: ThrottleOf) -> SessionState:
    known = is_signed_in(request, tickets)
    if not known and is_guess(request, tickets):
        await throttle.wrong_token(address_of(request))
    return SessionState(token_needed=True, signed_in=known)


@router.post("", operation_id="signIn")
async def sign_in(
    body: SignIn, request: Request, tickets: TicketsOf, throttle: ThrottleOf
) -> SignedIn:
    """Exchange the token for a ticket, which is sent in its place: as `Authorization: Bearer
    TICKET`, and by a WebSocket as the protocols `coloop.v1` and `ticket.TICKET`."""
    if not tickets.take(body.token.strip()):
        await throttle.wrong_token(address_of(request))
        raise SignInNeeded("session.wrong_token", "the token is wrong")
    return SignedIn(ticket=tickets.issue())


@router.delete("", operation_id="signOut", status_code=204)
def sign_out(request: Request, tickets: TicketsOf) -> None:
    """The browser's ticket is void from now on, wherever a copy of it lies."""
    tickets.revoke(given_ticket(request))
