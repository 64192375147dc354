"""Requests with what was written of them, and those that wait for a place.

    added ──► arrived ──sorted──► groups of one prompt ──take──► slots

Requests of one prompt stand together, so that it is read once; then long prompts come first. Texts
with something computed already go before all others. What is written does not change by it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from coloop.workers.rollout.decoder import Lines
from coloop.workers.rollout.protocol import Generation


def are_siblings(one: Generation, other: Generation) -> bool:
    """Whether requests differ in name, seed and script alone."""
    return (
        one.prompt_ids is other.prompt_ids
        and one.max_new_tokens == other.max_new_tokens
        and one.temperature == other.temperature
        and one.top_p == other.top_p
        and one.top_k == other.top_k
        and one.stop == other.stop
        and one.greedy == other.greedy
        and one.seed_from == other.seed_from
        and one.stop_from == other.stop_from
        and one.continues == other.continues
    )


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
        found = [text for text in self if text.ticket in tickets]
        if found:
            self._arrived = [text for text in self._arrived if text.ticket not in tickets]
            self._first, self._groups = (
                deque(left for group in groups if (left := _without(group, tickets)))
                for groups in (self._first, self._groups)
            )
            self._count -= len(found)
        return found

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
    found: list[Group] = []
    while count and groups:
        group = groups.popleft()
        found.append(group[:count])
        if group[count:]:
            groups.appendleft(group[count:])
        count -= len(found[-1])
    return found


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
        if takes_likeliest(request):
            self.is_greedy = True
        else:
            self.draws = True
        if request.temperature not in (0, 1):
            self.tempers = True
        if request.top_p < 1:
            self.top_p = True
        if request.top_k is not None:
            self.top_k = True
        if request.stop:
            self.stops = True
        if request.script:
            self.scripts = True

    @property
    def cuts(self) -> bool:
        return self.draws and (self.top_p or self.top_k)


def takes_likeliest(request: Generation) -> bool:
    """Whether its tokens are not drawn but chosen."""
    return request.greedy or request.temperature == 0


# Texts that may be continued: their tokens, and what the cache held of them, which goes with new
# weights, for want of memory (what was used longest ago first) and with sleep, and is then read
# anew.


@dataclass(slots=True)
class _Kept:
    token_ids: tuple[int, ...]
    lines: Lines | None


class KeptTexts:
    def __init__(self, most_bytes: int) -> None:
        """`most_bytes`: of all keys and values together."""
        self._most_bytes = most_bytes
        self._texts: dict[int, _Kept] = {}
        self._cached: dict[int, int] = {}  # bytes of the lines of a ticket, longest unused first
        self._bytes = 0

    def add(self, ticket: int, token_ids: Sequence[int], lines: Lines | None) -> None:
        self._texts[ticket] = _Kept(tuple(token_ids), lines)
        if lines is None:
            return
        self._cached[ticket] = lines.nbytes
        self._bytes += lines.nbytes
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._cached)))

    def problem(self, request: Generation) -> str | None:
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
