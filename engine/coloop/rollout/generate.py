"""A list of requests written to the end by any engine: submit all, collect all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from coloop.errors import StopRequested
from coloop.rollout.protocol import Generation, GenerationRequest, RolloutEngine

STEPS_BETWEEN_POLLS = 8


class Progress(Protocol):
    """Told now and then how far a generate call is."""

    def __call__(self, *, rows_done: int, rows_total: int, tokens_done: int) -> None: ...


ShouldStop = Callable[[], bool]
"""Asked every few tokens; once true, the call ends with `StopRequested`."""


def generate(
    engine: RolloutEngine,
    requests: Sequence[GenerationRequest],
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[Generation]:
    """One generation for each request, in the order of the requests.

    The engine has nothing else to write meanwhile. Where one request is refused, or the call is
    stopped, none is left behind.
    """
    assert not engine.unfinished, "somebody else is writing with this engine"
    tickets: list[int] = []
    done: dict[int, Generation] = {}

    def poll(*, may_stop: bool = True) -> None:
        if may_stop and should_stop is not None and should_stop():
            raise StopRequested(f"stopped while writing, {len(done)} of {len(requests)} rows done")
        if progress is not None:
            tokens = sum(len(row.token_ids) for row in done.values()) + engine.written()
            progress(rows_done=len(done), rows_total=len(requests), tokens_done=tokens)

    try:
        for request in requests:
            tickets.append(engine.submit(request))
        steps = 0
        while engine.unfinished:
            if steps % STEPS_BETWEEN_POLLS == 0:
                poll()
            done.update((row.ticket, row) for row in engine.step())
            steps += 1
        if requests:
            poll(may_stop=False)
    except BaseException:
        engine.abort(tickets)
        engine.release(tickets)
        raise
    return [done[ticket] for ticket in tickets]
