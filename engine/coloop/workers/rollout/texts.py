"""Texts on their way: a request with what was written of it, and the texts that wait for a place.

    added ──► arrived ──sorted──► groups of one prompt ──take──► slots

Requests with the same prompt stand together, so that the prompt is read once; of those that came
together the long prompts come first, so that prompts read together have similar lengths. Texts of
which something is computed already go before all others: they finish what was begun and free what
is kept. Neither changes what is written: a row's draws are its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from coloop.workers.rollout.protocol import Generation, GenerationRequest


def are_siblings(one: GenerationRequest, other: GenerationRequest) -> bool:
    """Whether two requests differ in their names, seeds and scripts alone; those of one prompt
    share its list."""
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
    tickets = (text.request.continues for text in group)
    return next((ticket for ticket in tickets if ticket is not None), None)


class Queue:
    """Texts that wait for a slot."""

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
        """The next texts, at most so many: groups that continue a kept text, and others with the
        longest first."""
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
    """The first texts of the groups, at most so many; a group that is not taken whole stays in
    front."""
    found: list[Group] = []
    while count and groups:
        group = groups.popleft()
        found.append(group[:count])
        if group[count:]:
            groups.appendleft(group[count:])
        count -= len(found[-1])
    return found


# What the texts of an engine want together, from the moment at which it had none: the room they
# need, and which ways of drawing are asked for at all.

SLACK = 8
"""Most steps for which a row may run on behind its end, before it is taken out."""


@dataclass(slots=True)
class Requirements:
    """Grows with each request."""

    length: int = 0
    """Tokens of the longest text, what follows its end included."""
    width: int = 0
    """Tokens of the longest completion, what follows its end included."""
    tempers: bool = False
    """Whether some row is drawn at another temperature than 1."""
    draws: bool = False
    """Whether some row is not greedy."""
    is_greedy: bool = False
    """Whether some row is."""
    top_p: bool = False
    top_k: bool = False
    stops: bool = False
    scripts: bool = False

    def include(self, request: GenerationRequest) -> None:
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
        """Whether some row's distribution is cut."""
        return self.draws and (self.top_p or self.top_k)


def takes_likeliest(request: GenerationRequest) -> bool:
    """Whether its tokens are not drawn but chosen."""
    return request.greedy or request.temperature == 0
