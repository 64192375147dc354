"""What the hosts' callers need where the processes of a pool are replaced while a run goes on."""

from collections.abc import Mapping
from typing import Protocol

from coloop.workers.shortage import Shortages


class Replacements(Protocol):
    """Gives pools new processes in place of those that have died or hang."""

    @property
    def shortages(self) -> Shortages:
        """What the new ones are to hold at once."""
        ...

    def lives(self) -> Mapping[str, int]:
        """How often each pool was given new processes so far."""
        ...

    def replaced(self, error: Exception, lives: Mapping[str, int]) -> str | None:
        """The pool that an error says has died, once it has new processes that hold what the old
        ones held; None where the error says nothing of the kind, or the pool held what is lost.

        Args:
            lives: before the call that broke; another caller may have met the same dead pool.
        """
        ...


class Irreplaceable:
    """No process is replaced."""

    def __init__(self) -> None:
        self.shortages = Shortages()

    def lives(self) -> Mapping[str, int]:
        return {}

    def replaced(self, error: Exception, lives: Mapping[str, int]) -> str | None:
        del error, lives
        return None
