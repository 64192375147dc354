"""PUCT (Silver et al. 2017, Rosin 2011): which branch of a node is followed next, and how many
branches a node has.

    Q(b) + c * P(b) * sqrt(N) / (1 + N(b))

Q(b) is the mean value of the branch, from 0 to 1; P(b) its prior, the policy's probability of it
among the sampled branches; N the visits of the node, with the one that first sampled from it; N(b)
those of the branch. Of equal branches the one sampled first is followed.
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
"""Default of `select.c`, the weight of exploration (AlphaZero)."""


@dataclass(slots=True, kw_only=True, eq=False)
class Branch:
    """A branch of a node, with its visits and the sum of their values."""

    promise: float = 0.0
    """Its estimated value before the first visit."""
    log_prob: float = 0.0
    """Log-prob of its text under the policy."""
    visits: int = 0
    total: float = 0.0

    @property
    def worth(self) -> float:
        """Q before it is scaled to 0 to 1."""
        return self.total / self.visits if self.visits else self.promise

    def visit(self, worth: float) -> None:
        self.visits += 1
        self.total += worth


B = TypeVar("B", bound=Branch)


def pick(
    branches: Sequence[B], visits: int, select: Select, span: tuple[float, float] = (0.0, 1.0)
) -> B:
    """The branch to follow. `visits`: of the node; `span`: least and greatest value in the tree,
    which are scaled to 0 and 1."""
    c = 0.0 if select.rule == "greedy" else C if select.c is None else float(select.c)
    low, high = span
    scores = [
        (branch.worth - low) / (high - low or 1.0) + exploration(c, prior, visits, branch.visits)
        for branch, prior in zip(branches, priors([one.log_prob for one in branches]), strict=True)
    ]
    return branches[scores.index(max(scores))]


def exploration(c: float, prior: float, visits: int, own: int) -> float:
    """The exploration term of a branch with `own` visits."""
    return c * prior * math.sqrt(visits) / (1 + own)


def priors(log_probs: Sequence[float]) -> list[float]:
    most = max(log_probs)
    shares = [math.exp(log_prob - most) for log_prob in log_probs]
    return [share / sum(shares) for share in shares]


def wanted(expand: Expand, visits: int, drawn: int, branches: int) -> int:
    """How many branches to sample at a visited node: all at once, or with `progressive` until it
    has c * visits^alpha, at least one. `visits`: with this one; `drawn`: samples so far, also those
    without a branch."""
    left = int(expand.samples) - drawn
    if expand.progressive is None:
        return left
    c, alpha = float(expand.progressive.c), float(expand.progressive.alpha)
    most = int(c * math.pow(visits, alpha))
    return max(0, min(left, max(most, 1) - branches))


def log_prob_of(path: Path, start: int, end: int) -> float:
    """Log-prob of the tokens of a text in [start, end) under the policy that generated them."""
    return float(np.sum(path.tokens.log_probs[start:end], dtype=np.float64))


def shares(visits: Sequence[int]) -> list[float]:
    """The share of each branch in the visits; 0 if there are none."""
    total = sum(visits)
    return [count / total if total else 0.0 for count in visits]
