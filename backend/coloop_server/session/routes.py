"""Signing in and out. These routes are open; everything else of the API is behind the token."""

from fastapi import Request
from pydantic import Field

from coloop_server.dependencies import ThrottleOf, TicketsOf
from coloop_server.errors import SignInNeeded, router_of
from coloop_server.schemas import Input, Output
from coloop_server.session.visitors import address_of, given_ticket, is_guess, is_signed_in


class SignIn(Input):
    token: str = Field(max_length=4096)
    """Token of the server: the value of `COLOOP_TOKEN`, or else the content of the file `token` in
    its data folder."""


class SignedIn(Output):
    ticket: str
    """Replaces the token for 30 days, or until sign-out."""


class SessionState(Output):
    token_needed: bool
    """Whether the API requires a token."""
    signed_in: bool
    """Whether this request had a valid token or ticket."""


router = router_of("session", "/session")


@router.get("", operation_id="getSession")
async def get_session(request: Request, tickets: TicketsOf, throttle: ThrottleOf) -> SessionState:
    """Whether the client is signed in."""
    known = is_signed_in(request, tickets)
    if not known and is_guess(request, tickets):
        await throttle.wrong_token(address_of(request))
    return SessionState(token_needed=True, signed_in=known)


@router.post("", operation_id="signIn")
async def sign_in(
    body: SignIn, request: Request, tickets: TicketsOf, throttle: ThrottleOf
) -> SignedIn:
    """Exchange the token for a ticket. HTTP requests send it as `Authorization: Bearer TICKET`,
    WebSockets as the subprotocols `coloop.v1` and `ticket.TICKET`."""
    if not tickets.take(body.token.strip()):
        await throttle.wrong_token(address_of(request))
        raise SignInNeeded("session.wrong_token", "the token is wrong")
    return SignedIn(ticket=tickets.issue())


@router.delete("", operation_id="signOut", status_code=204)
def sign_out(request: Request, tickets: TicketsOf) -> None:
    """Revoke the ticket that the request was sent with. All its copies become invalid."""
    tickets.revoke(given_ticket(request))
