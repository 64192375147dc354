"""OmegaPRM (Luo et al. 2024): the first error of a wrong text is found by binary search over its
steps. Each prefix with completions is a node of a tree, whose wrong completions are searched next.

    prompt ── k completions ──► a wrong one: complete its middle step
                                 some right: the error is after it; none right: at it or before

The next (prefix s, wrong completion r) is the one with the greatest Q + U among prefixes with
0 < MC(s) < 1: Q = alpha^(1 - MC(s)) * beta^(len(r) / L), U = c * sqrt(sum of N) / (1 + N(s)).

Texts of one prompt often share prefixes, or are equal. A prefix is completed once, in whichever
text it is met first, and a text is searched once.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coloop.data.tables import Row
from coloop.runtime.roles.searching.tree_expansion import Method, TreeExpansion
from coloop.runtime.roles.searching.trees import (
    Chances,
    ExpansionRequest,
    Findings,
    Found,
    Grown,
    Labelled,
    Path,
    Places,
    Search,
    chance_of,
    counts_of,
)
from coloop.spec.nodes import SearchNode
from coloop.spec.search import Select


class BinarySearch(Method):
    def label(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode
    ) -> list[Labelled]:
        """Search the first error of each wrong text."""
        paths = expansion.texts(rows)
        found = expansion.grow_rows(rows, map(of_text, paths, counts_of(rows, paths, section)))
        return [
            Labelled(row=row, score=path.score, chances=own[0].chances)
            for row, path, own in zip(rows, paths, found, strict=True)
        ]

    def grow(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode, place: Places
    ) -> Findings:
        """Grow a tree for each prompt, whose root has as many completions as any other state."""
        select, count = section.select or Select(), section.completions
        assert isinstance(count, int), "a prompt without texts has no success rate"
        most = section.budget.searches_per_row
        searches = (of_prompt(count, select, most) for _ in rows)
        found = expansion.grow_rows(rows, searches, expansion.graded_by_step)
        return Findings(rows=expansion.labelled(rows, found, place))


@dataclass(slots=True, kw_only=True, eq=False)
class State:
    """A prefix with a known chance."""

    length: int
    """Tokens of the prefix, without the prompt."""
    chance: float
    visits: int = 0
    waiting: list[Path] = field(default_factory=list)
    """Wrong completions that have not been searched."""


class CompletedPrefixes:
    """The prefixes of one prompt that have been completed, each once."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, ...], State] = {}
        """By tokens of the prefix."""
        self._met: set[tuple[int, ...]] = set()
        """Tokens of the wrong texts that were met."""

    @property
    def states(self) -> list[State]:
        return [*self._states.values()]

    def add(self, tokens: tuple[int, ...], chance: float, paths: Sequence[Path]) -> None:
        state = State(length=len(tokens), chance=chance)
        self._states[tokens] = state
        for path in paths:
            if path.score == 0 and (text := _beginning(path)) not in self._met:
                self._met.add(text)
                state.waiting.append(path)

    def known(self, text: Path) -> Chances:
        """Chances of the steps of a text whose prefix has been completed, in this text or
        another."""
        states = {end: self._states.get(_beginning(text, end + 1)) for end in text.inner}
        return {end: state.chance for end, state in states.items() if state is not None}


class Node(NamedTuple):
    """A step after which completions were sampled."""

    end: int
    chance: float
    paths: list[Path]
    """The completions from there."""


Halving = Generator[Sequence[ExpansionRequest], Sequence[Grown], tuple[list[Node], bool]]


def first_error(text: Path, count: int, behind: int = 0, known: Chances | None = None) -> Halving:
    """Search the first error of a wrong text by halving. Returns the steps that were completed, and
    False if the budget refused one. Ends early if no completion of a step has a score. `behind`:
    tokens known to be right; `known`: chances of steps that need no completions."""
    known = known or {}
    ends = [end for end in text.ends if end >= behind]
    nodes: list[Node] = []
    left, right = -1, len(ends) - 1
    while right - left > 1:
        middle = (left + right) // 2
        chance = known.get(ends[middle])
        if chance is None:
            [paths] = yield [text.up_to(ends[middle], count)]
            if paths is None:
                return nodes, False
            chance = chance_of(paths)
            if chance is None:
                return nodes, True
            nodes.append(Node(ends[middle], chance, paths))
        left, right = (middle, right) if chance > 0 else (left, middle)
    return nodes, True


def of_text(text: Path, count: int) -> Search:
    """The search of one text: chances of the completed steps, and of the last."""
    if not text.ends or text.score is None:
        return [Found(path=text)]
    chances = {text.ends[-1]: text.score}
    if text.score == 0 and count:
        nodes, _ = yield from first_error(text, count)
        chances |= {node.end: node.chance for node in nodes}
    return [Found(path=text, chances=chances)]


def of_prompt(count: int, select: Select, searches: int | None) -> Search:
    """The search of one prompt: its first completions, and the wrong texts that were searched.
    `searches`: most of these; None: limited otherwise."""
    [paths] = yield [ExpansionRequest(name="root", count=count)]
    chance = chance_of(paths or ())
    if paths is None or chance is None:
        return [_found(path, {}) for path in paths or ()]
    tree = CompletedPrefixes()
    tree.add((), chance, paths)
    by_name = {path.name: _found(path, {}) for path in paths}
    done, has_room = 0, True
    while has_room and (searches is None or done < searches):
        picked = pick(tree.states, select)
        if picked is None:
            break
        state, text = picked
        state.waiting.remove(text)
        state.visits += 1
        done += 1
        nodes, has_room = yield from first_error(text, count, state.length, tree.known(text))
        for node in nodes:
            tree.add(_beginning(text, node.end + 1), node.chance, node.paths)
        by_name[text.name] = _found(text, tree.known(text))
    return list(by_name.values())


def pick(states: Sequence[State], select: Select) -> tuple[State, Path] | None:
    """The (state, wrong completion) to search next; the first of equal ones."""
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
    """Q + U as in the module's docstring; with the rule `greedy`, Q alone."""
    alpha, beta = _or(select.alpha, ALPHA), _or(select.beta, BETA)
    length = len(text.tokens.token_ids) - state.length
    worth = alpha ** (1 - state.chance) * beta ** (length / (select.length or LENGTH))
    if select.rule == "greedy":
        return float(worth)
    return float(worth + _or(select.c, C) * math.sqrt(visits) / (1 + state.visits))


ALPHA, BETA, LENGTH, C = 0.5, 0.9, 500, 0.125
"""Defaults for `select`, from the paper."""


def _or(given: float | None, otherwise: float) -> float:
    return otherwise if given is None else given


def _beginning(text: Path, length: int | None = None) -> tuple[int, ...]:
    """The first `length` tokens of a text; None: all."""
    return tuple(text.tokens.token_ids[:length].tolist())


def _found(path: Path, known: Chances) -> Found:
    last = {path.ends[-1]: path.score} if path.ends and path.score is not None else {}
    return Found(path=path, chances={**known, **last})
