"""Searches of many rows side by side: in each wave the wishes of all of them are written in one
call of the policy and graded in one call of `outcome`. What a row finds does not depend on the
others, but for what the budget leaves it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from coloop.errors import DataError
from coloop.hosts.messages import TooLong
from coloop.roles.conversation import SILENT
from coloop.roles.protocol import Call, Role
from coloop.roles.searching.purse import Purse
from coloop.roles.searching.trees import Found, Grown, Path, Root, Wish
from coloop.roles.steps import step_ends
from coloop.roles.texts import prompt_of
from coloop.roles.writer import Ask, Texts, Writer
from coloop.seeds import derive_seed
from coloop.tables import Row, Tokens
from coloop.tables.row import child_row


class Grader:
    """The node at `outcome`: its own code, on rows of the search."""

    def __init__(self, node: str, check: str, call: Call) -> None:
        self._node = node
        self._check = check
        self._role: Role = call.callees[check]
        self._call = call
        self.alerts: dict[str, str] = {}
        """By code, the first of what it had to say."""

    def grade(self, rows: Sequence[Row]) -> list[float | None]:
        """How good each text is, from 0 to 1."""
        if not rows:
            return []
        call = replace(
            self._call,
            stage=f"{self._check}.score",
            verb="score",
            inputs={},
            live=frozenset(),
            own=None,
            hand_on=None,
            asked=tuple(rows),
        )
        outcome = self._role.run(call)
        for code, message in outcome.alerts:
            self.alerts.setdefault(code, message)
        said = outcome.outputs["scores"].scores or {}
        return [self._checked(row, said.get(row.id)) for row in rows]

    def _checked(self, row: Row, score: object) -> float | None:
        if score is None:
            return None
        if isinstance(score, int | float) and 0 <= score <= 1:
            return float(score)
        raise DataError(
            f"{self._node}: outcome: `{self._check}` gives row {row.id} the score {score}; the "
            "chance of a step is a mean of scores from 0 (wrong) to 1 (right), so connect a check "
            "that gives these",
            self._node,
            "outcome",
        )


@dataclass(slots=True)
class _Live:
    """A search that waits for what it asked for."""

    root: Root
    wishes: Sequence[Wish]
    grown: dict[int, Grown] = field(default_factory=dict)
    """By the place of the wish."""


class Growth:
    """See the module."""

    def __init__(
        self,
        node: str,
        policy: str,
        writer: Writer,
        grader: Grader,
        purse: Purse,
        call: Call,
        *,
        longest: int,
        separator: str,
    ) -> None:
        """
        Args:
            longest: most tokens of a completion.
            separator: what ends a step.
        """
        self._node = node
        self._policy = policy
        self._writer = writer
        self._grader = grader
        self._purse = purse
        self._call = call
        self._longest = longest
        self._separator = separator

    def grow(self, roots: Sequence[Root], *, split: bool = False) -> dict[str, list[Found]]:
        """What each search finds, by its key.

        Args:
            split: it wants to know where the steps of completions end.
        """
        results: dict[str, list[Found]] = {}
        live = [one for root in roots if (one := self._begun(root, results)) is not None]
        while live:
            self._call.tick(len(results), len(roots))
            self._wave(live, split)
            live = [one for one in live if self._goes_on(one, results)]
        return results

    def texts(self, rows: Sequence[Row]) -> list[Path]:
        """The texts of rows that have one, as they are.

        Raises:
            DataError: a row has none that a model of the loop wrote.
        """
        tokens = [self._tokens(row) for row in rows]
        scores, ends = self._grader.grade(rows), self._ends(rows)
        return [
            Path(tokens=text, score=score, ends=places)
            for text, score, places in zip(tokens, scores, ends, strict=True)
        ]

    def row(self, root: Row, path: Path, k: int, key: str | None = None) -> Row:
        """A text of the tree as a child of the row that was searched."""
        tokens = path.tokens
        columns = {
            "completion": tokens.text,
            "length": len(tokens.token_ids) - tokens.heard,
            "finished": tokens.finished,
            **SILENT.columns,
        }
        child = child_row(
            self._node,
            root,
            k,
            columns,
            tokens=tokens,
            version=tokens.version,
            key=key,
            prompt=prompt_of(root, self._node),
        )
        return replace(child, writer=self._policy)

    def _ends(self, rows: Sequence[Row]) -> list[tuple[int, ...]]:
        """The tokens in which steps end; steps that end in one token are one."""
        found = step_ends(rows, self._node, self._call.context, self._separator)
        return [tuple(sorted(set(found[row.id]))) for row in rows]

    def _tokens(self, row: Row) -> Tokens:
        if row.tokens is not None:
            return row.tokens
        raise DataError(
            f"{self._node}: row {row.id} was written by no model of this loop, so there are no "
            "tokens behind which its steps could be completed; give it rollouts, or prompts",
            self._node,
            "rows",
        )

    def _begun(self, root: Root, results: dict[str, list[Found]]) -> _Live | None:
        try:
            return _Live(root, next(root.search))
        except StopIteration as ended:
            results[root.key] = ended.value
            return None

    def _goes_on(self, one: _Live, results: dict[str, list[Found]]) -> bool:
        """Whether a search still waits, for the same or for what it asks for next."""
        if len(one.grown) < len(one.wishes):
            return True
        try:
            one.wishes = one.root.search.send(
                [one.grown[place] for place in range(len(one.wishes))]
            )
        except StopIteration as ended:
            results[one.root.key] = ended.value
            return False
        one.grown = {}
        return True

    def _wave(self, live: Sequence[_Live], split: bool) -> None:
        """Grants what there is room for, and grows it."""
        open_ones: list[tuple[_Live, int, Wish]] = []
        for one in live:
            for place, wish in enumerate(one.wishes):
                if place in one.grown:
                    continue
                if wish.length < self._longest:
                    open_ones.append((one, place, wish))
                else:
                    one.grown[place] = []
        said = self._purse.look(
            [(one.root.key, wish, self._longest - wish.length) for one, _, wish in open_ones]
        )
        granted = [asked for asked, is_granted in zip(open_ones, said, strict=True) if is_granted]
        for (one, place, _), is_granted in zip(open_ones, said, strict=True):
            if is_granted is False:
                one.grown[place] = None
        grown = self._grown([(one.root, wish) for one, _, wish in granted], split)
        for (one, place, _), paths in zip(granted, grown, strict=True):
            one.grown[place] = paths

    def _grown(self, wishes: Sequence[tuple[Root, Wish]], split: bool) -> list[list[Path]]:
        """Completions of each beginning, graded."""
        texts = self._writer.write_on([self._ask(*one) for one in wishes], self._call)
        paths = [self._paths(wish, said) for (_, wish), said in zip(wishes, texts, strict=True)]
        self._purse.tokens += sum(
            len(path.tokens.token_ids) - wish.length
            for (_, wish), own in zip(wishes, paths, strict=True)
            for path in own
        )
        rows = [
            self.row(root.row, path, k, f"{root.key}.{path.name}")
            for (root, _), own in zip(wishes, paths, strict=True)
            for k, path in enumerate(own)
        ]
        scores = iter(self._grader.grade(rows))
        ends = iter(self._ends(rows) if split else [()] * len(rows))
        return [
            [replace(path, score=next(scores), ends=next(ends)) for path in own] for own in paths
        ]

    def _ask(self, root: Root, wish: Wish) -> Ask:
        context, call = self._call.context, self._call
        names = (context.seed, self._node, call.salt, call.step, root.key, wish.name)
        return Ask(
            row=root.row,
            prompt=prompt_of(root.row, self._node),
            begun=wish.begun,
            seeds=tuple(derive_seed(*names, k) for k in range(wish.count)),
        )

    def _paths(self, wish: Wish, said: Texts) -> list[Path]:
        if isinstance(said, TooLong):
            return []
        return [
            Path(tokens=wish.whole(one.tokens), score=None, name=f"{wish.name}.{k}")
            for k, one in enumerate(said)
        ]
