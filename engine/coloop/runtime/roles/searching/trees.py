"""Requests and results of a search method: prefixes to complete, and the completions. A search is a
generator between the two.

    requests ──► policy generates, `outcome` scores ──► grown ──► more requests ... ──► found
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from coloop.data.tables import Row, Tokens
from coloop.spec.nodes import SearchNode
from coloop.spec.search import CompletionsByRate, RelativeProgress, StepLabels
from coloop.workers.messages import Begun

CHANCES: Final = (0.0, 1.0)
"""Range of the scores of texts."""
Places = Callable[[int], int]
"""Maps the number of a row's child to its index among all children of that row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionRequest:
    """A request for completions of one prefix, a node of the tree."""

    name: str
    """Name of the node, unique for its row; part of the seeds."""
    count: int
    text: Tokens | None = None
    """The text whose prefix is completed; None: only the prompt."""
    length: int = 0
    """Tokens of that text in the prefix."""
    first: int = 0
    """How many completions of the node were requested before."""
    state: str | None = None
    """The state to act on, as the prompt, instead of the row's prompt."""
    is_step: bool = False
    """Whether each completion stops after its first step."""

    @property
    def numbers(self) -> range:
        """Numbers of its completions among those of the node."""
        return range(self.first, self.first + self.count)

    @property
    def begun(self) -> Begun | None:
        """The prefix that the policy continues; None: only the prompt."""
        return None if self.text is None else Begun.of(self.text, self.length)

    def whole(self, drawn: Tokens) -> Tokens:
        """A completion as if it had been sampled at once: its prefix has the loss mask and
        log-probs of the earlier text."""
        if self.text is None:
            return drawn
        fields: dict[str, Any] = dict(vars(drawn))
        for name in ("loss_mask", "log_probs"):
            early, late = getattr(self.text, name), getattr(drawn, name)
            fields[name] = np.concatenate([early[: self.length], late[self.length :]])
        return Tokens(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A text of the tree."""

    tokens: Tokens
    score: float | None
    """From `outcome`, 0 to 1; None: it gives the text no score."""
    ends: tuple[int, ...] = ()
    """Indices of the tokens that end its steps, ascending."""
    name: str = ""
    """Name of the text, unique for its row."""
    is_open: bool = False
    """Whether it ends with a step and can be continued; its score is then its estimated value."""
    leads: tuple[str, ...] | None = None
    """As an action: the states that it leads to, empty if nothing is left to prove; None: it is
    invalid."""

    @property
    def inner(self) -> tuple[int, ...]:
        """Ends of all steps except the last, which is the end of the text."""
        return self.ends[:-1]

    def up_to(self, end: int, count: int) -> ExpansionRequest:
        """A request for completions of the text up to and including a token."""
        return ExpansionRequest(
            name=f"{self.name}:{end}", count=count, text=self.tokens, length=end + 1
        )


Grown = list[Path] | None
"""The texts for a request, empty if the model has no room for any; None: the budget refused it."""
Chances = dict[int, float]
"""By the token that ends a step, the share of completions from there that are right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A text with the chances of its steps."""

    path: Path
    chances: Chances = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Further columns of its row."""


Search = Generator[Sequence[ExpansionRequest], Sequence[Grown], list[Found]]
"""The search of one row: yields requests, is sent their results, and returns what it has found."""


def chance_of(paths: Sequence[Path]) -> float | None:
    """Mean score of those that were graded."""
    scores = [path.score for path in paths if path.score is not None]
    return sum(scores) / len(scores) if scores else None


@dataclass(slots=True, kw_only=True, eq=False)
class Root:
    """A searched row, with its search and the requests that it waits for."""

    row: Row
    key: str
    """Name of its tree; part of the seeds."""
    search: Search
    requests: Sequence[ExpansionRequest] = ()
    grown: dict[int, Grown] = field(default_factory=dict)
    """Results by index of the request."""

    @property
    def is_told(self) -> bool:
        """Whether all requests have results."""
        return len(self.grown) == len(self.requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """An output row of a search."""

    row: Row
    score: float | None
    """Score of its text from `outcome`."""
    chances: Chances = field(default_factory=dict)
    before: float | None = None
    """Chance before its first step, if it was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result of a search stage."""

    rows: Sequence[Labelled]
    searched: Sequence[float | None] | None = None
    """Scores of the searched rows, if these are scored instead of the output rows."""
    rejected: int = 0
    """Number of finished proofs that `outcome` rejects."""


def counts_of(rows: Sequence[Row], paths: Sequence[Path], section: SearchNode) -> list[int]:
    """For each text, how many completions each of its prefixes gets. By pass rate: that of the
    texts of one group; 0 if no band covers it."""
    by = section.completions
    if not isinstance(by, CompletionsByRate):
        return [by] * len(rows)
    groups: dict[str, list[Path]] = {}
    for row, path in zip(rows, paths, strict=True):
        groups.setdefault(group_of(row), []).append(path)
    counts = {}
    for group, own in groups.items():
        rate = chance_of(own)
        bands = by.bands if rate is not None else ()
        counts[group] = next((band.use for band in bands if (rate or 0.0) < band.below), 0)
    return [counts[group_of(row)] for row in rows]


def group_of(row: Row) -> str:
    """The row whose children count as answers to one problem."""
    return row.group or row.id


def labels_of(
    chances: Chances, rule: StepLabels, *, before: float | None, stop_at_zero: bool
) -> dict[int, float]:
    """Labels by the token that ends a step: `soft`, its chance; `hard`, whether that is above 0;
    with relative progress, whether it keeps enough of the chance before it. `before`: chance before
    the first step. `stop_at_zero`: steps after the first with chance 0 get no label."""
    labels: dict[int, float] = {}
    for token, chance in sorted(chances.items()):
        label = _label(chance, before, rule)
        if label is not None:
            labels[token] = label
        if stop_at_zero and chance == 0:
            break
        before = chance
    return labels


def _label(chance: float, before: float | None, rule: StepLabels) -> float | None:
    if rule == "soft":
        return chance
    if rule == "hard":
        return float(chance > 0)
    assert isinstance(rule, RelativeProgress)
    if before is None:
        return None
    return float(before > 0 and chance / before >= rule.relative_progress)
