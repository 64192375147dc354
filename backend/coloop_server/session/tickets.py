"""The browser's cookie: a dated proof that it once showed the token, never the token itself."""

import hashlib
import hmac
import secrets
import time

from starlette.responses import Response

COOKIE = "coloop_session"
PASS_BYTES = 24
LIFETIME_SECONDS = 30 * 24 * 3600


class TicketOffice:
    """Issues and checks tickets, and passes that are taken for the token once."""

    def __init__(self, secret: str) -> None:
        self.secret = secret.encode()
        self.passes: set[str] = set()

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.secret)

    def new_pass(self) -> str:
        """For an address that other users may see, such as a browser's command line."""
        made = secrets.token_urlsafe(PASS_BYTES)
        self.passes.add(made)
        return made

    def take(self, text: str) -> bool:
        """Whether the text is the token or a pass; a pass is spent by it."""
        if self.is_token(text):
            return True
        try:
            self.passes.remove(text)
        except KeyError:
            return False
        return True

    def issue(self, now: float | None = None) -> str:
        expires = int((time.time() if now is None else now) + LIFETIME_SECONDS)
        return f"{expires}.{self.sign(str(expires))}"

    def is_valid(self, ticket: str, now: float | None = None) -> bool:
        expires, _, signature = ticket.partition(".")
        if not expires.isdecimal() or len(expires) > 12:
            return False
        if not hmac.compare_digest(
            signature.encode("utf-8", "replace"), self.sign(expires).encode()
        ):
            return False
        return int(expires) > (time.time() if now is None else now)

    def sign(self, text: str) -> str:
        return hmac.new(self.secret, f"coloop ticket {text}".encode(), hashlib.sha256).hexdigest()


def cookie_name(host: str) -> str:
    """A browser keeps one jar for all ports of a name: each server has a cookie of its own."""
    port = host.rpartition("]")[2].rpartition(":")[2] if ":" in host else ""
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE


def set_ticket(response: Response, tickets: TicketOffice, *, host: str, is_secure: bool) -> None:
    response.set_cookie(
        cookie_name(host),
        tickets.issue(),
        max_age=LIFETIME_SECONDS,
        httponly=True,
        samesite="strict",
        secure=is_secure,
        path="/",
    )
