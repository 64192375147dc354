"""A tree of texts by PUCT: its nodes are prefixes that end with a step.

    prompt ── k samples ──► a step ── k samples ──► a step ── ... ──► a whole text
                             └ the chance of each step is backed up to the prompt

With a node at `value`, single steps are sampled after a prefix and it estimates their chance.
Without one, whole texts are sampled: the first step becomes the branch, and the share of right
texts its chance. `outcome` scores whole texts. The output is whole texts (with `give: visited` also
prefixes), each with the chances of its steps.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from coloop.data.tables import Row
from coloop.runtime.roles.searching.puct import (
    DRAWN_AT_ONCE,
    Branch,
    log_prob_of,
    pick,
    shares,
    wanted,
)
from coloop.runtime.roles.searching.tree_expansion import Method, TreeExpansion, Written, with_each
from coloop.runtime.roles.searching.trees import (
    ExpansionRequest,
    Findings,
    Found,
    Grown,
    Path,
    Places,
    Search,
    chance_of,
)
from coloop.spec.nodes import SearchNode
from coloop.spec.search import Select


class Puct(Method):
    def grow(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode, place: Places
    ) -> Findings:
        is_by_step = expansion.valuer is not None
        trees = [TextTree(section, is_by_step=is_by_step) for _ in rows]
        most = section.budget.searches_per_row
        assert most is not None
        by_step = partial(assess, expansion=expansion)
        expansion.grow_rows(
            rows,
            (search(tree, most) for tree in trees),
            by_step if is_by_step else expansion.graded_by_step,
        )
        given = (tree.given(section.give) for tree in trees)
        return Findings(rows=expansion.labelled(rows, given, place))


@dataclass(slots=True, kw_only=True, eq=False)
class Node(Branch):
    """A prefix of a text, or a whole text; its value is its chance."""

    name: str
    length: int = 0
    """Tokens of the prefix, without the prompt."""
    text: Path | None = None
    """A text with this prefix; None: the root, only the prompt."""
    is_whole: bool = False
    branches: dict[tuple[int, ...], "Node"] = field(default_factory=dict)
    """By tokens of their step."""
    drawn: int = 0
    is_dead: bool = False
    """Whether no branch is left to follow or to sample."""

    @property
    def live(self) -> list["Node"]:
        """Branches that are not dead."""
        return [node for node in self.branches.values() if not node.is_dead]


class TextTree:
    def __init__(self, section: SearchNode, *, is_by_step: bool) -> None:
        self.root = Node(name="root")
        self._select = section.select or Select()
        self._expand = section.expand or DRAWN_AT_ONCE
        self._is_by_step = is_by_step
        self._texts: dict[tuple[int, ...], Path] = {}
        """Distinct whole texts, and with single steps also prefixes, by tokens, in the order in
        which they were sampled."""

    def descend(self) -> tuple[list[Node], int]:
        """The path to the node to expand next, and how many branches to sample: 0 if it is a whole
        text, or the tree is dead."""
        way = [self.root]
        while not (node := way[-1]).is_whole and not self.root.is_dead:
            live = node.live
            if count := wanted(self._expand, node.visits + 1, node.drawn, len(live)):
                return way, count
            node.is_dead = not live
            way = [*way, pick(live, node.visits, self._select)] if live else [self.root]
        return way, 0

    def request(self, node: Node, count: int) -> ExpansionRequest:
        return ExpansionRequest(
            name=node.name,
            count=count,
            first=node.drawn,
            text=None if node.text is None else node.text.tokens,
            length=node.length,
            is_step=self._is_by_step,
        )

    def grow(self, node: Node, count: int, paths: Grown) -> float | None:
        """Add sampled texts to a node; returns their mean score, None if none has one."""
        node.drawn += count
        known = [path for path in paths or () if path.score is not None]
        steps: dict[tuple[int, ...], list[tuple[int, Path]]] = {}
        for path in known:
            end = _first_end(path, node.length)
            step = tuple(path.tokens.token_ids[node.length : end].tolist())
            steps.setdefault(step, []).append((end, path))
            self._texts.setdefault(tuple(path.tokens.token_ids.tolist()), path)
        for step, drawn in steps.items():
            if step not in node.branches:
                node.branches[step] = _branch(node, drawn)
        return chance_of(known)

    def climb(self, way: Sequence[Node], promise: float | None) -> None:
        for node in way if promise is not None else ():
            node.visit(promise or 0.0)

    def given(self, give: str) -> Iterator[Found]:
        """The texts with the chances of their steps. Column `share`: the probability of the text if
        each step is chosen by its share of the visits."""
        for path in self._texts.values():
            if path.is_open and give == "proofs":
                continue
            nodes = [*self._along(path)]
            chances = {node.length - 1: node.worth for node, _ in nodes if not node.is_whole}
            score = nodes[-1][0].worth if path.is_open else path.score
            if not path.is_open and path.ends and path.score is not None:
                chances[path.ends[-1]] = path.score
            share = math.prod(own for _, own in nodes)
            yield Found(path=replace(path, score=score), chances=chances, columns={"share": share})

    def _along(self, path: Path) -> Iterator[tuple[Node, float]]:
        """The nodes along a text, each with its share of its siblings' visits."""
        node, ids = self.root, path.tokens.token_ids
        while node.branches:
            below = next(
                (
                    one
                    for step, one in node.branches.items()
                    if tuple(ids[node.length : one.length].tolist()) == step
                ),
                None,
            )
            if below is None:
                return
            siblings = [*node.branches.values()]
            yield below, shares([one.visits for one in siblings])[siblings.index(below)]
            node = below


def search(tree: TextTree, visits: int) -> Search:
    """Visit the tree this many times, or until nothing is left to sample."""
    for _ in range(visits):
        way, count = tree.descend()
        node = way[-1]
        if node.is_whole:
            tree.climb(way, node.promise)
            continue
        if not count:
            break  # nothing can be drawn at the prompt
        [paths] = yield [tree.request(node, count)]
        if paths is None:
            break
        tree.climb(way, tree.grow(node, count, paths))
    return []


def assess(written: Written, expansion: TreeExpansion) -> list[list[Path]]:
    """Single steps with their estimated value, and whole texts with their score."""
    opened = with_each(
        written,
        lambda _root, request, path: replace(path, is_open=expansion.goes_on(path, request)),
    )
    whole = [
        (root, request, [one for one in own if not one.is_open]) for root, request, own in opened
    ]
    valued = expansion.valued(opened, lambda path: path.is_open)
    grades = (one for own in expansion.graded_by_step(whole) for one in own)
    return [
        [replace(one, score=_chance(one.score)) if one.is_open else next(grades) for one in own]
        for _, _, own in valued
    ]


def _chance(promise: float | None) -> float | None:
    """An estimated value, clamped to 0 to 1, as a critic's may be outside."""
    return None if promise is None else min(max(promise, 0.0), 1.0)


def _branch(node: Node, drawn: Sequence[tuple[int, Path]]) -> Node:
    end, text = drawn[0]
    return Node(
        name=f"{text.name}:{end}",
        length=end,
        text=text,
        is_whole=not text.is_open and end >= len(text.tokens.token_ids),
        promise=chance_of([path for _, path in drawn]) or 0.0,
        log_prob=log_prob_of(text, node.length, end),
    )


def _first_end(path: Path, start: int) -> int:
    """Number of tokens up to the end of the first step after a prefix."""
    return next((end + 1 for end in path.inner if end >= start), len(path.tokens.token_ids))
