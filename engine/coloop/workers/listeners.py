"""Who speaks where a text pauses: tools at work in lanes of their own, while other texts are
written."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from coloop.workers.messages import Answer, Branches, Observation, Pause, Word

LANES = 8
"""Tools that work at once, at most."""
TICK_SECONDS = 0.1


class Listeners:
    """The texts of one stage that wait for an answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._lanes: ThreadPoolExecutor | None = None
        self._waiting: dict[Future[Word], Pause] = {}

    def hear(self, pauses: Sequence[Pause]) -> None:
        """These texts wait from now on."""
        if not pauses:
            return
        if self._lanes is None:
            self._lanes = ThreadPoolExecutor(LANES, thread_name_prefix="tool")
        for pause in pauses:
            self._waiting[self._lanes.submit(self._answer, pause)] = pause

    def said(self, unfinished: int, tick: Callable[[], None]) -> list[Observation]:
        """What was answered since it was asked last; where all of so many texts pause, it waits for
        the first answer. Raises what a tool raised.

        Args:
            tick: called while it waits; what it raises ends the wait.
        """
        while True:
            tick()
            is_idle = len(self._waiting) == unfinished
            done = wait(self._waiting, TICK_SECONDS if is_idle else 0, FIRST_COMPLETED).done
            if done or not is_idle:
                ended = [(one, pause) for one, pause in self._waiting.items() if one in done]
                for one, _ in ended:
                    del self._waiting[one]
                return [_said(pause, one.result()) for one, pause in ended]

    def close(self) -> None:
        """Tools at work end; what waits for them is forgotten."""
        if self._lanes is not None:
            self._lanes.shutdown(wait=True, cancel_futures=True)


def _said(pause: Pause, answer: Word) -> Observation:
    text, seeds = (answer.text, answer.seeds) if isinstance(answer, Branches) else (answer, ())
    return Observation(place=pause.place, k=pause.k, branch=pause.branch, text=text, seeds=seeds)
