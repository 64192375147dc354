"""One service as a node names it: its address, its limits, and how its failures are told."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from coloop.errors import ServiceFailed
from coloop.spec.remotes import (
    AllowedRemotes,
    Refused,
    refusal,
    refusal_of_secret,
    secret_value,
    secret_variable,
)

PATH: Final = "/%:@!$&'()*+,;=~-._"
QUERY: Final = f"{PATH}?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """See the module."""

    node: str
    field: str
    """Of the address, as the user sees it: `source.url`."""
    url: str
    secret: str | None = None
    """Name of the secret that goes along."""
    timeout_seconds: float = 60.0
    """Longest time for one attempt."""
    retries: int = 3
    concurrency: int = 8
    seed: int = 0
    """Decides how long the pauses between attempts are."""

    @property
    def shown(self) -> str:
        """The address without its query, which may say more than others should read."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def target(self) -> str:
        """The address as it is asked for: in ASCII, without a fragment."""
        parts = urlsplit(self.url)
        host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
        host = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port is not None else ""
        query = f"?{quote(parts.query, safe=QUERY)}" if parts.query else ""
        return f"{parts.scheme}://{host}{port}{quote(parts.path, safe=PATH) or '/'}{query}"

    def failure(self, what: str, hint: str) -> ServiceFailed:
        """The error that says what was found at this service, and what to do."""
        told = f"{self.node}: {self.field}: {self.shown} {what}; {hint}"
        return ServiceFailed(told, self.node, self.field)

    def check(self, allowed: AllowedRemotes) -> None:
        """Raise where it may not be called as it is written."""
        refused = refusal(self.url, allowed)
        if refused is None and self.secret is not None:
            refused = refusal_of_secret(self.url)
        if refused is not None:
            raise self.refused(refused)

    def refused(self, refused: Refused) -> ServiceFailed:
        """The error of a service that may not be called; it repeats nothing of its address."""
        told = f"{self.node}: {self.field}: the service may not be called: {refused.found}"
        return ServiceFailed(f"{told}; {refused.hint}", self.node, self.field)

    def authorization(self) -> str | None:
        """The header's value: the secret with its own scheme, or as a bearer's."""
        if self.secret is None:
            return None
        value = secret_value(self.secret)
        if value is None:
            variable = secret_variable(self.secret)
            raise ServiceFailed(
                f"{self.node}: {self.field}: wants the secret `{self.secret}`, and {variable} is "
                f"not set where this runs ({variable}=... before the command, or a file "
                f"`{variable.lower()}` in COLOOP_SECRETS_DIR)",
                self.node,
                self.field,
            )
        if not (value.isascii() and value.isprintable()):
            raise ServiceFailed(
                f"{self.node}: {self.field}: {secret_variable(self.secret)} is no plain ASCII text",
                self.node,
                self.field,
            )
        return value if " " in value else f"Bearer {value}"
