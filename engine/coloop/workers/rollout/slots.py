"""The sequences that are being generated: the tokens of each, its position, and how it ended.

All state is held in a few tensors over the slots, so a step makes the same number of calls for any
number of rows. Rows may run past their end for a few steps; the surplus tokens are cut off.

S slots, N running rows, W tokens that a row can hold, V vocabulary size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from coloop.workers.rollout.protocol import Generation, Reason
from coloop.workers.rollout.sampling import KEEP_ALL, NO_SCRIPT, Settings, draw, uniforms
from coloop.workers.rollout.stops import StopTexts
from coloop.workers.rollout.texts import SLACK, Requirements, takes_likeliest

_COUNTERS = (
    "last",
    "position",
    "drawn",
    "limit",
    "end",
    "pace",
    "stop_set",
    "looked",
    "may_stop",
    "stopped",
)
_WITHOUT_STOPS = 6


class Slots:
    """State of S slots, of which the first `running` are in use."""

    def __init__(
        self, count: int, requirements: Requirements, is_end: Tensor, stops: StopTexts
    ) -> None:
        """`is_end` (V,): mask of the tokens that end a text. State that `requirements` does not
        need is neither allocated nor computed."""
        self.count, self.requirements = count, replace(requirements)
        self._is_end = is_end
        self._end_ids = set(is_end.nonzero().flatten().tolist())
        self._stops = stops if requirements.stops else None
        self._device = is_end.device
        self.running = 0
        self.texts: list[Generation] = []
        """The generation in each running slot."""
        counters = self._zeros(
            torch.int64, len(_COUNTERS) if requirements.stops else _WITHOUT_STOPS
        )
        by_name = dict(zip(_COUNTERS, counters.unbind(1), strict=False))
        self.last, self.position = by_name["last"], by_name["position"]
        self._drawn, self._limit, self._end = by_name["drawn"], by_name["limit"], by_name["end"]
        self._pace = by_name["pace"]  # tokens that a slot gains per step: 1 if it holds a row
        if requirements.stops:
            self._stop_set, self._looked = by_name["stop_set"], by_name["looked"]
            self._may_stop, self._stopped = by_name["may_stop"], by_name["stopped"]
        self._counters = counters
        self._tokens = self._zeros(torch.int64, requirements.width)
        self._numbers = self._zeros(
            torch.float32, 3 if requirements.cuts else 2, requirements.width
        )
        self._uniform, self._log_probs = self._numbers[:, 0], self._numbers[:, 1]
        self._sampled = self._numbers[:, 2] if requirements.cuts else None
        self._scripts = (
            self._zeros(torch.int64, requirements.width) if requirements.scripts else None
        )
        self._settings = Settings(
            inverse_temperature=self._zeros(torch.float32) if requirements.tempers else None,
            greedy=self._zeros(torch.bool) if requirements.is_greedy else None,
            top_p=self._zeros(torch.float32) if requirements.top_p else None,
            top_k=self._zeros(torch.int64) if requirements.top_k else None,
            all_greedy=not requirements.draws,
        )
        s = self._settings
        optional = (s.inverse_temperature, s.greedy, s.top_p, s.top_k, self._scripts)
        self._state = [
            *(counters, self._tokens, self._numbers),
            *(values for values in optional if values is not None),
        ]

    def _zeros(self, dtype: torch.dtype, *size: int) -> Tensor:
        return torch.zeros(self.count, *size, dtype=dtype, device=self._device)

    def serves(self, requirements: Requirements) -> bool:
        """Whether texts with these requirements can be generated in these slots."""
        own = replace(self.requirements, width=requirements.width, length=requirements.length)
        return own == requirements and self.requirements.width >= requirements.width

    def emptied(self) -> Slots:
        """Remove all rows and return these slots, which keep their memory."""
        self._counters.zero_()
        self.texts, self.running = [], 0
        return self

    def enlarged(self, count: int, requirements: Requirements, stops: StopTexts) -> Slots:
        """New slots for `count` rows and these requirements, with a copy of the current rows. They
        may be narrower: these can be slots of earlier texts, longer than those that run now."""
        other = Slots(count, requirements, self._is_end, stops)
        rows, width = slice(0, self.running), min(self.requirements.width, requirements.width)
        other.join(self.texts)
        other._counters[rows, : self._counters.shape[1]] = self._counters[rows]
        other._tokens[rows, :width] = self._tokens[rows, :width]
        other._numbers[rows, : self._numbers.shape[1], :width] = self._numbers[rows, :, :width]
        if other._scripts is not None and self._scripts is not None:
            other._scripts[rows, :width] = self._scripts[rows, :width]
        if other._sampled is not None and self._sampled is None:
            other._sampled[rows, :width] = self._log_probs[rows, :width]  # nothing was cut so far
        return other

    # Adding rows

    def admit(self, texts: Sequence[Generation], logits: Tensor) -> None:
        """Add texts after the running rows and draw the next token of each from logits (n, V)."""
        first = self.running
        self.join(texts)
        self._draw(first, self.running, logits)

    def join(self, texts: Sequence[Generation]) -> None:
        """Add texts after the running rows; the model reads their last token in the next step."""
        if not texts:
            return
        first, last = self.running, self.running + len(texts)
        started = [self._start(text) for text in texts]
        self._counters[first:last] = torch.tensor(started, device=self._device)
        self._take_settings(first, last, texts)
        width = max(text.max_new_tokens for text in texts) + SLACK
        starts = [
            0 if text.seed_from is None else len(text.prompt_ids) - text.seed_from for text in texts
        ]
        seeds = [text.seed for text in texts]
        self._uniform[first:last, :width] = uniforms(seeds, width, self._device, starts=starts)
        for slot, text in enumerate(texts, start=first):
            if text.before:
                self._put_back(slot, text)
            if self._scripts is not None:
                self._take_script(self._scripts[slot], text.script)
        self.texts.extend(texts)
        self.running = last

    def _start(self, text: Generation) -> list[int]:
        """The initial counters of a row, in the order of `_COUNTERS`."""
        read = text.to_read
        drawn = len(read) - len(text.prompt_ids)
        counters = [read[-1], len(read) - 1, drawn, text.max_new_tokens, 0, 1]
        if self._stops is None:
            return counters
        return [*counters, self._stops.number_of(text.stop), drawn, 0, 0]

    def _take_settings(self, first: int, last: int, texts: Sequence[Generation]) -> None:
        settings, vocabulary = self._settings, len(self._is_end)

        def fill(values: Tensor | None, value_of: Callable[[Generation], float]) -> None:
            if values is not None:
                new = [value_of(text) for text in texts]
                values[first:last] = torch.tensor(new, device=self._device, dtype=values.dtype)

        fill(settings.inverse_temperature, lambda text: 1 / (text.temperature or 1.0))
        fill(settings.greedy, takes_likeliest)
        fill(settings.top_p, lambda text: text.top_p if text.top_p < 1 else KEEP_ALL)
        fill(settings.top_k, lambda text: min(text.top_k or vocabulary, vocabulary))

    def _take_script(self, slot_script: Tensor, script: Sequence[int]) -> None:
        slot_script.fill_(NO_SCRIPT)
        tokens = script[: len(slot_script)]
        slot_script[: len(tokens)] = torch.tensor(
            tokens, dtype=slot_script.dtype, device=self._device
        )

    def _put_back(self, slot: int, text: Generation) -> None:
        """Restore the tokens and log-probs of a row that earlier weights generated."""
        count = text.before
        self._tokens[slot, :count] = torch.tensor(text.token_ids, device=self._device)
        self._log_probs[slot, :count] = torch.tensor(text.log_probs, device=self._device)
        if self._sampled is not None:
            sampled = text.sampled_log_probs or text.log_probs
            self._sampled[slot, :count] = torch.tensor(sampled, device=self._device)

    # Drawing a token

    def advance(self, logits: Tensor) -> None:
        """Draw one token for each of the first n slots from their logits (n, V)."""
        self._draw(0, len(logits), logits)

    def _draw(self, first: int, last: int, logits: Tensor) -> None:
        drawn, end = self._drawn[first:last], self._end[first:last]
        column = drawn[:, None]
        uniform = self._uniform[first:last].gather(1, column).squeeze(1)
        scripts = self._scripts
        scripted = None if scripts is None else scripts[first:last].gather(1, column).squeeze(1)
        tokens, log_probs = draw(logits, uniform, self._settings.part(first, last), scripted)
        self.last[first:last] = tokens
        self._tokens[first:last].scatter_(1, column, tokens[:, None])
        columns = column[:, None].expand(-1, log_probs.shape[1], -1)
        self._numbers[first:last, 1:].scatter_(2, columns, log_probs[:, :, None])
        pace = self._pace[first:last]
        drawn.add_(pace)
        self.position[first:last].add_(pace)
        ends_now = self._is_end[tokens].logical_or_(drawn >= self._limit[first:last])
        end.copy_(torch.where(ends_now & (end == 0), drawn, end))
        if self._stops is not None:
            may_stop = self._may_stop[first:last]
            may_stop |= self._stops.may_end[self._stop_set[first:last], tokens]

    def written(self) -> int:
        return int(self._drawn[: self.running].sum())

    def longest(self) -> int:
        return int(self.position[: self.running].max()) if self.running else 0

    # Removing rows

    def count_ended(self) -> int:
        """Number of rows that have ended, at a stop text or otherwise, and still hold a slot."""
        if self._stops is not None:
            self._find_stops(self._stops)
        return int(self._end[: self.running].count_nonzero())

    def _find_stops(self, stops: StopTexts) -> None:
        for slot in self._may_stop[: self.running].nonzero().flatten().tolist():
            text = self.texts[slot]
            first = len(text.prompt_ids) if text.stop_from is None else text.stop_from
            earlier = list(text.prompt_ids[first:])  # of the same text, by earlier requests
            count = int(self._end[slot] or self._drawn[slot])
            token_ids = earlier + self._tokens[slot, :count].tolist()
            start = len(earlier) + int(self._looked[slot])
            end = stops.first_end(int(self._stop_set[slot]), token_ids, start)
            self._looked[slot] = count
            if end is not None:
                self._end[slot] = end - len(earlier)
                self._stopped[slot] = 1
        self._may_stop[: self.running] = 0

    def collect(self, cut: Sequence[int] = ()) -> dict[int, Generation]:
        """Generations by slot: of the rows that have ended, and of the slots in `cut`, which are
        aborted if unfinished. The slots stay occupied until `close_gaps`."""
        ends = self._end[: self.running]
        slots = ends.nonzero().squeeze(1)
        counts = ends[slots]
        reasons = self._reasons(slots)
        if cut:
            aborted = [slot for slot in cut if not ends[slot]]
            more = torch.tensor(aborted, dtype=slots.dtype, device=self._device)
            slots = torch.cat([slots, more])
            counts = torch.cat([counts, self._drawn[more]])
            reasons += ["aborted"] * len(aborted)
        indices = slots.tolist()
        self._read_out([self.texts[slot] for slot in indices], slots, counts)
        return {
            slot: self.texts[slot].ends(reason)
            for slot, reason in zip(indices, reasons, strict=True)
        }

    def _reasons(self, slots: Tensor) -> list[Reason]:
        last = self._tokens[slots, self._end[slots] - 1].tolist()
        reasons: list[Reason] = ["eos" if token in self._end_ids else "length" for token in last]
        if self._stops is not None:
            for index in self._stopped[slots].nonzero().flatten().tolist():
                reasons[index] = "stop"
        return reasons

    def _read_out(self, texts: Sequence[Generation], slots: Tensor, counts: Tensor) -> None:
        """Copy the first `counts[i]` tokens and log-probs of `slots[i]` into `texts[i]`."""
        lengths = counts.tolist()
        longest = max(lengths, default=0)
        tokens = self._tokens[:, :longest].index_select(0, slots).tolist()
        log_probs = self._log_probs[:, :longest].index_select(0, slots).tolist()
        sampled = (
            None
            if self._sampled is None
            else self._sampled[:, :longest].index_select(0, slots).tolist()
        )
        for index, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            text.token_ids = tokens[index][:length]
            text.log_probs = log_probs[index][:length]
            text.sampled_log_probs = None if sampled is None else sampled[index][:length]

    def close_gaps(
        self, ended: Collection[int], keep: Callable[[int, Tensor, Tensor], None]
    ) -> None:
        """Move the last rows into the slots of those that have ended.

        Args:
            keep: called with the number of rows left, the target slots and the source slots: the
                row in slot sources[i] moves to slot targets[i].
        """
        rows = self.running - len(ended)
        gone = set(ended)
        gaps = [slot for slot in ended if slot < rows]
        movers = [slot for slot in range(rows, self.running) if slot not in gone]
        moved = torch.tensor([gaps, movers], dtype=torch.int64, device=self._device)
        targets, sources = moved.unbind(0)
        if gaps:
            for values in self._state:
                values.index_copy_(0, targets, values.index_select(0, sources))
        for gap, mover in zip(gaps, movers, strict=True):
            self.texts[gap] = self.texts[mover]
        self._counters[rows : self.running] = 0
        del self.texts[rows:]
        self.running = rows
        keep(rows, targets, sources)
