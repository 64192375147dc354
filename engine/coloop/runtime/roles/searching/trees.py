"""What a method of searching asks for and what it is told: beginnings of texts to be completed, and
the texts that came of them. A search is a generator between the two.

    requests ──► policy writes, `outcome` grades ──► grown ──► more requests ... ──► what it found
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
"""Between which the scores of texts lie."""
Places = Callable[[int], int]
"""The place k among its siblings of the row's child of this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionRequest:
    """Completions of one beginning: a node of the tree."""

    name: str
    """Of the node among those of its row; it decides what is drawn."""
    count: int
    text: Tokens | None = None
    """The text that it is the beginning of; None: there is nothing but the prompt."""
    length: int = 0
    """Tokens of that text."""
    first: int = 0
    """Completions of the node that were asked for before."""
    state: str | None = None
    """What is answered instead of the row's prompt."""
    is_step: bool = False
    """Each ends with its first step, not with the text."""

    @property
    def numbers(self) -> range:
        """Of its completions among those of the node."""
        return range(self.first, self.first + self.count)

    @property
    def begun(self) -> Begun | None:
        """What the policy goes on with."""
        return None if self.text is None else Begun.of(self.text, self.length)

    def whole(self, drawn: Tokens) -> Tokens:
        """A completion as if all of it had been drawn at once: what is of an earlier draw is as it
        was drawn."""
        if self.text is None:
            return drawn
        fields: dict[str, Any] = dict(vars(drawn))
        for name in ("loss_mask", "log_probs"):
            early, late = getattr(self.text, name), getattr(drawn, name)
            fields[name] = np.concatenate([early[: self.length], late[self.length :]])
        return Tokens(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A whole text of the tree."""

    tokens: Tokens
    score: float | None
    """Of `outcome`, from 0 to 1; None: it says nothing of the text."""
    ends: tuple[int, ...] = ()
    """Tokens in which its steps end, rising."""
    name: str = ""
    """Of the text among those of its row."""
    is_open: bool = False
    """It ends with a step, and the text goes on; its score is what it promises."""
    leads: tuple[str, ...] | None = None
    """States to which it leads as an action, none where all is done; None: nowhere."""

    @property
    def inner(self) -> tuple[int, ...]:
        """Ends of all steps but the last, which is the text itself."""
        return self.ends[:-1]

    def up_to(self, end: int, count: int) -> ExpansionRequest:
        """Completions of the text up to a token."""
        return ExpansionRequest(
            name=f"{self.name}:{end}", count=count, text=self.tokens, length=end + 1
        )


Grown = list[Path] | None
"""What came of a request; None: the budget or the text has no room for it."""
Chances = dict[int, float]
"""By the token in which a step ends, the share of completions from there that are right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A text with what is known of its steps."""

    path: Path
    chances: Chances = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Of its row, beside those of every text."""


Search = Generator[Sequence[ExpansionRequest], Sequence[Grown], list[Found]]
"""Of one row."""


def chance_of(paths: Sequence[Path]) -> float | None:
    """Mean score of those that were graded."""
    scores = [path.score for path in paths if path.score is not None]
    return sum(scores) / len(scores) if scores else None


@dataclass(slots=True, kw_only=True, eq=False)
class Root:
    """A row from which a search goes out, and what that waits for."""

    row: Row
    key: str
    """Of its tree; it decides what is drawn."""
    search: Search
    requests: Sequence[ExpansionRequest] = ()
    grown: dict[int, Grown] = field(default_factory=dict)
    """By the index of the request."""

    @property
    def is_told(self) -> bool:
        """Whether it is known what came of all its requests."""
        return len(self.grown) == len(self.requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A row that the search gives."""

    row: Row
    score: float | None
    """Of its text, by `outcome`."""
    chances: Chances = field(default_factory=dict)
    before: float | None = None
    """Chance before its first step, where it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a search comes to."""

    rows: Sequence[Labelled]
    searched: Sequence[float | None] | None = None
    """Of the searched rows, where these are scored instead of the rows that are given."""
    rejected: int = 0
    """Finished proofs with which `outcome` does not agree."""


def counts_of(rows: Sequence[Row], paths: Sequence[Path], section: SearchNode) -> list[int]:
    """Completions from each beginning of these texts; by pass rate that of the texts of one group.
    A rate that no band covers gets none."""
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
    """By the token in which a step ends: `soft` its chance, `hard` whether it has any, or whether
    it keeps enough of the chance before it.

    Args:
        before: chance of the first step's beginning, for relative progress.
        stop_at_zero: steps behind the first one without a chance get no label.
    """
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
