"""Parses and validates the replies of services.

Replies are not trusted: length, depth and numbers are checked. Their text is kept apart from our
messages, because it may repeat what was sent, secrets included.
"""

import json
import re
import time
from collections.abc import AsyncIterable, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which a request is retried."""
UNACCEPTED: Final = frozenset({400, 404, 422})
PATH_HINT: Final = "check that the address is the full path that answers POST"
LONGEST_SHOWN: Final = 120
"""Maximum characters of a reply in an error message."""
DEEPEST: Final = 20
"""Maximum nesting of lists and objects."""

Headers = Sequence[tuple[bytes, bytes]]


class Answered(Exception):
    """A reply that cannot be used."""

    body = b""
    """The whole reply, where its status is an error."""

    def __init__(self, found: str, said: str = "") -> None:
        """
        Args:
            found: what is wrong, in our words.
            said: an excerpt of the reply; it may repeat anything that was sent.
        """
        super().__init__(found, said)
        self.found, self.said = found, said

    def mentions(self, *names: str) -> bool:
        """Whether the reply contains one of these names of fields."""
        text = self.body.decode("utf-8", "replace")
        return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)

    def told(self, *, is_quiet: bool) -> str:
        """The message; `is_quiet` leaves out the excerpt."""
        return f"{self.found}: {self.said}" if self.said and not is_quiet else self.found


class Nonsense(Answered):
    """A reply that a retry would not change."""

    def __init__(self, found: str, hint: str, said: str = "") -> None:
        super().__init__(found, said)
        self.hint = hint


class Unaccepted(Nonsense):
    """A reply that rejects the request itself: status 400, 404 or 422."""

    def __init__(self, found: str, hint: str, body: bytes) -> None:
        super().__init__(found, hint, shown(body))
        self.body = body


class Busy(Answered):
    """A failure after which a retry may help."""

    def __init__(self, found: str, said: str = "", seconds: float = 0.0, body: bytes = b"") -> None:
        """`seconds`: the delay that the service asks for (`Retry-After`)."""
        super().__init__(found, said)
        self.seconds, self.body = seconds, body


async def read_body(chunks: AsyncIterable[bytes], most: int) -> bytes:
    """The body of a reply; raises Nonsense above `most` bytes."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > most:
            raise Nonsense(
                f"answered more than the limit of {most:,} bytes",
                "it should answer only what was requested",
            )
    return bytes(body)


def check_status(status: int, headers: Headers, body: bytes) -> None:
    """Raise Busy or Nonsense for every status but 200."""
    if status == 200:
        return
    if 300 <= status < 400:
        raise Nonsense(
            f"answered status {status}, a redirect, which is not followed",
            "use the final address of the service",
            _host(headers),
        )
    answered = f"answered status {status}"
    if status in RETRIED:
        raise Busy(answered, shown(body), _retry_after(headers), body)
    hint = "check the log of the service"
    if status in UNACCEPTED:
        if status == 404:
            hint = PATH_HINT
        raise Unaccepted(answered, hint, body)
    if status in (401, 403):
        hint = "name its key in `secret`, or check that the key is still valid"
    elif status == 405:
        hint = PATH_HINT
    raise Nonsense(answered, hint, shown(body))


def parse(body: bytes, headers: Headers) -> Any:
    """The JSON of a reply; raises Nonsense if it is invalid, has NaN, or is nested too deeply."""
    coding = _header(headers, b"content-encoding")
    if coding not in ("", "identity"):
        raise Nonsense(
            "answered a body in an encoding that was not requested",
            "let it answer plain JSON",
            coding,
        )
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        what = "answered something other than JSON" if body else "answered nothing"
        raise Nonsense(what, "let it answer JSON in UTF-8", shown(body)) from None
    if is_nested_deeper(value, DEEPEST):
        raise Nonsense(
            f"answered lists nested deeper than {DEEPEST}", "let it answer what was requested"
        )
    return value


def shown(value: Any) -> str:
    """A short excerpt of a value, on one line."""
    if isinstance(value, bytes):
        if not value:
            return ""
        value = value[: 4 * LONGEST_SHOWN].decode("utf-8", "replace")
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _no_number(word: str) -> NoReturn:
    raise Nonsense(
        f"answered `{word}`, which is not a number",
        "let it answer null if it has none",
    )


def is_nested_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [
            inner
            for item in level
            if isinstance(item, list | dict)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def _header(headers: Headers, name: bytes) -> str:
    value = next((value for key, value in headers if key.lower() == name), b"")
    return value.decode("latin-1").strip().lower()


def _host(headers: Headers) -> str:
    """The host that a redirect leads to; without its path, which may be confidential."""
    try:
        host = urlsplit(_header(headers, b"location")).hostname
    except ValueError:
        host = None
    return f"`{host[:LONGEST_SHOWN]}`" if host and host.isprintable() else ""


def _retry_after(headers: Headers) -> float:
    """Seconds until the time that the service names, as a number or as a date; 0 without one."""
    text = _header(headers, b"retry-after")
    if text.isdecimal() and len(text) < 6:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0
