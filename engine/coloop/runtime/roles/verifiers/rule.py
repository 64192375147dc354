"""Verifiers without a model: the checker of a row's task, a formal checker, a majority vote."""

from collections.abc import Hashable
from functools import partial

from coloop.data.contests import winner
from coloop.data.patterns import PatternTimeout, pattern
from coloop.data.rewards.judging import source_of
from coloop.data.rewards.user_code import reward_columns, score_rows
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Score
from coloop.data.tasks import check_row, check_row_steps, has_checker
from coloop.errors import DataError
from coloop.runtime.roles.credit.credit_rows import group_keys
from coloop.runtime.roles.protocol import Call, Context, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import scored_rows
from coloop.runtime.roles.rows.scored import at_ends, step_ends, steps_of
from coloop.runtime.roles.verifiers.judge import Incoming, judgement, reduced, wants_steps
from coloop.sandbox.process import Sandbox
from coloop.spec.base import as_tuple
from coloop.spec.nodes import VerifierNode


class RuleVerifier(NodeRole[VerifierNode]):
    """Scores rows with the checker of their task."""

    def run(self, call: Call) -> Outcome:
        rows, _ = scored_rows(self._node, call)
        context, read = call.context, self._section(call.context).read
        if rows and not any(has_checker(row.columns) for row in rows):
            raise DataError(
                f"{self._node}: none of the {len(rows)} rows says which task it belongs to (column "
                "`task`), so there is no checker for them; connect rows of a `task` source, or use "
                "a reward in Python",
                self._node,
                "method",
            )
        by_step = read.granularity == "step"
        separator, steps = read.step_separator, None
        if by_step or wants_steps(self._node, context):
            texts = [steps_of(_completion(row), separator) for row in rows]
            steps = [check_row_steps(row.columns, t) for row, t in zip(rows, texts, strict=True)]
        if by_step and steps is not None:
            scores: list[Score] = [reduced(said, read) for said in steps]
        else:
            scores = [
                check_row(row.columns, _completion(row)) if _is_text(row, "completion") else None
                for row in rows
            ]
        placed: list[Score] | None = None
        if steps is not None:
            ends = step_ends(rows, self._node, context, separator)
            placed = [
                at_ends(own, ends.get(row.id, range(len(own))))
                for row, own in zip(rows, steps, strict=True)
            ]
        return judgement(self._node, context, rows, scores, placed)


def _is_text(row: Row, name: str) -> bool:
    return isinstance(row.columns.get(name), str)


def _completion(row: Row) -> str:
    return str(row.columns["completion"]) if _is_text(row, "completion") else ""


# A checker of a formal language, which runs in the sandbox. Rows without text have no score.

NEEDED = ("prompt", "completion")


class FormalVerifier(NodeRole[VerifierNode]):
    """Scores proofs with a formal checker."""

    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        checker = self._section(context).checker
        assert checker is not None
        self._sandbox = Sandbox(source_of(checker), function="reward", node=node)

    def run(self, call: Call) -> Outcome:
        rows, _ = scored_rows(self._node, call)
        readable = [row for row in rows if all(_is_text(row, name) for name in NEEDED)]
        grades = self._grades(readable, call) if readable else {}
        scores = [grades.get(row.id) for row in rows]
        return judgement(self._node, call.context, rows, scores)

    def _grades(self, rows: list[Row], call: Call) -> dict[str, Score]:
        columns = reward_columns([{name: row.columns[name] for name in NEEDED} for row in rows])
        seed = derive_seed(call.context.seed, self._node, call.salt, call.step) % 2**31
        with self._sandbox.held(partial(call.tick, 0, len(rows))) as child:
            grades = score_rows(child, columns, len(rows), on_error="stop", seed=seed).scores
        return {
            row.id: float(grade)
            for row, grade in zip(rows, grades, strict=True)
            if isinstance(grade, float | int)
        }

    def close(self) -> None:
        self._sandbox.close()


# Majority vote: rows with the most frequent answer of their group get 1, others 0.
#
# Incoming scores weigh the votes. Of equally frequent answers the first counts. A row without an
# answer has no vote and gets 0; a group without any is an alert.

UNREADABLE = "verifier.no_answers"
"""Alert: groups in which no row has an answer."""


class VoteVerifier(NodeRole[VerifierNode]):
    """Gives 1 to rows that agree with the majority answer of their group, 0 to others."""

    def run(self, call: Call) -> Outcome:
        rows, incoming = scored_rows(self._node, call)
        section = self._section(call.context)
        answers = [self._answer(row, section.answer) for row in rows]
        weights = [self._weight(row, said) for row, said in zip(rows, incoming, strict=True)]
        key_of = group_keys(self._node, call.context, as_tuple(section.by) or ("prompt",))
        groups: dict[Hashable, list[int]] = {}
        for place, row in enumerate(rows):
            groups.setdefault(key_of(row), []).append(place)
        scores = [0.0] * len(rows)
        silent = 0
        for places in groups.values():
            first = winner([answers[at] for at in places], [weights[at] for at in places])
            if first is None:
                silent += 1
                continue
            for at in places:
                scores[at] = float(answers[at] == answers[places[first]])
        message = (
            f"{self._node}: in {silent} of {len(groups)} groups no answer could be extracted from "
            "any text, so all of them get 0; check `answer`"
        )
        alerts = [(UNREADABLE, message)] if silent else []
        return judgement(self._node, call.context, rows, scores, alerts=alerts)

    def _answer(self, row: Row, expression: str | None) -> str | None:
        text = row.columns.get("completion")
        if not isinstance(text, str):
            return None
        try:
            answer = text if expression is None else pattern(expression).last(text)
        except PatternTimeout as late:
            raise DataError(f"{self._node}: answer: {late}", self._node, "answer") from None
        return (answer or "").strip() or None

    def _weight(self, row: Row, incoming: Incoming) -> float:
        """The sum of the incoming scores; 1 without score inputs, 0 for a greedy row."""
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
