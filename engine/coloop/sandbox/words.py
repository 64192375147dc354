"""What each isolation prevents and what it leaves, in words for the person who runs coloop."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from coloop.sandbox.inside.isolation import Isolation


@dataclass(frozen=True, slots=True)
class IsolationWords:
    """Of one isolation."""

    holds: str
    """What code of a loop cannot do."""
    remains: str
    """What it still can."""


WORDS: Final[Mapping[Isolation, IsolationWords]] = {
    Isolation.NAMESPACES: IsolationWords(
        holds=(
            "its file system has only Python's libraries, read-only; it has no network and sees no "
            "other processes or users; it can only make the system calls that computation needs"
        ),
        remains="it can read installed packages, and use cores and memory until its deadline",
    ),
    Isolation.CALLS: IsolationWords(
        holds=(
            "once the modules that it names are imported, it can make no system call that takes a "
            "path, a socket, a program or another process"
        ),
        remains=(
            "it sees the host name and its own process id; modules that are imported later are "
            "refused, so import them at the top"
        ),
    ),
    Isolation.NONE: IsolationWords(
        holds="mistakes are caught and memory is limited",
        remains=(
            "malicious code can read and change everything that you can; it runs only with "
            "COLOOP_ALLOW_UNSANDBOXED_CODE=yes"
        ),
    ),
}
