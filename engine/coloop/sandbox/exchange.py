"""Messages over two pipes to a process that may be hostile, with limits on time and memory.

    8 bytes length, JSON (ASCII) ---> child ---> 8 bytes length, JSON (ASCII)

Time in which the whole machine is paused does not count. While an exchange waits, `tick` is called,
also while bytes keep arriving.
"""

import json
import math
import os
import select
import time
from collections.abc import Callable
from typing import Any, Final

LARGEST_REPLY: Final = 17 * 2**20
HEAVIEST_REPLY: Final = 256 * 2**20
"""Maximum bytes of memory for the values of a reply, estimated by WEIGHTS."""
WEIGHTS: Final = {b"{": 250, b"[": 80, b",": 80, b":": 60}
"""Upper bounds of the memory that each of these characters stands for: a dict, a list, an item, a
key."""
CHUNK: Final = 1 << 20
TICK_SECONDS: Final = 0.1
LONGEST_COUNTED: Final = 2 * TICK_SECONDS
"""Maximum time that counts between two readings of the clock; more means that the machine was
paused."""


class Ended(Exception):
    """The child closed its end of a pipe."""


class Late(Exception):
    """The exchange took longer than its limit."""


class TooLong(Exception):
    """The reply is too long, or its values need too much memory."""


class Forged(Exception):
    """The reply is not a JSON object, or not the one that was requested."""


class Ticked(Exception):
    """`tick` raised `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Pipes:
    def __init__(self, to_child: int, from_child: int) -> None:
        self.to_child = to_child
        self.from_child = from_child
        self.tick: Callable[[], None] | None = None
        self._next_tick = 0.0
        self._looked_at = 0.0
        self._left = 0.0
        self._given = 0.0
        os.set_blocking(to_child, False)

    def begin(self, tick: Callable[[], None] | None, seconds: float) -> None:
        """Start the clock of an exchange; `tick` is called a few times a second while it waits."""
        self.tick = tick
        self._given = self._left = seconds
        self._looked_at = time.monotonic()
        self._next_tick = self._looked_at + TICK_SECONDS

    def spent(self) -> float:
        self._count()
        return self._given - self._left

    def close(self) -> None:
        for descriptor in (self.to_child, self.from_child):
            os.close(descriptor)

    def send(self, payload: bytes) -> None:
        left = memoryview(len(payload).to_bytes(8, "big") + payload)
        while left:
            self._wait(self.to_child, select.POLLOUT)
            try:
                left = left[os.write(self.to_child, left[:CHUNK]) :]
            except BrokenPipeError:
                raise Ended from None
            except BlockingIOError:
                continue

    def receive(self) -> dict[str, Any]:
        length = int.from_bytes(self._read(8), "big")
        if length > LARGEST_REPLY:
            raise TooLong
        payload = self._read(length)
        if sum(weight * payload.count(sign) for sign, weight in WEIGHTS.items()) > HEAVIEST_REPLY:
            raise TooLong
        try:
            reply = json.loads(payload.decode("ascii"), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise Forged from None
        if not isinstance(reply, dict):
            raise Forged
        return reply

    def has_answer(self) -> bool:
        """Whether there is data to read, or the child closed its end."""
        poll = select.poll()
        poll.register(self.from_child, select.POLLIN)
        return bool(poll.poll(0))

    def _read(self, count: int) -> bytearray:
        data = bytearray()
        while len(data) < count:
            self._wait(self.from_child, select.POLLIN)
            part = os.read(self.from_child, min(count - len(data), CHUNK))
            if not part:
                raise Ended
            data += part
        return data

    def _wait(self, descriptor: int, event: int) -> None:
        """Wait until a pipe is ready; raises `Late` after the time limit, and `Ticked` if the tick
        raises."""
        poll = select.poll()
        poll.register(descriptor, event)
        while (left := self._look()) > 0:
            if poll.poll(math.ceil(min(left, TICK_SECONDS) * 1000)):
                return
        raise Late

    def _look(self) -> float:
        """Tick if that is due, and return the seconds left."""
        self._count()
        if self._looked_at >= self._next_tick:
            self._next_tick = self._looked_at + TICK_SECONDS
            self._tick()
        return self._left

    def _count(self) -> None:
        now = time.monotonic()
        self._left -= min(now - self._looked_at, LONGEST_COUNTED)
        self._looked_at = now

    def _tick(self) -> None:
        if self.tick is not None:
            try:
                self.tick()
            except Exception as error:
                raise Ticked(error) from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
