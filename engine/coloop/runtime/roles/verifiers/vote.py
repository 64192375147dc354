"""What most of a group answer is taken to be right: 1 for who says so, 0 for everybody else.

Scores that come in weigh the votes. Of equal answers the first seen counts. Who says nothing that
can be read has no vote and gets 0; where nobody does, nobody is right and a person is told.
"""

from collections.abc import Hashable, Sequence

from coloop.data.contests import winner
from coloop.data.patterns import PatternTimeout, pattern
from coloop.data.tables import Row
from coloop.errors import DataError
from coloop.runtime.roles.credit.credit_rows import group_keys
from coloop.runtime.roles.protocol import Call, Context, Outcome, Stateless
from coloop.runtime.roles.verifiers.judge import Incoming, judged_rows, judgement, section_of
from coloop.spec.base import as_tuple

UNREADABLE = "verifier.no_answers"
"""Alert: groups in which nobody says anything that can be counted."""


class VoteVerifier(Stateless):
    """Gives 1 to rows that agree with the majority answer of their group, 0 to others."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node

    def run(self, call: Call) -> Outcome:
        rows, incoming = judged_rows(self._node, call)
        section = section_of(self._node, call.context)
        answers = [self._answer(row, section.answer) for row in rows]
        weights = [self._weight(row, said) for row, said in zip(rows, incoming, strict=True)]
        key_of = group_keys(self._node, call.context, as_tuple(section.by) or ("prompt",))
        groups: dict[Hashable, list[int]] = {}
        for place, row in enumerate(rows):
            groups.setdefault(key_of(row), []).append(place)
        chosen = {
            key: _chosen([answers[at] for at in places], [weights[at] for at in places])
            for key, places in groups.items()
        }
        scores = [0.0] * len(rows)
        for key, places in groups.items():
            for at in places:
                scores[at] = float(chosen[key] is not None and answers[at] == chosen[key])
        silent = sum(one is None for one in chosen.values())
        alerts = [(UNREADABLE, self._unreadable(silent, len(groups)))] if silent else []
        return judgement(self._node, call.context, rows, scores, alerts=alerts)

    def _answer(self, row: Row, expression: str | None) -> str | None:
        """What of a completion is counted."""
        text = row.columns.get("completion")
        if not isinstance(text, str):
            return None
        try:
            said = text if expression is None else pattern(expression).last(text)
        except PatternTimeout as late:
            raise DataError(f"{self._node}: answer: {late}", self._node, "answer") from None
        return (said or "").strip() or None

    def _weight(self, row: Row, incoming: Incoming) -> float:
        """The sum of the scores that came in; 1 without any. A greedy extra counts in no group."""
        if row.is_greedy:
            return 0.0
        numbers = [score for score in incoming.values() if isinstance(score, float | int)]
        if any(isinstance(score, dict) for score in incoming.values()):
            raise DataError(
                f"{self._node}: row {row.id} has scores of steps, but a vote weighs one number per "
                "row; let the scorer reduce them (`read: {reduce: ...}`) and connect its `scores`",
                self._node,
                "scores",
            )
        return float(sum(numbers)) if incoming else 1.0

    def _unreadable(self, silent: int, groups: int) -> str:
        return (
            f"{self._node}: in {silent} of {groups} groups no answer could be extracted from any "
            "text, so all of them get 0; check `answer`"
        )


def _chosen(answers: Sequence[str | None], weights: Sequence[float]) -> str | None:
    place = winner(answers, weights)
    return None if place is None else answers[place]
