"""The rows that are being written: what they drew, how far they are, what ended them.

All state is a few tensors over the slots, so a step costs the same calls for one row as for a
thousand; only rows that end are looked at one by one. They may run on for some steps behind their
end before that; what they draw there is cut off.

S slots, N running rows, R requests, W tokens that a row can hold, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from coloop.rollout.counter import uniforms
from coloop.rollout.protocol import GenerationRequest, Reason
from coloop.rollout.sampling import KEEP_ALL, Settings, draw
from coloop.rollout.stops import StopTexts

_COUNTERS = (
    "last",
    "position",
    "drawn",
    "limit",
    "end",
    "stop_set",
    "looked",
    "may_stop",
    "stopped",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A row that came to its end."""

    request: int
    token_ids: list[int]
    log_probs: list[float]
    sampled_log_probs: list[float] | None
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """How the gaps that ended rows left are closed: slot targets[i] becomes what sources[i] was."""

    rows: int
    """Rows left."""
    targets: Tensor
    sources: Tensor


class Slots:
    """State of S slots, of which the first `running` are in use."""

    def __init__(
        self,
        requests: Sequence[GenerationRequest],
        slots: int,
        is_end: Tensor,
        stops: StopTexts | None,
        slack: int,
    ) -> None:
        """`is_end` (V,): tokens that end a text; `slack`: steps that a row may go on behind its
        end."""
        self._requests = requests
        self._is_end = is_end
        self._end_ids = set(is_end.nonzero().flatten().tolist())
        self._stops = stops
        self._device = is_end.device
        self._width = max(request.max_new_tokens for request in requests) + slack
        self.running = 0
        self.rows: list[int] = []
        """The request of each running slot."""
        self._given: list[tuple[Tensor, Tensor]] = []  # of each slot (S,), of each request (R,)
        self._settings = self._read_settings(slots)

        def zeros(dtype: torch.dtype, *size: int) -> Tensor:
            return torch.zeros(slots, *size, dtype=dtype, device=self._device)

        counters = zeros(torch.int64, len(_COUNTERS) if stops else 5)
        by_name = dict(zip(_COUNTERS, counters.unbind(1), strict=False))
        self.last, self.position = by_name["last"], by_name["position"]
        self._drawn, self._limit, self._end = by_name["drawn"], by_name["limit"], by_name["end"]
        if stops is not None:
            self._stop_set, self._looked = by_name["stop_set"], by_name["looked"]
            self._may_stop, self._stopped = by_name["may_stop"], by_name["stopped"]
        self._counters = counters
        self._tokens = zeros(torch.int64, self._width)
        numbers = zeros(torch.float32, 3 if self._settings.cuts else 2, self._width)
        self._uniform, self._log_probs = numbers[:, 0], numbers[:, 1]
        self._sampled = numbers[:, 2] if self._settings.cuts else None
        self._state = [counters, self._tokens, numbers, *(own for own, _ in self._given)]

    def _give(self, values: Sequence[float], slots: int) -> Tensor:
        """A setting that a slot takes over from its request."""
        of_request = torch.tensor(values, device=self._device)
        of_slot = torch.zeros(slots, dtype=of_request.dtype, device=self._device)
        self._given.append((of_slot, of_request))
        return of_slot

    def _read_settings(self, slots: int) -> Settings:
        """What no request asks for stays None, and is not computed."""
        requests, everything = self._requests, len(self._is_end)
        greedy = [request.greedy or request.temperature == 0 for request in requests]
        inverse = [1 / (request.temperature or 1.0) for request in requests]
        top_p = [request.top_p if request.top_p < 1 else KEEP_ALL for request in requests]
        top_k = [min(request.top_k or everything, everything) for request in requests]
        return Settings(
            inverse_temperature=self._give(inverse, slots) if set(inverse) != {1.0} else None,
            greedy=self._give(greedy, slots) if any(greedy) else None,
            top_p=self._give(top_p, slots) if set(top_p) != {KEEP_ALL} else None,
            top_k=self._give(top_k, slots) if set(top_k) != {everything} else None,
            all_greedy=all(greedy),
        )

    def admit(self, rows: Sequence[int], logits: Tensor) -> None:
        """Puts requests behind the running rows and draws the first token of each. logits (n, V)"""
        first, last = self.running, self.running + len(rows)
        if self._given:
            chosen = torch.tensor(rows, device=self._device)
            for of_slot, of_request in self._given:
                of_slot[first:last] = of_request[chosen]
        requests = [self._requests[row] for row in rows]
        started = [self._start(request) for request in requests]
        self._counters[first:last] = torch.tensor(started, device=self._device)
        seeds = [request.seed for request in requests]
        self._uniform[first:last] = uniforms(seeds, self._width, self._device)
        self.rows.extend(rows)
        self.running = last
        self._draw(first, last, logits)

    def _start(self, request: GenerationRequest) -> list[int]:
        """The counters of a row that has drawn nothing yet, in the order of `_COUNTERS`."""
        counters = [0, len(request.prompt_ids) - 1, 0, request.max_new_tokens, 0]
        return (
            counters
            if self._stops is None
            else [*counters, self._stops.set_of[request.stop], 0, 0, 0]
        )

    def advance(self, logits: Tensor) -> None:
        """Draws one token more for every running row. logits (N, V)"""
        self._draw(0, self.running, logits)

    def _draw(self, first: int, last: int, logits: Tensor) -> None:
        drawn, end = self._drawn[first:last], self._end[first:last]
        column = drawn[:, None]
        uniform = self._uniform[first:last].gather(1, column).squeeze(1)
        result = draw(logits, uniform, self._settings.part(first, last))
        tokens = result.tokens
        self.last[first:last] = tokens
        self._tokens[first:last].scatter_(1, column, tokens[:, None])
        self._log_probs[first:last].scatter_(1, column, result.log_probs[:, None])
        if self._sampled is not None and result.sampled_log_probs is not None:
            self._sampled[first:last].scatter_(1, column, result.sampled_log_probs[:, None])
        drawn.add_(1)
        self.position[first:last].add_(1)
        ends_now = self._is_end[tokens].logical_or_(drawn >= self._limit[first:last])
        end.copy_(torch.where(ends_now & (end == 0), drawn, end))
        if self._stops is not None:
            self._may_stop[first:last] |= self._stops.may_end[self._stop_set[first:last], tokens]

    def tokens_running(self) -> int:
        """Tokens that the running rows have so far."""
        return int(self._drawn[: self.running].sum())

    def longest(self) -> int:
        """The greatest position of a running row."""
        return int(self.position[: self.running].max()) if self.running else 0

    def count_ended(self) -> int:
        """Rows that have ended and still hold their slot."""
        if self._stops is not None:
            self._find_stops(self._stops)
        return int(self._end[: self.running].count_nonzero())

    def _find_stops(self, stops: StopTexts) -> None:
        """Ends rows that wrote a stop text."""
        for slot in self._may_stop[: self.running].nonzero().flatten().tolist():
            count = int(self._end[slot] or self._drawn[slot])
            written = self._tokens[slot, :count].tolist()
            found = stops.first_end(int(self._stop_set[slot]), written, int(self._looked[slot]))
            self._looked[slot] = count
            if found is not None:
                self._end[slot] = found
                self._stopped[slot] = 1
        self._may_stop[: self.running] = 0

    def collect(self) -> tuple[list[Ended], Moves]:
        """Takes out the rows that have ended."""
        slots = self._end[: self.running].nonzero().squeeze(1)
        return self._read_out(slots), self._close_gaps(slots.tolist())

    def _read_out(self, slots: Tensor) -> list[Ended]:
        ends = self._end[slots].tolist()
        longest = max(ends)
        stopped = [0] * len(ends) if self._stops is None else self._stopped[slots].tolist()
        tokens = self._tokens[slots, :longest].tolist()
        log_probs = self._log_probs[slots, :longest].tolist()
        sampled = None if self._sampled is None else self._sampled[slots, :longest].tolist()
        found = []
        for at, (slot, end) in enumerate(zip(slots.tolist(), ends, strict=True)):
            token_ids = tokens[at][:end]
            reason: Reason = "stop" if stopped[at] else "length"
            if reason == "length" and token_ids[-1] in self._end_ids:
                reason = "eos"
            found.append(
                Ended(
                    request=self.rows[slot],
                    token_ids=token_ids,
                    log_probs=log_probs[at][:end],
                    sampled_log_probs=None if sampled is None else sampled[at][:end],
                    reason=reason,
                )
            )
        return found

    def _close_gaps(self, ended: list[int]) -> Moves:
        """Moves the last rows into the slots that are free now."""
        rows = self.running - len(ended)
        gone = set(ended)
        gaps = [slot for slot in ended if slot < rows]
        movers = [slot for slot in range(rows, self.running) if slot not in gone]
        moved = torch.tensor([gaps, movers], dtype=torch.int64, device=self._device)
        targets, sources = moved.unbind(0)
        if gaps:
            for values in self._state:
                values[targets] = values[sources]
        for gap, mover in zip(gaps, movers, strict=True):
            self.rows[gap] = self.rows[mover]
        del self.rows[rows:]
        self.running = rows
        return Moves(rows=rows, targets=targets, sources=sources)
