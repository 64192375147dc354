"""Requests with what was written of them, and those that wait for a place.

    added ──► arrived ──sorted──► groups of one prompt ──take──► slots

Requests of one prompt stand together, so that it is read once; then long prompts come first. Texts
with something computed already go before all others. What is written does not change by it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from coloop.workers.rollout.decoder import Lines
from coloop.workers.rollout.protocol import Generation

_of_siblings = attrgetter(
    *("max_new_tokens", "temperature", "top_p", "top_k", "stop", "greedy"),
    *("seed_from", "stop_from", "continues"),
)


def are_siblings(request: Generation, other: Generation) -> bool:
    """Whether requests differ in name, seed and script alone."""
    is_of_prompt = request.prompt_ids is other.prompt_ids
    return is_of_prompt and bool(_of_siblings(request) == _of_siblings(other))


Group = list[Generation]
"""Texts that begin alike and wait."""


def continued_by(group: Group) -> int | None:
    """Ticket of the kept text that they begin with."""
    tickets = (text.continues for text in group)
    return next((ticket for ticket in tickets if ticket is not None), None)


class Queue:
    def __init__(self) -> None:
        self._arrived: list[Generation] = []
        self._first: deque[Group] = deque()
        """Groups that continue a kept text."""
        self._groups: deque[Group] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, text: Generation) -> None:
        self._arrived.append(text)
        self._count += 1

    def take(self, count: int) -> tuple[list[Group], list[Group]]:
        """The next texts: groups that continue a kept text, then the longest first."""
        self._sort_in()
        continuing = _take(self._first, count)
        taken = sum(map(len, continuing))
        others = _take(self._groups, count - taken)
        taken += sum(map(len, others))
        self._count -= taken
        others.sort(key=_longest_first)
        return continuing, others

    def remove(self, tickets: Container[int]) -> list[Generation]:
        """Takes out texts that still wait."""
        removed = [text for text in self if text.ticket in tickets]
        if removed:
            self._arrived = [text for text in self._arrived if text.ticket not in tickets]
            self._first, self._groups = (
                deque(left for group in groups if (left := _without(group, tickets)))
                for groups in (self._first, self._groups)
            )
            self._count -= len(removed)
        return removed

    def __iter__(self) -> Iterator[Generation]:
        for groups in (self._first, self._groups):
            for group in groups:
                yield from group
        yield from self._arrived

    def _sort_in(self) -> None:
        if not self._arrived:
            return
        groups: dict[tuple[int, ...], Group] = {}
        group: Group = []
        latest: Sequence[int] | None = None
        for text in self._arrived:
            token_ids = text.to_read
            if token_ids is not latest:
                group, latest = groups.setdefault(tuple(token_ids), []), token_ids
            group.append(text)
        self._arrived = []
        self._first += [group for group in groups.values() if continued_by(group) is not None]
        others = [group for group in groups.values() if continued_by(group) is None]
        self._groups += sorted(others, key=_longest_first)


def _without(group: Group, tickets: Container[int]) -> Group:
    return [text for text in group if text.ticket not in tickets]


def _longest_first(group: Group) -> int:
    return -len(group[0].to_read)


def _take(groups: deque[Group], count: int) -> list[Group]:
    taken: list[Group] = []
    while count and groups:
        group = groups.popleft()
        taken.append(group[:count])
        if group[count:]:
            groups.appendleft(group[count:])
        count -= len(taken[-1])
    return taken


# What the texts of an engine want together: room, and ways of drawing.

SLACK = 8
"""Most steps for which a row may run on behind its end, before it is taken out."""


@dataclass(slots=True)
class Requirements:
    """Grows with each request."""

    length: int = 0  # tokens of the longest text, what follows its end included
    width: int = 0
    """Tokens of the longest completion, what follows its end included."""
    tempers: bool = False  # whether some row is drawn at another temperature than 1
    draws: bool = False  # whether some row is not greedy
    is_greedy: bool = False
    top_p: bool = False
    top_k: bool = False
    stops: bool = False
    scripts: bool = False

    def include(self, request: Generation) -> None:
        new = request.max_new_tokens + SLACK
        self.width = max(self.width, new)
        self.length = max(self.length, len(request.prompt_ids) + new)
        is_greedy = takes_likeliest(request)
        self.is_greedy |= is_greedy
        self.draws |= not is_greedy
        self.tempers |= request.temperature not in (0, 1)
        self.top_p |= request.top_p < 1
        self.top_k |= request.top_k is not None
        self.stops |= bool(request.stop)
        self.scripts |= bool(request.script)

    @property
    def cuts(self) -> bool:
        return self.draws and (self.top_p or self.top_k)


def takes_likeliest(request: Generation) -> bool:
    """Whether its tokens are not drawn but chosen."""
    return request.greedy or request.temperature == 0


# Texts that may be continued: their tokens, and what the cache held of them, which goes with new
# weights, for want of memory (what was used longest ago first) and with sleep, and is then read
# anew.


class KeptTexts:
    def __init__(self, most_bytes: int) -> None:
        """`most_bytes`: of all keys and values together."""
        self._most_bytes = most_bytes
        self._token_ids: dict[int, tuple[int, ...]] = {}  # by ticket
        self._lines: dict[int, Lines] = {}  # by ticket, longest unused first
        self._bytes = 0

    def add(self, ticket: int, token_ids: Sequence[int], lines: Lines | None) -> None:
        self._token_ids[ticket] = tuple(token_ids)
        if lines is None:
            return
        self._lines[ticket] = lines
        self._bytes += lines.nbytes
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._lines)))

    def problem(self, request: Generation) -> str | None:
        """Why a request cannot continue the text that it names."""
        ticket = request.continues
        if ticket is None:
            return None
        kept = self._token_ids.get(ticket)
        if kept is None:
            return f"it continues request {ticket}, whose text is not cached"
        length = len(kept)
        if tuple(request.prompt_ids[:length]) != kept:
            return (
                f"its prompt does not begin with the {length} tokens of request {ticket},"
                " which it continues"
            )
        return None

    def lines_of(self, ticket: int | None) -> Lines | None:
        if ticket is None or ticket not in self._lines:
            return None
        self._lines[ticket] = self._lines.pop(ticket)
        return self._lines[ticket]

    def release(self, tickets: Iterable[int]) -> None:
        for ticket in tickets:
            self._drop(ticket)
            self._token_ids.pop(ticket, None)

    def forget_lines(self) -> None:
        """What was computed is no longer true, or its memory is wanted."""
        self._lines.clear()
        self._bytes = 0

    def _drop(self, ticket: int) -> None:
        lines = self._lines.pop(ticket, None)
        self._bytes -= 0 if lines is None else lines.nbytes
