"""PUCT (Silver et al. 2017, Rosin 2011): which branch of a node is followed next, and how many
branches a node has.

    Q(b) + c * P(b) * sqrt(N) / (1 + N(b))

Q(b) is what is known of the branch, from 0 to 1; P(b) its prior, the policy's probability of it
among the branches that were drawn; N the visits of the node, the one in which it was first drawn
from included; N(b) those of the branch. Of equal branches the first drawn is followed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from coloop.runtime.roles.searching.trees import Path
from coloop.spec.search import Expand, Select

DRAWN_AT_ONCE: Final = Expand()
C: Final = 1.25
"""Weight of exploration (AlphaZero), where `select.c` leaves it open."""


@dataclass(slots=True, kw_only=True, eq=False)
class Branch:
    """What a node can be left by, with what came of its visits."""

    promise: float = 0.0
    """What it is worth before it was visited."""
    log_prob: float = 0.0
    """Of what was drawn, by the policy."""
    visits: int = 0
    total: float = 0.0

    @property
    def worth(self) -> float:
        """Q before it is brought to lie between 0 and 1."""
        return self.total / self.visits if self.visits else self.promise

    def visit(self, worth: float) -> None:
        self.visits += 1
        self.total += worth


B = TypeVar("B", bound=Branch)


def pick(
    branches: Sequence[B], visits: int, select: Select, span: tuple[float, float] = (0.0, 1.0)
) -> B:
    """The branch that is followed.

    Args:
        visits: of the node.
        span: least and greatest worth in the tree, which become 0 and 1.
    """
    c = 0.0 if select.rule == "greedy" else C if select.c is None else float(select.c)
    low, high = span
    scores = [
        (branch.worth - low) / (high - low or 1.0) + exploration(c, prior, visits, branch.visits)
        for branch, prior in zip(branches, priors([one.log_prob for one in branches]), strict=True)
    ]
    return branches[scores.index(max(scores))]


def exploration(c: float, prior: float, visits: int, own: int) -> float:
    """How much a branch of so many visits draws by being little known."""
    return c * prior * math.sqrt(visits) / (1 + own)


def priors(log_probs: Sequence[float]) -> list[float]:
    most = max(log_probs)
    shares = [math.exp(log_prob - most) for log_prob in log_probs]
    return [share / sum(shares) for share in shares]


def wanted(expand: Expand, visits: int, drawn: int, branches: int) -> int:
    """Branches to draw at a node that is visited: all samples at once, or with `progressive` as
    many as it may have by now, c * visits^alpha, at least one.

    Args:
        visits: this one included.
        drawn: samples so far, with those that came to nothing.
    """
    left = int(expand.samples) - drawn
    if expand.progressive is None:
        return left
    c, alpha = float(expand.progressive.c), float(expand.progressive.alpha)
    most = int(c * math.pow(visits, alpha))
    return max(0, min(left, max(most, 1) - branches))


def log_prob_of(path: Path, start: int, end: int) -> float:
    """Of the tokens of a text in [start, end), by the policy that drew them."""
    return float(np.sum(path.tokens.log_probs[start:end], dtype=np.float64))


def shares(visits: Sequence[int]) -> list[float]:
    """Of the visits of a node, those that each branch has; none where it has none."""
    total = sum(visits)
    return [count / total if total else 0.0 for count in visits]
