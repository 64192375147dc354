"""Texts that ended and may be continued: their tokens, and what the cache held of them.

Only speed hangs on the second. It goes when new weights come, when memory is short (what was kept
or used longest ago first), and when the engine sleeps; then a text that continues it is read anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coloop.workers.rollout.decoder import Lines
from coloop.workers.rollout.protocol import GenerationRequest


@dataclass(slots=True)
class _Kept:
    token_ids: tuple[int, ...]
    lines: Lines | None


class KeptTexts:
    def __init__(self, most_bytes: int) -> None:
        """`most_bytes`: of all keys and values together."""
        self._most_bytes = most_bytes
        self._texts: dict[int, _Kept] = {}
        self._cached: dict[int, int] = {}
        """Bytes of the lines of a ticket, longest unused first."""
        self._bytes = 0

    def add(self, ticket: int, token_ids: Sequence[int], lines: Lines | None) -> None:
        self._texts[ticket] = _Kept(tuple(token_ids), lines)
        if lines is None:
            return
        self._cached[ticket] = lines.nbytes
        self._bytes += lines.nbytes
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._cached)))

    def problem(self, request: GenerationRequest) -> str | None:
        """Why a request cannot continue the text that it names."""
        ticket = request.continues
        if ticket is None:
            return None
        kept = self._texts.get(ticket)
        if kept is None:
            return f"it continues request {ticket}, whose text is not cached"
        length = len(kept.token_ids)
        if tuple(request.prompt_ids[:length]) != kept.token_ids:
            return (
                f"its prompt does not begin with the {length} tokens of request {ticket},"
                " which it continues"
            )
        return None

    def lines_of(self, ticket: int | None) -> Lines | None:
        """What is computed of a text."""
        kept = self._texts.get(ticket) if ticket is not None else None
        if kept is None or kept.lines is None:
            return None
        self._cached[ticket] = self._cached.pop(ticket)  # type: ignore[index,arg-type]
        return kept.lines

    def release(self, tickets: Iterable[int]) -> None:
        for ticket in tickets:
            self._drop(ticket)
            self._texts.pop(ticket, None)

    def forget_lines(self) -> None:
        """What was computed is no longer true, or its memory is wanted."""
        for ticket in list(self._cached):
            self._drop(ticket)

    def _drop(self, ticket: int) -> None:
        self._bytes -= self._cached.pop(ticket, 0)
        if ticket in self._texts:
            self._texts[ticket].lines = None
