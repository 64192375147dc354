"""Requests of one caller written by any engine: all to the end, or for a moment at a time.

submit ──► engine ──step──► finished, by the number that `submit` gave
              ▲                │ dropped for new weights
              └────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from traceback import clear_frames
from typing import Protocol

from coloop.errors import StopRequested, WeightsNotUpdated
from coloop.workers.rollout.engine import RolloutEngine
from coloop.workers.rollout.protocol import Generation

STEPS_BETWEEN_POLLS = 8


class Progress(Protocol):
    """Told now and then how far a generate call is."""

    def __call__(self, *, rows_done: int, rows_total: int, tokens_done: int) -> None: ...


ShouldStop = Callable[[], bool]
"""Asked every few tokens; once true, the call ends with `StopRequested`."""
IsEnough = Callable[[int], bool]
"""Asked every few tokens, with how many texts have finished in this call; once true, it returns."""


class Post:
    """What an engine has ended, for several that write with it in turns."""

    def __init__(self, engine: RolloutEngine) -> None:
        self._engine = engine
        self._ended: dict[int, Generation] = {}  # by ticket, in the order in which they ended
        self.failure: Exception | None = None
        """The last error of a step, with which the texts of all were forgotten."""

    def take(self, tickets: Container[int]) -> list[Generation]:
        """What has ended of these; where nothing has, the engine writes on first."""
        if not any(ticket in tickets for ticket in self._ended):
            try:
                ended = self._engine.step()
            except Exception as error:
                clear_frames(error.__traceback__)  # it is kept, and memory may be short
                self.failure = error
                raise
            self._ended |= {row.ticket: row for row in ended}
        return [self._ended.pop(ticket) for ticket in [*self._ended] if ticket in tickets]

    def forget(self, tickets: Iterable[int]) -> None:
        for ticket in tickets:
            self._ended.pop(ticket, None)

    def has_some(self, tickets: Iterable[int]) -> bool:
        return any(ticket in self._ended for ticket in tickets)


class Batch:
    """Requests of one caller; those dropped for new weights are written again as they were."""

    def __init__(self, engine: RolloutEngine, post: Post | None = None) -> None:
        """Args:
        post: where others write with the engine as well.
        """
        assert post is not None or not engine.unfinished, "another batch is using it"
        self._engine = engine
        self._post = post or Post(engine)
        self._open: dict[int, tuple[int, Generation]] = {}
        self._kept: set[int] = set()
        self._rows = 0
        self._done, self._tokens = 0, 0

    @property
    def unfinished(self) -> int:
        return len(self._open)

    def submit(self, request: Generation) -> int:
        """The request's number, from 0; raises `RequestRefused`, naming the row."""
        self._send(self._rows, request)
        self._rows += 1
        return self._rows - 1

    def write(
        self,
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
        is_enough: IsEnough | None = None,
    ) -> list[tuple[int, Generation]]:
        """Write until all is finished or it is enough; what has finished. A failure ends all."""
        finished: list[tuple[int, Generation]] = []
        steps = 0
        try:
            while self._open:
                if steps % STEPS_BETWEEN_POLLS == 0:
                    self._tell(progress, should_stop)
                    if steps and is_enough is not None and is_enough(len(finished)):
                        return finished
                finished += self._step()
                steps += 1
            if steps:
                self._tell(progress)
        except BaseException:
            self.give_up()
            raise
        return finished

    def release(self, ticket: int | None) -> None:
        if ticket in self._kept:
            self._kept.remove(ticket)
            self._engine.release([ticket])

    def give_up(self) -> None:
        tickets = [*self._open, *self._kept]
        self._open.clear()
        self._kept.clear()
        self._post.forget(tickets)
        self._engine.abort(tickets)
        self._engine.release(tickets)

    def _send(self, number: int, request: Generation) -> None:
        ticket = self._engine.submit(request)
        self._open[ticket] = (number, request)
        if request.keep:
            self._kept.add(ticket)

    def _step(self) -> list[tuple[int, Generation]]:
        finished: list[tuple[int, Generation]] = []
        for row in self._post.take(self._open):
            number, request = self._open.pop(row.ticket)
            if row.reason == "aborted":
                self._send(number, request)
            else:
                finished.append((number, row))
                self._done += 1
                self._tokens += len(row.token_ids)
        if self._open and not (self._engine.unfinished or self._post.has_some(self._open)):
            raise self._post.failure or WeightsNotUpdated(
                f"{len(self._open)} texts were lost: new weights did not reach the engine that was "
                "generating them"
            )
        return finished

    def _tell(self, progress: Progress | None, should_stop: ShouldStop | None = None) -> None:
        if should_stop is not None and should_stop():
            raise StopRequested(f"stopped while generating, {self._done} of {self._rows} rows done")
        if progress is not None:
            tokens = self._tokens + self._engine.written()
            progress(rows_done=self._done, rows_total=self._rows, tokens_done=tokens)
