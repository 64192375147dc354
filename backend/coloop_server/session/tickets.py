"""The browser's cookie: a dated proof that it once showed the token, never the token itself."""

import hashlib
import hmac
import time

from starlette.responses import Response

COOKIE = "coloop_session"
LIFETIME_SECONDS = 30 * 24 * 3600


class TicketOffice:
    """Issues and checks tickets. Without a secret nothing is ever valid, and nothing is asked."""

    def __init__(self, secret: str | None) -> None:
        self.secret = secret.encode() if secret else None

    def is_token(self, text: str) -> bool:
        if self.secret is None:
            return False
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.secret)

    def issue(self, now: float | None = None) -> str:
        expires = int((time.time() if now is None else now) + LIFETIME_SECONDS)
        return f"{expires}.{self.sign(str(expires))}"

    def is_valid(self, ticket: str, now: float | None = None) -> bool:
        expires, _, signature = ticket.partition(".")
        if self.secret is None or not expires.isdecimal() or len(expires) > 12:
            return False
        if not hmac.compare_digest(
            signature.encode("utf-8", "replace"), self.sign(expires).encode()
        ):
            return False
        return int(expires) > (time.time() if now is None else now)

    def sign(self, text: str) -> str:
        assert self.secret is not None
        return hmac.new(self.secret, f"coloop ticket {text}".encode(), hashlib.sha256).hexdigest()


def set_ticket(response: Response, tickets: TicketOffice, *, is_secure: bool) -> None:
    response.set_cookie(
        COOKIE,
        tickets.issue(),
        max_age=LIFETIME_SECONDS,
        httponly=True,
        samesite="strict",
        secure=is_secure,
        path="/",
    )
