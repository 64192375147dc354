"""JSON requests to a service over HTTP, several at once, with retries.

    caller's thread: ask -> Future ... collect(futures, tick)        its own thread: asyncio

`collect` calls `tick` five times a second, and cancels unfinished requests when it raises. The
order of answers does not matter.
"""

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final, TypeVar

import httpcore2

from coloop.data.seeds import derive_seed
from coloop.data.services.endpoint import CheckedNetwork, Endpoint
from coloop.data.services.replies import (
    Answered,
    Busy,
    Nonsense,
    check_status,
    parse,
    read_body,
)
from coloop.errors import ServiceFailed
from coloop.spec.remotes import AllowedRemotes

Read = TypeVar("Read")

TICK_SECONDS: Final = 0.2
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
LONGEST_ASKED_SECONDS: Final = 120.0
"""Longest pause that a service can ask for (`Retry-After`)."""
CLOSING_SECONDS: Final = 1.0
LARGEST_REPLY: Final = 8 * 2**20
AGENT: Final = "coloop"


class Service:
    def __init__(
        self,
        endpoint: Endpoint,
        *,
        largest_reply: int = LARGEST_REPLY,
        gate: Callable[[], None] | None = None,
        amend: Callable[[Any, Answered], Any] | None = None,
    ) -> None:
        """Raises `ServiceFailed` if the service may not be called, or its secret is missing.

        Args:
            gate: called before each request is sent; raises `ServiceFailed` to prevent it.
            amend: gives another body for one that the service answered with an error, or None.
        """
        self.endpoint = endpoint
        allowed = AllowedRemotes.from_environment()
        endpoint.check(allowed)
        self._largest = largest_reply
        self._gate, self._amend = gate, amend
        self._headers = _headers(endpoint)
        self._circuit = Circuit()
        self._room = asyncio.Semaphore(endpoint.concurrency)
        self._pool = httpcore2.AsyncConnectionPool(
            max_connections=endpoint.concurrency,
            network_backend=CheckedNetwork(endpoint, allowed),
            http2=False,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True, name="coloop-service")
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return self._circuit.is_open

    def ask(self, body: Any, read: Callable[[Any], Read]) -> "Future[Read]":
        """Send a JSON body; the future gets the result of `read` for the reply, or `ServiceFailed`.

        Args:
            read: converts the JSON of the reply; raises `Nonsense` if that is invalid.
        """
        return asyncio.run_coroutine_threadsafe(self._ask(body, read), self._loop)

    def close(self) -> None:
        if self._thread.is_alive():
            ending = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            wait([ending], timeout=CLOSING_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSING_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    async def _ask(self, body: Any, read: Callable[[Any], Read]) -> Read:
        async with self._room:
            if not self._circuit.admit(time.monotonic()):
                raise self._rests()
            try:
                return await self._tried(body, read)
            except BaseException:
                self._circuit.left()
                raise

    async def _tried(self, body: Any, read: Callable[[Any], Read]) -> Read:
        attempts, attempt = 1 + self.endpoint.retries, 0
        while True:
            attempt += 1
            data = json.dumps(body, allow_nan=False).encode()
            try:
                if self._gate is not None:
                    self._gate()
                value = await self._attempt(data)
            except Busy as busy:
                if (amended := self._amended(body, busy)) is not None:
                    body, attempt = amended, attempt - 1
                elif attempt == attempts:
                    raise self._given_up(busy, attempts) from None
                else:
                    await asyncio.sleep(self._pause(data, attempt, busy.seconds))
            except Nonsense as nonsense:
                self._circuit.answered()
                if (amended := self._amended(body, nonsense)) is None:
                    raise self.nonsense(nonsense) from None
                body, attempt = amended, attempt - 1
            else:
                self._circuit.answered()
                return self._read(value, read)

    def _amended(self, body: Any, told: Answered) -> Any:
        """Another body to send at once, instead of one whose reply is an error; None if there is
        none."""
        return self._amend(body, told) if self._amend is not None and told.body else None

    async def _attempt(self, data: bytes) -> Any:
        """One request; raises `Busy` if a retry may help, else `Nonsense`."""
        seconds = self.endpoint.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._send(data)
        except TimeoutError:
            raise Busy(f"did not complete its answer within {seconds:g} seconds") from None
        except (httpcore2.NetworkError, httpcore2.TimeoutException) as error:
            raise Busy("cannot be reached", str(error)) from None
        except httpcore2.ProtocolError as error:
            raise Busy("does not speak valid HTTP", str(error)) from None

    async def _send(self, data: bytes) -> Any:
        async with self._pool.stream(
            "POST",
            self.endpoint.target,
            headers=[*self._headers, ("Content-Length", str(len(data)))],
            content=data,
        ) as reply:
            body = await read_body(reply.aiter_stream(), self._largest)
            check_status(reply.status, reply.headers, body)
            return parse(body, reply.headers)

    def _read(self, value: Any, read: Callable[[Any], Read]) -> Read:
        try:
            return read(value)
        except Nonsense as nonsense:
            raise self.nonsense(nonsense) from None

    def nonsense(self, reply: Nonsense) -> ServiceFailed:
        return self.endpoint.failure(reply.told(is_quiet=self._is_quiet), reply.hint)

    def _given_up(self, busy: Busy, attempts: int) -> ServiceFailed:
        why = busy.told(is_quiet=self._is_quiet)
        self._circuit.given_up(time.monotonic(), why)
        tries = "at the only attempt" if attempts == 1 else f"at the last of {attempts} attempts"
        return self.endpoint.failure(
            f"{why} ({tries})",
            "check that it runs and is fast enough, or raise `timeout_seconds` or `retries`",
        )

    def _rests(self) -> ServiceFailed:
        return self.endpoint.failure(
            f"is not called for a while, because {self._circuit.failures} requests in a row "
            f"failed; the last time it {self._circuit.last}",
            "check that it runs",
        )

    @property
    def _is_quiet(self) -> bool:
        """Whether a secret is sent, so that messages must not quote replies."""
        return self.endpoint.secret is not None

    def _pause(self, data: bytes, attempt: int, asked: float) -> float:
        """Seconds before the next attempt: exponential with jitter, at most LONGEST_PAUSE_SECONDS,
        and no less than the service asked for, as far as that is at most LONGEST_ASKED_SECONDS."""
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(attempt - 1, 16))
        name = hashlib.blake2b(data, digest_size=8).hexdigest()
        draw = random.Random(derive_seed(self.endpoint.seed, name, attempt)).random()
        return max(min(asked, LONGEST_ASKED_SECONDS), longest * (0.5 + 0.5 * draw))

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._pool.aclose()


def collect(
    futures: Sequence["Future[Any]"], tick: Callable[[int], None], *, until_failure: bool = True
) -> None:
    """Wait for all futures; if `tick` raises, the unfinished ones are cancelled.

    Args:
        tick: called several times a second with the number of finished ones.
        until_failure: the first failure cancels the others.
    """
    left = set(futures)
    try:
        while left:
            done, left = wait(left, timeout=TICK_SECONDS, return_when=FIRST_EXCEPTION)
            tick(len(futures) - len(left))
            if until_failure and any(future.exception() is not None for future in done):
                return
    finally:
        for future in left:
            future.cancel()


def _headers(endpoint: Endpoint) -> list[tuple[str, str]]:
    authorization = endpoint.authorization()
    headers = [
        ("Host", endpoint.target.split("/")[2]),
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("User-Agent", AGENT),
    ]
    return headers + ([("Authorization", authorization)] if authorization else [])


# When a service is not called for a while.
#
#     closed --FAILURES requests given up in a row--> open --pause is over--> one request tries
#      ^                                              ^                         |
#      '------------ it was answered -----------------+---- it was given up ----'  (twice the pause)
#
# The owner passes the time. A request is given up after its last attempt, so a short outage that
# retries survive does not open the circuit. An invalid answer closes it like any other, because the
# service is running.

FAILURES: Final = 3
"""Consecutive failed requests after which the circuit opens."""
FIRST_REST_SECONDS: Final = 5.0
LONGEST_REST_SECONDS: Final = 60.0


@dataclass(slots=True)
class Circuit:
    """A circuit breaker: stops requests for a while after several have failed."""

    failures: int = 0
    """Consecutive requests whose last attempt failed."""
    opens_at: float = 0.0
    """While the circuit is open: time at which one request may try again."""
    is_trying: bool = False
    pause_seconds: float = FIRST_REST_SECONDS
    last: str = ""

    @property
    def is_open(self) -> bool:
        return self.failures >= FAILURES

    def admit(self, now: float) -> bool:
        """Whether a request may be sent: while open, one at a time after the pause."""
        if not self.is_open:
            return True
        if self.is_trying or now < self.opens_at:
            return False
        self.is_trying = True
        return True

    def answered(self) -> None:
        self.failures, self.is_trying, self.pause_seconds = 0, False, FIRST_REST_SECONDS

    def given_up(self, now: float, why: str) -> None:
        if self.is_trying:
            self.pause_seconds = min(2 * self.pause_seconds, LONGEST_REST_SECONDS)
        self.failures, self.is_trying, self.last = self.failures + 1, False, why
        if self.is_open:
            self.opens_at = now + self.pause_seconds

    def left(self) -> None:
        """A request ended in any other way, such as by being cancelled."""
        self.is_trying = False
