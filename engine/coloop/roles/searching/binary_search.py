"""OmegaPRM (Luo et al. 2024): the first error of a wrong text is found by halving its steps, and
each beginning that is looked at is a node of a tree whose own wrong completions are searched next.

    prompt ── k completions ──► a wrong one: complete its middle step
                                 some right: the error is behind it; none right: at it or before

The next (beginning s, wrong completion r) is the one with the greatest Q + U among beginnings with
0 < MC(s) < 1: Q = alpha^(1 - MC(s)) * beta^(len(r) / L), U = c * sqrt(sum of N) / (1 + N(s)).
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from coloop.roles.searching.growth import Growth
from coloop.roles.searching.method import CHANCES, Findings, Labelled, Places, counts_of
from coloop.roles.searching.trees import (
    Chances,
    Found,
    Grown,
    Path,
    Root,
    Search,
    Wish,
    chance_of,
)
from coloop.spec.nodes import SearchNode
from coloop.spec.search import Select
from coloop.tables import Row


class BinarySearch:
    """See the module."""

    counts_rollouts = False
    score_range = CHANCES

    def label(self, rows: Sequence[Row], growth: Growth, section: SearchNode) -> list[Labelled]:
        """One search in each wrong text."""
        paths = growth.texts(rows)
        asked = zip(rows, paths, counts_of(rows, paths, section), strict=True)
        found = growth.grow(
            [Root(row=row, key=row.id, search=of_text(path, count)) for row, path, count in asked]
        )
        return [
            Labelled(row=row, score=path.score, chances=found[row.id][0].chances)
            for row, path in zip(rows, paths, strict=True)
        ]

    def grow(
        self, rows: Sequence[Row], growth: Growth, section: SearchNode, place: Places
    ) -> Findings:
        """A tree for each prompt, which begins with as many texts as any state of it has."""
        select, count = section.select or Select(), section.completions
        assert isinstance(count, int), "no rate is known of a prompt without texts"
        most = section.budget.searches_per_row
        searches = [of_prompt(count, select, most) for _ in rows]
        roots = [
            Root(row=row, key=row.id, search=search)
            for row, search in zip(rows, searches, strict=True)
        ]
        found = growth.grow(roots, growth.graded_by_step)
        return Findings(
            rows=[
                Labelled(
                    row=growth.row(row, one.path, place(number)),
                    score=one.path.score,
                    chances=one.chances,
                )
                for row in rows
                for number, one in enumerate(found[row.id])
            ]
        )


@dataclass(slots=True, kw_only=True, eq=False)
class State:
    """A beginning whose chance is known."""

    length: int
    """Tokens of the completion."""
    chance: float
    known: Chances
    """Of its steps."""
    visits: int = 0
    waiting: list[Path] = field(default_factory=list)
    """Wrong completions that were not searched."""


Nodes = list[tuple[int, list[Path]]]
"""Ends of the steps that were looked at, with the completions from there."""
Halving = Generator[Sequence[Wish], Sequence[Grown], tuple[Nodes, bool]]


def first_error(text: Path, count: int, behind: int = 0) -> Halving:
    """The steps of a wrong text that are looked at until its first error is found, and whether it
    was.

    Args:
        behind: tokens that are known to have a chance.
    """
    ends = [end for end in text.ends if end >= behind]
    nodes: Nodes = []
    left, right = -1, len(ends) - 1
    while right - left > 1:
        middle = (left + right) // 2
        [paths] = yield [text.up_to(ends[middle], count)]
        chance = chance_of(paths or ())
        if paths is None or chance is None:
            return nodes, False
        nodes.append((ends[middle], paths))
        left, right = (middle, right) if chance > 0 else (left, middle)
    return nodes, True


def of_text(text: Path, count: int) -> Search:
    """Labels of the steps of one text that were looked at, its last one included."""
    if not text.ends or text.score is None:
        return [Found(path=text)]
    chances = {text.ends[-1]: text.score}
    if text.score == 0:
        nodes, _ = yield from first_error(text, count)
        chances |= _chances(nodes)
    return [Found(path=text, chances=chances)]


def of_prompt(count: int, select: Select, searches: int | None) -> Search:
    """Texts of one prompt: its first completions, and those that were searched below them.

    Args:
        searches: most of them; None: another limit ends them.
    """
    [paths] = yield [Wish(name="root", count=count)]
    chance = chance_of(paths or ())
    if paths is None or chance is None:
        return [_found(path, {}) for path in paths or ()]
    states = [State(length=0, chance=chance, known={}, waiting=_wrong(paths))]
    found = {path.name: _found(path, {}) for path in paths}
    done = 0
    while (picked := pick(states, select)) is not None and (searches is None or done < searches):
        state, text = picked
        state.waiting.remove(text)
        state.visits += 1
        done += 1
        nodes, has_ended = yield from first_error(text, count, state.length)
        known = {**state.known, **_chances(nodes)}
        found[text.name] = _found(text, known)
        states += [_state(end, paths, known) for end, paths in nodes]
        if not has_ended:
            break
    return list(found.values())


def pick(states: Sequence[State], select: Select) -> tuple[State, Path] | None:
    """The next to be searched; of equal ones the first."""
    visits = sum(state.visits for state in states)
    pairs = [
        (value(state, text, select, visits), state, text)
        for state in states
        if 0 < state.chance < 1
        for text in state.waiting
    ]
    if not pairs:
        return None
    _, state, text = max(pairs, key=lambda pair: pair[0])
    return state, text


def value(state: State, text: Path, select: Select, visits: int) -> float:
    """Q + U; see the module. With the rule `greedy` Q alone."""
    alpha, beta = _or(select.alpha, ALPHA), _or(select.beta, BETA)
    length = len(text.tokens.token_ids) - state.length
    worth = alpha ** (1 - state.chance) * beta ** (length / (select.length or LENGTH))
    if select.rule == "greedy":
        return float(worth)
    return float(worth + _or(select.c, C) * math.sqrt(visits) / (1 + state.visits))


ALPHA, BETA, LENGTH, C = 0.5, 0.9, 500, 0.125
"""Of the paper, where `select` leaves them open."""


def _or(given: float | None, otherwise: float) -> float:
    return otherwise if given is None else given


def _wrong(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if path.score == 0]


def _chances(nodes: Nodes) -> Chances:
    said = {end: chance_of(paths) for end, paths in nodes}
    return {end: chance for end, chance in said.items() if chance is not None}


def _state(end: int, paths: list[Path], known: Chances) -> State:
    before = {place: chance for place, chance in known.items() if place <= end}
    return State(length=end + 1, chance=known[end], known=before, waiting=_wrong(paths))


def _found(path: Path, known: Chances) -> Found:
    last = {path.ends[-1]: path.score} if path.ends and path.score is not None else {}
    return Found(path=path, chances={**known, **last})
