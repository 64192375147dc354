"""What a method of searching asks for and what it is told: beginnings of texts to be completed, and
the texts that came of them. A search is a generator between the two.

    requests ──► policy writes, `outcome` grades ──► grown ──► more requests ... ──► what it found
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coloop.data.tables import Row, Tokens
from coloop.workers.messages import Begun


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


Search = Generator[Sequence[ExpansionRequest], Sequence[Grown], list[Found]]
"""Of one row."""


def chance_of(paths: Sequence[Path]) -> float | None:
    """Mean score of those that were graded."""
    scores = [path.score for path in paths if path.score is not None]
    return sum(scores) / len(scores) if scores else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A row from which a search goes out."""

    row: Row
    key: str
    """Of its tree; it decides what is drawn."""
    search: Search
