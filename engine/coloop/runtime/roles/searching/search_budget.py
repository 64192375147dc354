"""What a step of a search may spend; see `spec.search.Budget`.

All limits but `seconds` are met by counting what was asked for in the order of the rows, so that a
busy machine changes nothing. A request is granted only where its longest completions fit.
"""

import time
from collections import Counter
from collections.abc import Sequence

from coloop.runtime.roles.searching.trees import ExpansionRequest
from coloop.spec.search import Budget


class SearchBudget:
    """The budget of one call."""

    def __init__(self, budget: Budget, *, most_rollouts: int | None) -> None:
        """
        Args:
            most_rollouts: completions for one row; None: another limit counts them.
        """
        self._budget = budget
        self._most_rollouts = most_rollouts
        self._ends = None if budget.seconds is None else time.monotonic() + budget.seconds
        self._rollouts: Counter[str] = Counter()
        self._nodes: dict[str, set[str]] = {}
        self.tokens = 0
        """Written so far."""
        self.cut: set[str] = set()
        """Trees for which there was no room."""
        self.is_late = False
        """The time was up before the searches were."""

    @property
    def rollouts(self) -> int:
        """Completions of all trees."""
        return self._rollouts.total()

    @property
    def nodes(self) -> int:
        """Beginnings of all trees that were completed."""
        return sum(map(len, self._nodes.values()))

    def look(self, requests: Sequence[tuple[str, ExpansionRequest, int]]) -> list[bool | None]:
        """For each request whether it is granted; None: it waits until it is known what those that
        are granted cost.

        Args:
            requests: tree, request, and the most tokens of one completion.
        """
        if self._ends is not None and time.monotonic() >= self._ends:
            self.is_late = True
            return [self._refuse(tree) for tree, _, _ in requests]
        said: list[bool | None] = []
        reserved = 0
        for tree, request, longest in requests:
            most = request.count * longest
            if not self._has_tree_room(tree, request):
                said.append(self._refuse(tree))
            elif not self._fits(reserved + most):
                said.append(None if reserved and self._fits(most) else self._refuse(tree))
            else:
                reserved += most
                self._rollouts[tree] += request.count
                self._nodes.setdefault(tree, set()).add(request.name)
                said.append(True)
        return said

    def _has_tree_room(self, tree: str, request: ExpansionRequest) -> bool:
        most, nodes = self._most_rollouts, self._budget.nodes
        known = self._nodes.get(tree, set())
        return (most is None or self._rollouts[tree] + request.count <= most) and (
            nodes is None or request.name in known or len(known) < nodes
        )

    def _fits(self, tokens: int) -> bool:
        most = self._budget.tokens
        return most is None or self.tokens + tokens <= most

    def _refuse(self, tree: str) -> bool:
        self.cut.add(tree)
        return False
