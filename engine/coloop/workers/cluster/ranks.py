"""One call to all processes of a pool, whatever they run on.

    driver ── the same call ──> rank 0, rank 1, ...     each does its part, see `training.ranks`
           <── answers ────────                         merged, see `worker_api`

If a rank dies or is silent for too long, its pool is killed and the error names it; if one fails,
the others are asked to give up, and killed after `settle_seconds`.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from coloop.errors import PlacementTimeout, StageStalled, StopRequested, WorkerDied
from coloop.workers.messages import Poll
from coloop.workers.worker_api import MERGES, PoolCall, Tick, WorkerApi, merged

TICK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long the cluster waits, in seconds."""

    placement_seconds: float = 120.0
    start_seconds: float = 300.0
    stalled_after_seconds: float = 1800.0
    settle_seconds: float = 10.0  # for other ranks to give up once one has failed


class Watchdog:
    """Signs of life and progress of one call: tells slow ranks from those that hang."""

    def __init__(self, ranks: int, stalled_after_seconds: float) -> None:
        now = time.monotonic()
        self._last: list[Poll | None] = [None] * ranks
        self._limit = stalled_after_seconds
        self._heard_at = [now] * ranks
        self._moved_at = [now] * ranks

    def seen(self, polls: Sequence[Poll | None]) -> None:
        """Note what the ranks say; None of one that has said nothing."""
        now = time.monotonic()
        for rank, poll in enumerate(polls):
            if poll is None:
                continue
            before = self._last[rank]
            if before is None or (poll.done, poll.total) != (before.done, before.total):
                self._moved_at[rank] = now
            self._last[rank], self._heard_at[rank] = poll, now

    def together(self, polls: Sequence[Poll | None]) -> Poll | None:
        """The last progress of all ranks; None where none has reported."""
        told = [poll for poll in self._last if poll is not None]
        return merged(told) if any(poll is not None for poll in polls) else None

    def stalled(self, waiting: Collection[int]) -> tuple[int, str] | None:
        """A rank that has stopped, and how: silent, or the furthest behind if none advances."""
        now = time.monotonic()
        silent = [rank for rank in waiting if now - self._heard_at[rank] > self._limit]
        if silent:
            return min(silent), f"no sign of life for {self._limit:.0f} s"
        if any(now - self._moved_at[rank] <= self._limit for rank in waiting):
            return None
        rank = min(waiting, key=self._done)
        last = self._last[rank]
        where = f" (at {last.done} of {last.total})" if last is not None else ""
        return rank, f"no progress for {self._limit:.0f} s{where}"

    def _done(self, rank: int) -> int:
        last = self._last[rank]
        return 0 if last is None else last.done


class Turns:
    def __init__(self, pools: Iterable[str]) -> None:
        self._asked: dict[str, deque[object]] = {pool: deque() for pool in pools}
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, pool: str, tick: Tick | None) -> Iterator[None]:
        """Wait for earlier calls of the pool; raises `StopRequested` where the tick says stop."""
        asked, own = self._asked[pool], object()
        with self._changed:
            asked.append(own)
        try:
            while not self._is_first(asked, own):
                if tick is not None and tick(None):
                    raise StopRequested(f"while waiting for the pool {pool}")
            yield
        finally:
            with self._changed:
                asked.remove(own)
                self._changed.notify_all()

    def _is_first(self, asked: deque[object], own: object) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: asked[0] is own, TICK_SECONDS)


P = ParamSpec("P")
R = TypeVar("R")

Wait = Callable[[Sequence[Any], float], tuple[Collection[Any], Collection[Any]]]
"""Given tickets and seconds: those answered, once all are or time is up, and the others."""


class RankEnded(Exception):
    """The process of a rank has ended; the message says how."""


class Crew(Protocol):
    """The processes of one pool, by rank."""

    @property
    def size(self) -> int: ...

    def address(self) -> str:
        """Of the machine of rank 0, for the other ranks; raises `RankEnded`."""

    def begin(self, method: str, arguments: tuple[Any, ...]) -> Sequence[Any]:
        """Ask all ranks; a ticket for the answer of each."""

    def answer(self, ticket: Any) -> Any:
        """A rank's answer; raises what it raised, `RankEnded` where its process died before."""

    def polls(self) -> list[Poll | None]:
        """How far each rank is; None where it has not said so since it was asked."""

    def interrupt(self) -> None:
        """Ask all ranks to give up what was begun last; never what is begun after it."""

    def kill(self) -> None:
        """End the processes at once, whatever they do, as far as that can be done."""

    @property
    def has_ended(self) -> bool:
        """Whether all that `kill` was to end has ended."""

    def close(self) -> None: ...


class Cluster(ABC):
    """The pools of a plan, one worker per slot; a pool runs one call at a time, from any thread."""

    def __init__(
        self, names: Iterable[str], deadlines: Deadlines, wait: Wait = futures.wait
    ) -> None:
        """`wait`: for the tickets of this cluster's crews."""
        self._deadlines = deadlines
        self._pools: dict[str, _Pool] = {}
        self._turns = Turns(names)
        self._wait = wait

    @abstractmethod
    def start(self) -> None:
        """Place the pools and build the workers; on failure tears down what it started."""

    @abstractmethod
    def restart(self, pool: str) -> None:
        """Replace the processes of a pool; new ones hold what a pool holds at the start. Raises
        `StageStalled` (a process cannot be killed), `PlacementTimeout`, `WorkerDied`."""

    def asking(
        self,
        tick: Tick | None = None,
        *,
        stalled_after: float | None = None,
        has_turn: bool = False,
    ) -> PoolCall:
        """The call to pools for one caller.

        Args:
            tick: called a few times a second, in the caller's thread, with the ranks' progress.
            stalled_after: seconds without progress; None: the cluster's.
            has_turn: the caller keeps others from the pool.
        """
        limit = self._deadlines.stalled_after_seconds
        return RanksCall(
            pools=self._pools,
            turns=None if has_turn else self._turns,
            wait=self._wait,
            tick=tick,
            stalled_after=limit if stalled_after is None else stalled_after,
            settle_seconds=self._deadlines.settle_seconds,
        )

    def close(self) -> None:
        for pool in self._pools.values():
            pool.crew.interrupt()
        for pool in self._pools.values():
            pool.crew.close()
        self._pools.clear()

    def _add(self, name: str, crew: Crew) -> None:
        self._pools[name] = _Pool(name, crew)

    def _replace(self, name: str, crew: Callable[[], Crew]) -> None:
        with self._turns.turn(name, None):
            self._pools[name].end()
            self._add(name, crew())
            self._open(name, has_turn=True)

    def _open(self, name: str, *, has_turn: bool = False) -> None:
        """Start all ranks of a pool; raises `PlacementTimeout` with those that did not come."""
        ranks, seconds = self._pools[name], self._deadlines.start_seconds
        try:
            opening = self.asking(stalled_after=seconds, has_turn=has_turn)
            port = opening(name, WorkerApi.open_meeting, seconds)
        except StageStalled as error:
            who = ranks.name_of(error.rank or 0)
            raise PlacementTimeout(f"{who}: it did not join within {seconds:.0f} s") from error
        ask = self.asking(has_turn=has_turn)
        if port is not None:
            rendezvous = f"tcp://{ranks.address()}:{port}"
            longest = 2 * max(seconds, self._deadlines.stalled_after_seconds)  # ours come first
            ask(name, WorkerApi.join, rendezvous, seconds, longest)
        ask(name, WorkerApi.build)


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksCall:
    """Calls pools for one who waits; see `PoolCall`."""

    pools: Mapping[str, "_Pool"]
    turns: Turns | None  # None: who calls has the pool for itself
    wait: Wait
    tick: Tick | None
    stalled_after: float
    settle_seconds: float

    def __call__(
        self,
        pool: str,
        method: Callable[Concatenate[Any, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        if named:
            raise TypeError(f"{method.__name__}: arguments go to a pool by position")
        tick, ranks, name = self.tick, self.pools[pool], method.__name__
        with self.turns.turn(pool, tick) if self.turns is not None else nullcontext():
            watchdog = Watchdog(ranks.size, self.stalled_after)
            waiting = ranks.begin(name, arguments)
            answers: dict[int, Any] = {}
            errors: dict[int, BaseException] = {}
            seconds = [0.0] * ranks.size
            began = time.monotonic()
            ticked = time.monotonic()
            settled_at = float("inf")
            while waiting:
                answered, _ = self.wait([*waiting.values()], TICK_SECONDS)
                for rank in [rank for rank, ticket in waiting.items() if ticket in answered]:
                    seconds[rank] = time.monotonic() - began
                    try:
                        answers[rank] = ranks.crew.answer(waiting.pop(rank))
                    except (Exception, SystemExit) as error:
                        errors[rank] = error
                ranks.check_alive(errors)
                now = time.monotonic()
                if errors and settled_at == float("inf"):
                    settled_at = now + self.settle_seconds
                    ranks.crew.interrupt()
                if waiting and now > settled_at:
                    ranks.end_waiting(waiting, errors)
                    break
                if waiting and now - ticked >= TICK_SECONDS:
                    ticked = now
                    polls = ranks.crew.polls()
                    watchdog.seen(polls)
                    ranks.check_moving(watchdog, waiting, name)
                    if tick is not None and tick(watchdog.together(polls)):
                        ranks.crew.interrupt()
            if errors:
                raise ranks.chosen(errors)
            if tick is not None and ranks.size > 1:
                tick(Poll(done=0, total=0, unit="", rank_seconds=tuple(seconds)))
            answer: R = answers[0]
            if name in MERGES:
                answer = MERGES[name]([answers[rank] for rank in range(ranks.size)])
            return answer


class _Pool:
    def __init__(self, name: str, crew: Crew) -> None:
        self.crew = crew
        self._name = name
        self._why_ended: str | None = None

    @property
    def size(self) -> int:
        return self.crew.size

    def begin(self, method: str, arguments: tuple[Any, ...]) -> dict[int, Any]:
        if self._why_ended is not None:
            raise WorkerDied(f"pool {self._name} has ended: {self._why_ended}", self._name)
        return dict(enumerate(self.crew.begin(method, arguments)))

    def end(self) -> None:
        """End the processes at once; raises `StageStalled` where one of them cannot be ended."""
        self._end("it is being replaced")
        if not self.crew.has_ended:
            message = f"pool {self._name}: a thread of the driver hangs and cannot be stopped"
            raise StageStalled(message, self._name)

    def address(self) -> str:
        try:
            return self.crew.address()
        except RankEnded as error:
            self.check_alive({0: error})
            raise

    def name_of(self, rank: int) -> str:
        """A rank in words; the pool itself where it is alone."""
        return f"pool {self._name}" + (f", rank {rank} of {self.size}" if self.size > 1 else "")

    def check_alive(self, errors: Mapping[int, BaseException]) -> None:
        """Raises `WorkerDied` where a rank's process has ended, which is why others failed."""
        for rank, error in errors.items():
            if isinstance(error, RankEnded):
                message = f"{self.name_of(rank)}: its worker process ended: {error}"
                self._end(message)
                raise WorkerDied(message, self._name, rank) from error

    def check_moving(self, watchdog: Watchdog, waiting: Mapping[int, Any], method: str) -> None:
        """Raises `StageStalled` where a rank is not heard of, or none gets any further."""
        if stalled := watchdog.stalled(waiting):
            rank, how = stalled
            message = f"{self.name_of(rank)}: {method}: {how}"
            self._end(message)
            raise StageStalled(message, self._name, rank)

    def end_waiting(self, waiting: Mapping[int, Any], errors: Mapping[int, Any]) -> None:
        """End ranks that wait for one that has failed."""
        self._end(f"{_ranks(waiting)} waited for {_ranks(errors)}, which failed")

    def chosen(self, errors: Mapping[int, BaseException]) -> BaseException:
        """The error of the first rank that did not only do what it was asked to: to give up."""
        own = {r: e for r, e in errors.items() if not isinstance(e, StopRequested)} or errors
        rank = min(own)
        error = own[rank]
        if isinstance(error, SystemExit):  # a library that ends its process ends no driver
            message = f"{self.name_of(rank)}: its worker exited with code {error.code}"
            return WorkerDied(message, self._name, rank)
        if self.size > 1:
            error.add_note(f"({self.name_of(rank)})")
        return error

    def _end(self, why: str) -> None:
        self._why_ended = why
        self.crew.kill()


def _ranks(ranks: Mapping[int, Any]) -> str:
    return ", ".join(f"rank {rank}" for rank in sorted(ranks))
