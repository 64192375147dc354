"""When a service is asked no more for a while.

    closed --FAILURES requests given up in a row--> open --pause is over--> one request tries
      ^                                              ^                         |
      '------------ it was answered -----------------+---- it was given up ----'  (twice the pause)

A pure state: who owns it tells it of the time. A request counts as given up after its last attempt,
so that a short outage, which retries outlast, opens nothing. An answer that is nonsense closes the
circuit like any other: somebody is there.
"""

from dataclasses import dataclass
from typing import Final

FAILURES: Final = 3
"""So many requests in a row are given up before the circuit opens."""
FIRST_PAUSE_SECONDS: Final = 5.0
LONGEST_PAUSE_SECONDS: Final = 60.0


@dataclass(slots=True)
class Circuit:
    """See the module."""

    failures: int = 0
    """Requests given up in a row."""
    opens_at: float = 0.0
    """While open: when one request may try."""
    is_trying: bool = False
    pause_seconds: float = FIRST_PAUSE_SECONDS
    last: str = ""
    """Why the last request was given up."""

    @property
    def is_open(self) -> bool:
        return self.failures >= FAILURES

    def admit(self, now: float) -> bool:
        """Whether a request may be sent; of an open circuit one at a time, when its pause is
        over."""
        if not self.is_open:
            return True
        if self.is_trying or now < self.opens_at:
            return False
        self.is_trying = True
        return True

    def answered(self) -> None:
        """A request got an answer."""
        self.failures, self.is_trying, self.pause_seconds = 0, False, FIRST_PAUSE_SECONDS

    def given_up(self, now: float, why: str) -> None:
        """A request was given up after its last attempt."""
        if self.is_trying:
            self.pause_seconds = min(2 * self.pause_seconds, LONGEST_PAUSE_SECONDS)
        self.failures, self.is_trying, self.last = self.failures + 1, False, why
        if self.is_open:
            self.opens_at = now + self.pause_seconds

    def left(self) -> None:
        """A request was taken back before it had an end."""
        self.is_trying = False
