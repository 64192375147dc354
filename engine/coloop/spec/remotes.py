"""Which other machines a loop may name, for checks and for callers.

COLOOP_ALLOWED_REMOTES lists hosts, separated by commas: `scores.example.org`, `*.example.org`,
`10.0.0.5:8000`. A private address is allowed only where it is listed as it stands; a name may lead
to one, so a caller checks every address that it resolves to with `refusal_of_address`.

`secret: judge` in a loop is COLOOP_SECRET_JUDGE, in the environment or as a file.
"""

import ipaddress
import os
import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from coloop.spec.lean import record

SETTING: Final = "COLOOP_ALLOWED_REMOTES"

LOCAL_NAMES: Final = ("localhost", "local", "internal", "localdomain", "home.arpa", "lan")
"""Names, and endings of names, that mean this machine or its own network."""

SECRET_PREFIX: Final = "COLOOP_SECRET_"
SECRETS_SETTING: Final = "COLOOP_SECRETS_DIR"
"""A folder with secrets as files: `coloop_secret_judge` is COLOOP_SECRET_JUDGE."""
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
SECRET_WORDS: Final = re.compile(r"(?i)(^|[_-])(key|token|secret|password|passwd|pwd|auth|sig)s?$")
CARRIERS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
CLOSED: Final = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.0.0/24", "64:ff9b:1::/48", "fec0::/10", "3fff::/20", "5f00::/16"),
    )
)
"""Private networks that some versions of `ipaddress` report as public."""
CLOUDS: Final = frozenset(
    map(
        ipaddress.ip_address,
        ("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"),
    )
)
"""Metadata addresses of clouds, besides link-local ones."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@record
class AllowedRemotes:
    """The hosts that the owner of this machine or server named."""

    hosts: tuple[str, ...] = ()
    """Names, wildcard suffixes (`*.`) or addresses, each with an optional port."""

    @classmethod
    def from_environment(cls) -> Self:
        """The hosts of COLOOP_ALLOWED_REMOTES."""
        parts = os.environ.get(SETTING, "").split(",")
        return cls(hosts=tuple(part.strip().lower() for part in parts if part.strip()))

    def holds(self, host: str, port: int) -> bool:
        plain = host.lower().rstrip(".").strip("[]")
        for name, wanted in map(_parted, self.hosts):
            is_ending = name.startswith("*.") and plain.endswith(name[1:])
            if (is_ending or plain == name) and wanted in (None, port):
                return True
        return False

    def names(self, host: str, port: int) -> bool:
        """Whether a host is listed literally, so that it may resolve to a private address; the port
        must be listed too, unless it is a local name."""
        plain = host.lower().rstrip(".")
        return any(
            plain == name and (wanted == port or (wanted is None and _is_local_name(plain)))
            for name, wanted in map(_parted, self.hosts)
        )


def _parted(listed: str) -> tuple[str, int | None]:
    """Host and port of an entry; None: any port."""
    name, has_port, wanted = listed.rpartition(":")
    if not has_port or not wanted.isdecimal() or name.endswith(":"):
        return listed.strip("[]"), None
    return name.strip("[]"), int(wanted)


@record
class Refused:
    """Why an address may not be called, and what to do."""

    found: str
    hint: str


def refusal(url: str, allowed: AllowedRemotes) -> Refused | None:
    """Why a run may not call this address; None where it may."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError as error:
        return Refused(found=f"it is not an address: {error}", hint="write `https://host/path`")
    if parts.scheme not in ("http", "https") or not host or _has_blanks(url):
        return Refused(found="it is not the address of a service", hint="write `https://host/path`")
    if parts.username is not None or parts.password is not None:
        return Refused(
            found="it contains a user name or a password, which every copy of the loop would show",
            hint="remove them from the address",
        )
    names = (setting.partition("=")[0] for setting in re.split("[&;]", parts.query))
    secret = next((name for name in names if SECRET_WORDS.search(name)), None)
    if secret is not None:
        return Refused(
            found=f"its `{secret}` looks like a secret, which every copy of the loop would show",
            hint="remove it from the address",
        )
    if allowed.holds(host, port or DEFAULT_PORTS[parts.scheme]):
        return None
    address = literal_address(host)
    if (address is not None and not is_public(address)) or _is_local_name(host):
        return Refused(
            found=f"`{host}` is inside a private network or this machine",
            hint=_listing(host, parts.port or DEFAULT_PORTS[parts.scheme]),
        )
    return Refused(
        found=f"`{host}` is not among the hosts that runs may call", hint=_listing(host, parts.port)
    )


def _listing(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    entry = shown if port is None else f"{shown}:{port}"
    return (
        f"list it where the run starts: {SETTING}={entry} (hosts separated by commas; of a server "
        "its owner sets them)"
    )


def refusal_of_address(
    host: str, port: int, address: Address, allowed: AllowedRemotes
) -> Refused | None:
    """Why a run may not connect to an address that a listed host resolves to; None if it may.

    Cloud metadata and multicast addresses must be listed themselves.
    """
    if is_public(address) or allowed.holds(str(address), port):
        return None
    is_service = not (
        address.is_link_local or address.is_multicast or address.is_unspecified
    ) and not (isinstance(address, ipaddress.IPv4Address) and address.is_reserved)
    is_service = is_service and address not in CLOUDS
    if is_service and _carried(address) is None and allowed.names(host, port):
        return None
    shown = f"[{address}]" if address.version == 6 else str(address)
    return Refused(
        found=f"`{host}` resolves to {address}, which is in a private network or this machine",
        hint=f"if that is intended, set this where the run starts: {SETTING}={host},{shown}:{port}",
    )


def secret_variable(name: str) -> str:
    return f"{SECRET_PREFIX}{name.upper()}"


def secret_value(name: str) -> str | None:
    """A secret from the environment or its file; None if there is none."""
    variable, folder = secret_variable(name), os.environ.get(SECRETS_SETTING, "").strip()
    value = os.environ.get(variable, "").strip()
    if not value and folder:
        with suppress(OSError, ValueError):
            value = (Path(folder) / variable.lower()).read_text(encoding="utf-8").strip()
    return value or None


def refusal_of_secret(url: str) -> Refused | None:
    """Why no secret may be sent to an address: it would travel unencrypted over a network."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    address = literal_address(host)
    is_here = address.is_loopback if address is not None else host.rstrip(".") == "localhost"
    if parts.scheme == "https" or is_here:
        return None
    return Refused(
        found="its address starts with `http://`, so the secret would be sent unencrypted",
        hint="use `https://`, or remove `secret`",
    )


def literal_address(host: str) -> Address | None:
    """The address that a host denotes, in any notation that a resolver accepts: `127.1`,
    `0x7f000001`, `017700000001`, `[::ffff:127.0.0.1]`; None for a name."""
    text = host.strip("[]").rstrip(".").partition("%")[0]
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text))
    except (OSError, UnicodeEncodeError):
        return None


def is_public(address: Address) -> bool:
    """Whether an address is public and contains no private one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = [_carried(address), address.sixtofour, *(address.teredo or ())]
        if any(carried is not None and not is_public(carried) for carried in inner):
            return False
        if _carried(address) is not None:
            return True
    is_closed = address in CLOUDS or any(address in network for network in CLOSED)
    return address.is_global and not address.is_multicast and not is_closed


def _carried(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside an IPv6 address: mapped, NAT64 or IPv4-compatible."""
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return None
    if address.ipv4_mapped or not any(address in network for network in CARRIERS):
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _is_local_name(host: str) -> bool:
    plain = host.lower().rstrip(".")
    return "." not in plain or any(
        plain == name or plain.endswith(f".{name}") for name in LOCAL_NAMES
    )


def _has_blanks(url: str) -> bool:
    return any(character.isspace() or not character.isprintable() for character in url) or (
        "\\" in url
    )
