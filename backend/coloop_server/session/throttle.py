"""Limits how fast wrong tokens are answered: at once at first, then after a wait, then with 429.

    wrong token -> few recently? --yes--> answered at once
                        '--no--> few waiting? --yes--> answered after a wait
                                      '--no--> 429

Only wrong tokens count against an address: whoever sends the right token or a valid ticket is let
in at once, however many others are guessing, even from the same address.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from coloop_server.errors import TooMany

FREE = 10
"""Wrong tokens per address that are answered at once."""
FREE_OF_ALL = 100
"""The same for all addresses together."""
FORGIVEN_PER_SECOND = 1 / 6
WAIT_SECONDS = 2.0
MAX_WAITING = 16
MAX_ADDRESSES = 1024


@dataclass(slots=True)
class Level:
    """A leaky bucket of wrong tokens."""

    filled: float = 0.0
    at: float = 0.0

    def add(self, now: float) -> float:
        leaked = (now - self.at) * FORGIVEN_PER_SECOND
        self.filled, self.at = max(self.filled - leaked, 0.0) + 1, now
        return self.filled


class Throttle:
    """Counts wrong tokens, per address and in total. Used only in the event loop."""

    def __init__(self) -> None:
        self.addresses: OrderedDict[str, Level] = OrderedDict()
        self.all = Level()
        self.waiting = 0

    async def wrong_token(self, address: str) -> None:
        """Return when a wrong token may be answered; raises TooMany if too many are waiting."""
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
        total = self.all.add(now)
        return level.add(now) > FREE or total > FREE_OF_ALL
