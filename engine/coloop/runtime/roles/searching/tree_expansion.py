"""Expands the searches of many rows together: in each wave all their requests are generated in one
call of the policy and scored in one call of `outcome`. The result of a row depends on the others
only through the budget.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coloop.data.seeds import derive_seed
from coloop.data.tables import Row
from coloop.errors import DataError
from coloop.runtime.roles.generation.conversations import SILENT
from coloop.runtime.roles.generation.writer import RowPrompt, Texts, Writer
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.rows.scored import step_ends
from coloop.runtime.roles.rows.texts import prompt_of, rollout_row
from coloop.runtime.roles.searching.graders import Grader, SearchEnvironment, Valuer
from coloop.runtime.roles.searching.trees import (
    CHANCES,
    ExpansionRequest,
    Findings,
    Found,
    Grown,
    Labelled,
    Path,
    Places,
    Root,
    Search,
)
from coloop.spec.nodes import SearchNode
from coloop.spec.search import Budget
from coloop.workers.messages import TooLong

# Limits of a search step; see `spec.search.Budget`.
#
# All limits except `seconds` count requests in the order of the rows, so the load of the machine
# does not matter. A request is granted only if its longest completions fit.


@dataclass(eq=False)
class SearchBudget:
    budget: Budget
    most_rollouts: int | None
    """Completions per row; None: limited otherwise."""
    _rollouts: Counter[str] = field(default_factory=Counter, init=False)
    _nodes: dict[str, set[str]] = field(default_factory=dict, init=False)
    tokens: int = field(default=0, init=False)
    """Generated so far."""
    cut: set[str] = field(default_factory=set, init=False)
    """Trees of which a request was refused."""
    is_late: bool = field(default=False, init=False)
    """Whether the time ran out before the searches ended."""

    def __post_init__(self) -> None:
        self._ends = None if self.budget.seconds is None else time.monotonic() + self.budget.seconds

    @property
    def rollouts(self) -> int:
        """Requested completions of all trees."""
        return self._rollouts.total()

    @property
    def nodes(self) -> int:
        """Prefixes with completions, of all trees."""
        return sum(map(len, self._nodes.values()))

    def look(self, requests: Sequence[tuple[str, ExpansionRequest, int]]) -> list[bool | None]:
        """Whether each request is granted; None: it waits until the actual cost of granted ones is
        known. `requests`: tree, request, and the most tokens of one completion."""
        if self._ends is not None and time.monotonic() >= self._ends:
            self.is_late = True
            return [self._refuse(tree) for tree, _, _ in requests]
        grants: list[bool | None] = []
        reserved = 0
        for tree, request, longest in requests:
            most = request.count * longest
            if not self._has_tree_room(tree, request):
                grants.append(self._refuse(tree))
            elif not self._fits(reserved + most):
                grants.append(None if reserved and self._fits(most) else self._refuse(tree))
            else:
                reserved += most
                self._rollouts[tree] += request.count
                self._nodes.setdefault(tree, set()).add(request.name)
                grants.append(True)
        return grants

    def _has_tree_room(self, tree: str, request: ExpansionRequest) -> bool:
        most, nodes = self.most_rollouts, self.budget.nodes
        known = self._nodes.get(tree, set())
        return (most is None or self._rollouts[tree] + request.count <= most) and (
            nodes is None or request.name in known or len(known) < nodes
        )

    def _fits(self, tokens: int) -> bool:
        most = self.budget.tokens
        return most is None or self.tokens + tokens <= most

    def _refuse(self, tree: str) -> bool:
        self.cut.add(tree)
        return False


Written = Sequence[tuple[Root, ExpansionRequest, Sequence[Path]]]
"""Requests with the texts generated for them."""
Assess = Callable[[Written], list[list[Path]]]
"""Returns the texts with scores, by request."""


def with_each(
    written: Written, change: Callable[[Root, ExpansionRequest, Path], Path]
) -> list[tuple[Root, ExpansionRequest, list[Path]]]:
    """The same requests with changed texts."""
    return [
        (root, request, [change(root, request, path) for path in own])
        for root, request, own in written
    ]


def columns_of(state: str | None) -> dict[str, Any]:
    """Columns of a text that acts on a state: the state is its prompt."""
    return {} if state is None else {"prompt": state}


@dataclass(kw_only=True)
class TreeExpansion:
    """Expands the trees of many rows in waves, with one generation and one scoring call each."""

    node: str
    policy: str
    writer: Writer
    call: Call
    search_budget: SearchBudget
    longest: int
    """Most tokens of a completion."""
    texts_per_prompt: int
    """The policy's own completions per prompt."""
    separator: str
    """The text that ends a step."""
    grader: Grader | None
    """Calls the node at `outcome`; None: not connected."""
    valuer: Valuer | None = None
    """Calls the node at `value`; None: not connected."""
    environment: SearchEnvironment | None = None
    """None: the search is over texts, not over actions."""

    @property
    def alerts(self) -> dict[str, str]:
        """Alerts of the called nodes, by code."""
        asked = [node for node in (self.valuer, self.grader) if node is not None]
        return {code: message for node in asked for code, message in node.alerts.items()}

    def grow(self, roots: Sequence[Root], assess: Assess | None = None) -> dict[str, list[Found]]:
        """Run the searches to their end; returns what each has found, by `Root.key`. `assess`:
        scores the generated texts; None: `outcome` does."""
        assess = assess or self.graded
        results: dict[str, list[Found]] = {}
        live = [root for root in roots if self._asks(root, None, results)]
        while live:
            self.call.tick(len(results), len(roots))
            self._wave(live, assess)
            live = [
                root
                for root in live
                if not root.is_told
                or self._asks(root, [root.grown[n] for n in range(len(root.requests))], results)
            ]
        return results

    def grow_rows(
        self, rows: Sequence[Row], searches: Iterable[Search], assess: Assess | None = None
    ) -> list[list[Found]]:
        """Run the search of each row; returns what each has found."""
        roots = [
            Root(row=row, key=row.id, search=search)
            for row, search in zip(rows, searches, strict=True)
        ]
        found = self.grow(roots, assess)
        return [found[row.id] for row in rows]

    def texts(self, rows: Sequence[Row]) -> list[Path]:
        """The texts of rows, with scores and step ends. Raises `DataError` if a row was not
        generated by a model of the loop."""
        for row in rows:
            if row.tokens is None:
                raise DataError(
                    f"{self.node}: row {row.id} was not generated by a model of this loop, so it "
                    "has no tokens from which its steps can be completed; connect rollouts or "
                    "prompts",
                    self.node,
                    "rows",
                )
        scores, ends = self.grade(rows), self._ends(rows)
        return [
            Path(tokens=row.tokens, score=score, ends=places)
            for row, score, places in zip(rows, scores, ends, strict=True)
            if row.tokens is not None
        ]

    def graded(self, written: Written) -> list[list[Path]]:
        """The texts with their scores from `outcome`."""
        scores = iter(self.grade(self.rows(written)))
        return [[replace(path, score=next(scores)) for path in own] for _, _, own in written]

    def graded_by_step(self, written: Written) -> list[list[Path]]:
        """The same, with the ends of their steps."""
        rows = self.rows(written)
        scores, ends = iter(self.grade(rows)), iter(self._ends(rows))
        return [
            [replace(path, score=next(scores), ends=next(ends)) for path in own]
            for _, _, own in written
        ]

    def grade(self, rows: Sequence[Row]) -> list[float | None]:
        """Scores of rows from `outcome`."""
        assert self.grader is not None
        return self.grader.grade(rows)

    def goes_on(self, path: Path, request: ExpansionRequest) -> bool:
        """Whether a text that was generated as a step ends with a separator and can be
        continued."""
        before = "" if request.text is None else request.text.text
        is_ended = path.tokens.finished and self.separator in path.tokens.text[len(before) :]
        return is_ended and len(path.tokens.token_ids) < self.longest

    def valued(self, written: Written, is_asked: Callable[[Path], bool]) -> Written:
        """The texts, of which those that `is_asked` selects have the score from `value`; None if it
        is not connected."""
        rows = self.rows(
            [(root, request, [*filter(is_asked, own)]) for root, request, own in written]
        )
        promises = iter([None] * len(rows) if self.valuer is None else self.valuer.value(rows))
        return with_each(
            written,
            lambda _root, _request, path: (
                replace(path, score=next(promises)) if is_asked(path) else path
            ),
        )

    def row(
        self,
        root: Row,
        path: Path,
        k: int,
        key: str | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Row:
        """A text of the tree as the k-th child of the searched row. `columns`: further ones, or
        replacements."""
        finished = path.tokens.finished and not path.is_open
        own = {"finished": finished, **SILENT.columns, **(columns or {})}
        prompt = own["prompt"] if "prompt" in own else prompt_of(root, self.node)
        child = rollout_row(self.node, root, k, path.tokens, prompt, own, key)
        return replace(child, writer=self.policy)

    def labelled(
        self, rows: Sequence[Row], found: Iterable[Iterable[Found]], place: Places
    ) -> list[Labelled]:
        """The texts found for each row as its children, with score and chances."""
        return [
            Labelled(
                row=self.row(root, text.path, place(number), columns=text.columns),
                score=text.path.score,
                chances=text.chances,
            )
            for root, own in zip(rows, found, strict=True)
            for number, text in enumerate(own)
        ]

    def rows(self, written: Written) -> list[Row]:
        """The texts as rows for scorers."""
        return [
            self.row(root.row, path, k, f"{root.key}.{path.name}", columns_of(request.state))
            for root, request, own in written
            for k, path in enumerate(own)
        ]

    def _ends(self, rows: Sequence[Row]) -> list[tuple[int, ...]]:
        """Indices of the tokens that end the steps of each row, each once."""
        ends = step_ends(rows, self.node, self.call.context, self.separator)
        return [tuple(sorted(set(ends[row.id]))) for row in rows]

    def _asks(self, root: Root, grown: list[Grown] | None, results: dict[str, list[Found]]) -> bool:
        """Send a search its results; returns whether it has new requests, and notes its result if
        not."""
        try:
            root.requests = root.search.send(grown)  # type: ignore[arg-type]
        except StopIteration as ended:
            results[root.key] = ended.value
            return False
        root.grown = {}
        return True

    def _wave(self, live: Sequence[Root], assess: Assess) -> None:
        pending: list[tuple[Root, int, ExpansionRequest]] = []
        for root in live:
            for index, request in enumerate(root.requests):
                if index in root.grown:
                    continue
                if request.length < self.longest:
                    pending.append((root, index, request))
                else:
                    root.grown[index] = []
        grants = self.search_budget.look(
            [(root.key, request, self.longest - request.length) for root, _, request in pending]
        )
        granted = [asked for asked, is_granted in zip(pending, grants, strict=True) if is_granted]
        for (root, index, _), is_granted in zip(pending, grants, strict=True):
            if is_granted is False:
                root.grown[index] = None
        grown = self._grown([(root, request) for root, _, request in granted], assess)
        for (root, index, _), paths in zip(granted, grown, strict=True):
            root.grown[index] = paths

    def _grown(
        self, requests: Sequence[tuple[Root, ExpansionRequest]], assess: Assess
    ) -> list[list[Path]]:
        written = []
        for (root, request), texts in zip(requests, self._written(requests), strict=True):
            own = []
            if not isinstance(texts, TooLong):
                numbered = zip(request.numbers, texts, strict=True)
                own = [
                    Path(tokens=request.whole(tokens), score=None, name=f"{request.name}.{k}")
                    for k, (tokens, _) in numbered
                ]
            lengths = (len(path.tokens.token_ids) - request.length for path in own)
            self.search_budget.tokens += sum(lengths)
            written.append((root, request, own))
        return assess(written)

    def _written(self, requests: Sequence[tuple[Root, ExpansionRequest]]) -> list[Texts]:
        """The texts that the policy generates for requests; single steps in a call of their own."""
        texts: dict[int, Texts] = {}
        for is_step, stop in ((False, ()), (True, (self.separator,))):
            indices = [n for n, (_, request) in enumerate(requests) if request.is_step == is_step]
            row_prompts = [self._row_prompt(*requests[index]) for index in indices]
            texts.update(
                zip(indices, self.writer.write_on(row_prompts, self.call, stop), strict=True)
            )
        return [texts[index] for index in range(len(requests))]

    def _row_prompt(self, root: Root, request: ExpansionRequest) -> RowPrompt:
        context, call = self.call.context, self.call
        names = (context.seed, self.node, call.salt, call.step, root.key, request.name)
        return RowPrompt(
            row=root.row,
            prompt=prompt_of(root.row, self.node) if request.state is None else request.state,
            begun=request.begun,
            seeds=tuple(derive_seed(*names, k) for k in request.numbers),
        )


class Method:
    """A search method."""

    counts_rollouts = False
    """Whether `searches_per_row` limits completions; otherwise it limits searches."""
    score_range: tuple[float, float] | None = CHANCES
    """Least and greatest score of the output rows; None: unbounded."""

    def grow(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode, place: Places
    ) -> Findings:
        """Search from rows that have no text."""
        raise AssertionError(section.method)

    def label(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode
    ) -> list[Labelled]:
        """Label the steps of rows that have a text."""
        raise AssertionError(section.method)
