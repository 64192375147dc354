"""Continuous batching: which text is written when.

    queue ──admit──► slots 0 .. N-1 ──step──► drawn tokens
                        ▲                        │
                        └──── gaps closed ◄──collect──► ended texts

Room (rows, tokens of a row) grows with what texts want; where memory is short, they wait until
enough rows have ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch
from torch import Tensor

from coloop.workers.rollout.decoder import Decoder, Lines
from coloop.workers.rollout.graphs import StepGraphs, step_size
from coloop.workers.rollout.protocol import Generation
from coloop.workers.rollout.slots import Slots
from coloop.workers.rollout.stops import StopTexts
from coloop.workers.rollout.texts import (
    SLACK,
    Group,
    KeptTexts,
    Queue,
    Requirements,
    are_siblings,
    continued_by,
)

WORTHWHILE = 16
"""Ended rows are removed when they are one in so many, or have waited for `SLACK`."""


class Schedule:
    def __init__(
        self,
        decoder: Decoder,
        kept: KeptTexts,
        is_end: Tensor,
        stops: StopTexts,
        *,
        max_concurrency: int,
        cache_bytes: int,
        steps_between_looks: int,
        graphs: StepGraphs | None = None,
    ) -> None:
        """`cache_bytes`: of all rows. `steps_between_looks`: for ended rows."""
        self._decoder = decoder
        self._kept = kept
        self._is_end = is_end
        self._stops = stops
        self._max_concurrency = max_concurrency
        self._cache_bytes = cache_bytes
        self._steps_between_looks = steps_between_looks
        self._graphs = graphs
        self._room = (0, 0)  # rows and tokens of the decoder's cache
        self.clear()
        self._spare = self._slots
        """The slots of the latest texts: recordings of their memory serve the next ones."""

    def clear(self) -> None:
        self._queue = Queue()
        self._requirements = Requirements()
        self._included: Generation | None = None  # the last one that is in what is wanted
        self._slots = Slots(0, self._requirements, self._is_end, self._stops)
        self._longest = 0
        self._steps = 0
        self._steps_waited = 0

    def give_back_room(self) -> None:
        """Gives back the memory of slots and cache. No text is on its way."""
        self.clear()
        self._forget_graphs()
        self._spare = self._slots
        self._room = (0, 0)
        self._decoder.reserve(0, 0)

    def max_concurrency(self) -> int | None:
        """Most texts for which there was room; None before the first."""
        return min(self._room[0], self._max_concurrency) or None

    def limit_concurrency(self, rows: int) -> None:
        """No more than so many texts at once from here on. No text is on its way."""
        self._max_concurrency = min(self._max_concurrency, max(rows, 1))
        self.give_back_room()

    def __len__(self) -> int:
        return len(self._queue) + self._slots.running

    def texts(self) -> list[Generation]:
        return [*self._slots.texts, *self._queue]

    def written(self) -> int:
        waiting = sum(text.before for text in self._queue)
        return self._slots.written() + waiting

    def add(self, text: Generation) -> None:
        if not (len(self._queue) or self._slots.running):
            self.clear()
        if self._included is None or not are_siblings(text, self._included):
            self._requirements.include(text)
            self._included = text
        self._queue.add(text)

    @torch.inference_mode()
    def step(self) -> list[Generation]:
        """One token more for every row; the texts that ended and were taken out."""
        ended: list[Generation] = []
        if self._can_admit():
            self._admit()
            ended += self._look()
            if self._can_admit() or not self._slots.running:
                return ended  # rows that ended with their first token left room
            self._longest = self._slots.longest()
        running = self._slots.running
        if not running:
            return ended
        self._write(running)
        self._longest += 1
        self._steps += 1
        if self._steps % self._steps_between_looks == 0:
            ended += self._look()
        return ended

    def _write(self, running: int) -> None:
        if self._graphs is None:
            self._write_to(running, self._longest)
            return
        rows, length = step_size(
            running, self._longest + 1, most_rows=self._slots.count, most_length=self._room[1]
        )
        self._graphs.run((rows, length), lambda: self._write_to(rows, length - 1))

    def _write_to(self, rows: int, longest: int) -> None:
        slots = self._slots
        logits = self._decoder.step(slots.last[:rows], slots.position[:rows], longest)
        slots.advance(logits)

    def _forget_graphs(self) -> None:
        if self._graphs is not None:
            self._graphs.forget()

    @torch.inference_mode()
    def take_out(self, tickets: Collection[int]) -> tuple[list[Generation], list[Generation]]:
        """Takes texts out as they are: these, and what else had ended."""
        waiting = [text.ends("aborted") for text in self._queue.remove(tickets)]
        cut = [slot for slot, text in enumerate(self._slots.texts) if text.ticket in tickets]
        if not cut:
            return waiting, []
        self._slots.count_ended()
        ended = self._collect(cut)
        wanted = [text for text in ended if text.ticket in tickets]
        others = [text for text in ended if text.ticket not in tickets]
        return waiting + wanted, others

    # Rows come

    def _can_admit(self) -> bool:
        if not len(self._queue):
            return False
        if self._slots.running and not self._decoder.joins_running:
            return False
        return self._slots.running < self._most_rows()

    def _most_rows(self) -> int:
        row_bytes = self._decoder.bytes_per_token * self._requirements.length
        fitting = self._cache_bytes // row_bytes if row_bytes else self._max_concurrency
        return max(min(fitting, self._max_concurrency), 1)

    def _make_room(self) -> None:
        had, running, most = self._slots.count, self._slots.running, self._most_rows()
        if not had:
            self._slots = self._empty_slots(min(len(self), most), most)
            self._decoder.expect(self._requirements.width - SLACK)
        elif not self._slots.serves(self._requirements) or not min(len(self), most) <= had <= most:
            rows = min(max(len(self), 2 * had), most)
            self._forget_graphs()
            self._slots = self._spare = self._slots.enlarged(rows, self._requirements, self._stops)
        elif self._requirements.length <= self._room[1]:
            return
        self._reserve(self._slots.count, self._requirements.length, running)

    def _empty_slots(self, rows: int, most: int) -> Slots:
        """At least so many slots and at most `most`, those of the last texts where they serve."""
        if rows <= self._spare.count <= most and self._spare.serves(self._requirements):
            return self._spare.emptied()
        self._forget_graphs()
        self._spare = Slots(rows, self._requirements, self._is_end, self._stops)
        return self._spare

    def _reserve(self, rows: int, length: int, running: int) -> None:
        had_rows, had_length = self._room
        if rows > had_rows or length > had_length:
            most = (max(rows, had_rows), max(length, had_length))
            does_fit = most[0] * most[1] * self._decoder.bytes_per_token <= self._cache_bytes
            self._room = most if does_fit else (rows, length)
            self._forget_graphs()
        self._decoder.reserve(*self._room, running)

    def _admit(self) -> None:
        self._make_room()
        free = self._slots.count - self._slots.running
        continuing, others = self._queue.take(free)
        known: list[tuple[Group, Lines]] = []
        for group in continuing:
            lines = self._kept.lines_of(continued_by(group))
            if lines is None:
                others.append(group)
            else:
                known.append((group, lines))
        if known:
            self._decoder.extend(
                self._slots.running,
                [lines for _, lines in known],
                [group[0].to_read for group, _ in known],
                [len(group) for group, _ in known],
            )
            self._slots.join([text for group, _ in known for text in group])
        if others:
            others.sort(key=lambda group: -len(group[0].to_read))
            logits = self._decoder.admit(
                self._slots.running,
                [group[0].to_read for group in others],
                [len(group) for group in others],
            )
            self._slots.admit([text for group in others for text in group], logits)

    # Rows go

    def _look(self) -> list[Generation]:
        """Takes out rows that have ended, once they are worth the work or have waited long
        enough."""
        count = self._slots.count_ended()
        self._steps_waited = self._steps_waited + self._steps_between_looks if count else 0
        if count * WORTHWHILE >= self._slots.running or self._steps_waited >= SLACK:
            return self._collect()
        return []

    def _collect(self, cut: Iterable[int] = ()) -> list[Generation]:
        self._steps_waited = 0
        ended = self._slots.collect(list(cut))
        for slot, text in ended.items():
            if text.keep and text.reason != "aborted":
                self._keep(slot, text)
        self._slots.close_gaps(ended, self._decoder.keep)
        self._longest = self._slots.longest()
        return list(ended.values())

    def _keep(self, slot: int, text: Generation) -> None:
        """Keeps a text, and what its slot holds of all but its last token, which may not have been
        read."""
        token_ids = [*text.prompt_ids, *text.token_ids]
        lines = self._decoder.take(slot, len(token_ids) - 1)
        self._kept.add(text.ticket, token_ids, lines)
