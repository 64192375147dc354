"""What each wall stops and what it leaves, in words for the person who runs coloop."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from coloop.sandbox.inside.walls import Wall


@dataclass(frozen=True, slots=True)
class WallWords:
    """Of one wall."""

    holds: str
    """What code of a loop cannot do."""
    remains: str
    """What it still can."""


WORDS: Final[Mapping[Wall, WallWords]] = {
    Wall.NAMESPACES: WallWords(
        holds=(
            "it sees a file system with Python's libraries alone, read only, and no network, no "
            "other process and no other user; it makes only the kernel's calls that computing needs"
        ),
        remains="it can read installed packages, use cores and its memory until its deadline",
    ),
    Wall.CALLS: WallWords(
        holds=(
            "after the modules that it names are imported it can make no call that takes a path, a "
            "socket, a program or another process"
        ),
        remains=(
            "it sees the machine's own name and process number; a module that is imported only "
            "while it works is refused, so import at the top"
        ),
    ),
    Wall.NONE: WallWords(
        holds="mistakes are caught and memory is limited",
        remains=(
            "code that wants to can read and change whatever you can; it runs only after "
            "COLOOP_CODE_WITHOUT_WALL=yes"
        ),
    ),
}
