"""Wrong tokens are answered later and later, and at last not at all.

    wrong token -> few of late? --yes--> answered at once
                       '--no--> few that wait? --yes--> answered in a while
                                     '--no--> 429

Only wrong ones are held against an address: whoever brings the right token, or a valid ticket, is
let in at once, however many others guess beside them, from the same address too.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from coloop_server.errors import TooMany

FREE = 10
"""Wrong tokens of one address that are answered at once."""
FREE_OF_ALL = 100
"""The same, of all addresses together."""
FORGIVEN_PER_SECOND = 1 / 6
WAIT_SECONDS = 2.0
MAX_WAITING = 16
MAX_ADDRESSES = 1024


@dataclass(slots=True)
class Level:
    """A bucket that fills with each wrong token, and leaks."""

    filled: float = 0.0
    at: float = 0.0

    def add(self, now: float) -> float:
        leaked = (now - self.at) * FORGIVEN_PER_SECOND
        self.filled, self.at = max(self.filled - leaked, 0.0) + 1, now
        return self.filled


class Throttle:
    """Counts wrong tokens, by address and in all. Used by the event loop alone."""

    def __init__(self) -> None:
        self.addresses: OrderedDict[str, Level] = OrderedDict()
        self.all = Level()
        self.waiting = 0

    async def wrong_token(self, address: str) -> None:
        """Returns when a wrong token may be answered; raises TooMany where too many wait."""
        if not self.is_over(address, time.monotonic()):
            return
        if self.waiting >= MAX_WAITING:
            raise TooMany("session.too_many", "too many wrong tokens; wait before the next try")
        self.waiting += 1
        try:
            await asyncio.sleep(WAIT_SECONDS)
        finally:
            self.waiting -= 1

    def is_over(self, address: str, now: float) -> bool:
        level = self.addresses.pop(address, Level(at=now))
        self.addresses[address] = level
        while len(self.addresses) > MAX_ADDRESSES:
            self.addresses.popitem(last=False)
        of_all = self.all.add(now)
        return level.add(now) > FREE or of_all > FREE_OF_ALL
