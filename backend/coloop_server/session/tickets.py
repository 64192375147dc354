"""A browser's ticket: a dated proof that it once showed the token, never the token itself.

The page keeps it in the storage of its origin and sends it as a program sends the token. It is no
cookie: a browser sends those of 127.0.0.1 to every port of it, also to servers of other users.

ticket   expires.number.signature       signed with the token: another token, and all are void
signed out   numbers of tickets that were given back, in a file, until they would have expired
"""

import hashlib
import hmac
import secrets
import threading
import time
from pathlib import Path

from coloop_server.errors import Unavailable
from coloop_server.private import read_or_write, write_private
from coloop_server.settings import MIN_TOKEN, Settings

PASS_BYTES = 24
NUMBER_BYTES = 16
LIFETIME_SECONDS = 30 * 24 * 3600
PASS_SECONDS = 600.0
MAX_TICKET = 200
KIND = "ticket of an origin"
"""Part of the signed text, so that values signed for another use, such as a cookie, are not valid
tickets."""


class TicketOffice:
    """Issues and checks tickets and one-time passes."""

    def __init__(self, secret: str, signed_out: Path | None = None) -> None:
        self.secret = secret.encode()
        self.signed_out = signed_out
        """File of revoked tickets; None: they are forgotten with this process."""
        self.lock = threading.Lock()
        self.passes: dict[str, float] = {}
        """Each with its expiry time."""
        self.revoked = read_revoked(signed_out)
        """Numbers of revoked tickets, each with its expiry time."""

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.secret)

    def new_pass(self) -> str:
        """For addresses that other users may see, such as a browser's command line."""
        made, now = secrets.token_urlsafe(PASS_BYTES), time.monotonic()
        with self.lock:
            self.passes = {name: until for name, until in self.passes.items() if until > now}
            self.passes[made] = now + PASS_SECONDS
        return made

    def take(self, text: str) -> bool:
        """Whether the text is the token or a pass; a pass is spent by it."""
        if self.is_token(text):
            return True
        with self.lock:
            good_until = self.passes.pop(text, None)
        return good_until is not None and time.monotonic() < good_until

    def issue(self, now: float | None = None) -> str:
        expires = int((time.time() if now is None else now) + LIFETIME_SECONDS)
        text = f"{expires}.{secrets.token_hex(NUMBER_BYTES)}"
        return f"{text}.{self.sign(text)}"

    def is_valid(self, ticket: str, now: float | None = None) -> bool:
        if not self.was_issued(ticket):
            return False
        expires, number, _ = ticket.split(".")
        is_fresh = int(expires) > (time.time() if now is None else now)
        return is_fresh and number not in self.revoked

    def was_issued(self, ticket: str) -> bool:
        """Whether it was a ticket once: who brings one that has run out is not guessing."""
        text, _, signature = ticket.rpartition(".")
        expires, _, number = text.partition(".")
        if len(ticket) > MAX_TICKET or not (expires.isascii() and expires.isdecimal()):
            return False
        is_signed = hmac.compare_digest(
            signature.encode("utf-8", "replace"), self.sign(text).encode()
        )
        return is_signed and bool(number)

    def revoke(self, ticket: str) -> None:
        """A browser signs out: its ticket is void from now on, copies of it, too."""
        if not self.is_valid(ticket):
            return
        expires, number, _ = ticket.split(".")
        with self.lock:
            now = int(time.time())
            kept = {name: until for name, until in self.revoked.items() if until > now}
            self.revoked = kept | {number: int(expires)}
            if self.signed_out is not None:
                lines = (f"{name} {until}\n" for name, until in self.revoked.items())
                write_private(self.signed_out, "".join(lines))

    def sign(self, text: str) -> str:
        message = f"coloop {KIND} {text}".encode("utf-8", "replace")
        return hmac.new(self.secret, message, hashlib.sha256).hexdigest()


def read_revoked(file: Path | None) -> dict[str, int]:
    """What was given back to an earlier server of this folder."""
    if file is None or not file.is_file():
        return {}
    pairs = (
        line.split() for line in file.read_text(encoding="utf-8", errors="replace").split("\n")
    )
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


TOKEN_FILE = "token"
TOKEN_BYTES = 24


def token_file(data_dir: Path) -> Path:
    return data_dir / TOKEN_FILE


def own_secret(settings: Settings) -> str:
    """COLOOP_TOKEN, or one made at the first start, in a file that only this user can read: other
    users reach a port on the loopback address too, and the API runs code."""
    if settings.secret is not None:
        return settings.secret
    file = token_file(settings.data_dir)
    secret = read_or_write(file, secrets.token_urlsafe(TOKEN_BYTES))
    if len(secret) < MIN_TOKEN:
        raise Unavailable(
            "session.short_token",
            f"the token in {file} has {len(secret)} characters, at least {MIN_TOKEN} are needed; "
            "remove the file, and the server makes a new one",
        )
    return secret
