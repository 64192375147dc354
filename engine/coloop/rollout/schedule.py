"""Continuous batching: which request is written when.

    pending ──admit──► slots 0 .. N-1 ──step──► drawn tokens
                          ▲                        │
                          └──── gaps closed ◄──collect──► ended rows

Requests with the same prompt stand together, so that the prompt is read once; long prompts come
first, so that prompts read together have similar lengths. Neither changes what is written: a row's
draws are its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from coloop.errors import StopRequested
from coloop.rollout.decoder import Decoder
from coloop.rollout.protocol import GenerationRequest, Progress, ShouldStop
from coloop.rollout.slots import Ended, Slots

STEPS_BETWEEN_POLLS = 8
SLACK = 8
"""Most steps for which a row may run on behind its end, before it is taken out."""
WORTHWHILE = 16
"""Ended rows are taken out when they are one in so many of the running ones, or have waited for
`SLACK`."""


@dataclass(slots=True)
class Group:
    """Requests with the same prompt that are not admitted yet."""

    prompt: Sequence[int]
    rows: list[int]


class Schedule:
    """Writes one list of requests."""

    def __init__(
        self,
        decoder: Decoder,
        requests: Sequence[GenerationRequest],
        slots: Slots,
        capacity: int,
        steps_between_looks: int,
    ) -> None:
        self._decoder = decoder
        self._slots = slots
        self._capacity = capacity
        self._steps_between_looks = steps_between_looks
        self._rows_total = len(requests)
        self._pending = deque(_group(requests))
        self._ended: list[Ended] = []
        self._tokens_ended = 0
        self._longest = 0
        self._steps_waited = 0

    def run(self, progress: Progress | None, should_stop: ShouldStop | None) -> list[Ended]:
        """All requests, in the order in which they ended."""
        steps = 0
        while self._pending or self._slots.running:
            if steps % STEPS_BETWEEN_POLLS == 0:
                self._poll(progress, should_stop)
            if self._can_admit():
                self._admit()
                self._look()
                if self._can_admit() or not self._slots.running:
                    continue  # rows that ended with their first token left room
                self._longest = self._slots.longest()
            logits = self._decoder.step(
                self._slots.last[: self._slots.running],
                self._slots.position[: self._slots.running],
                self._longest,
            )
            self._slots.advance(logits)
            self._longest += 1
            steps += 1
            if steps % self._steps_between_looks == 0:
                self._look()
        self._poll(progress, None)
        return self._ended

    def _can_admit(self) -> bool:
        if not self._pending:
            return False
        if self._slots.running and not self._decoder.joins_running:
            return False
        return self._slots.running < self._capacity

    def _admit(self) -> None:
        """Fills the free slots."""
        free = self._capacity - self._slots.running
        prompts: list[Sequence[int]] = []
        counts: list[int] = []
        rows: list[int] = []
        while free and self._pending:
            group = self._pending[0]
            taken, group.rows = group.rows[:free], group.rows[free:]
            if not group.rows:
                self._pending.popleft()
            counts.append(len(taken))
            prompts.append(group.prompt)
            rows += taken
            free -= len(taken)
        logits = self._decoder.admit(self._slots.running, prompts, counts)
        self._slots.admit(rows, logits)

    def _look(self) -> None:
        """Takes out rows that have ended, once they are worth the work or have waited long
        enough."""
        ended = self._slots.count_ended()
        self._steps_waited = self._steps_waited + self._steps_between_looks if ended else 0
        if ended * WORTHWHILE >= self._slots.running or self._steps_waited >= SLACK:
            self._collect()

    def _collect(self) -> None:
        self._steps_waited = 0
        ended, moves = self._slots.collect()
        self._ended += ended
        self._tokens_ended += sum(len(row.token_ids) for row in ended)
        self._decoder.keep(moves.rows, moves.targets, moves.sources)
        self._longest = self._slots.longest()

    def _poll(self, progress: Progress | None, should_stop: ShouldStop | None) -> None:
        if should_stop is not None and should_stop():
            raise StopRequested(
                f"stopped while writing, {len(self._ended)} of {self._rows_total} rows done"
            )
        if progress is not None:
            progress(
                rows_done=len(self._ended),
                rows_total=self._rows_total,
                tokens_done=self._tokens_ended + self._slots.tokens_running(),
            )


def _group(requests: Sequence[GenerationRequest]) -> list[Group]:
    groups: dict[tuple[int, ...], Group] = {}
    for row, request in enumerate(requests):
        prompt = tuple(request.prompt_ids)
        groups.setdefault(prompt, Group(prompt, [])).rows.append(row)
    return sorted(groups.values(), key=lambda group: -len(group.prompt))
