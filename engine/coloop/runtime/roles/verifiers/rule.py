"""The checker that a row's task brings: of the whole completion, or of each of its steps."""

from collections.abc import Sequence
from functools import partial

from coloop.data.rewards.checkers import source_of
from coloop.data.rewards.user_code import reward_columns, score_rows
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Score
from coloop.data.tasks import check_row, check_row_steps, has_checker
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call, Context, Outcome, Stateless
from coloop.runtime.roles.rows.steps import StepScores, at_ends, step_ends, steps_of
from coloop.runtime.roles.verifiers.judge import (
    judged_rows,
    judgement,
    reduced,
    section_of,
    wants_steps,
)
from coloop.sandbox.process import Sandbox


class RuleVerifier(Stateless):
    """Scores rows with the checker of their task."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node

    def run(self, call: Call) -> Outcome:
        rows, _ = judged_rows(self._node, call)
        context, read = call.context, section_of(self._node, call.context).read
        if rows and not any(has_checker(row.columns) for row in rows):
            raise DataError(
                f"{self._node}: none of the {len(rows)} rows says which task it belongs to (column "
                "`task`), so there is no checker for them; connect rows of a `task` source, or use "
                "a reward in Python",
                self._node,
                "method",
            )
        by_step = read.granularity == "step"
        steps = self._steps(rows, call) if by_step or wants_steps(self._node, context) else None
        if by_step and steps is not None:
            scores: list[Score] = [reduced(said, read) for said in steps]
        else:
            scores = [_whole(row) for row in rows]
        placed = None if steps is None else self._placed(rows, steps, context)
        return judgement(self._node, context, rows, scores, placed)

    def _steps(self, rows: Sequence[Row], call: Call) -> list[StepScores]:
        separator = section_of(self._node, call.context).read.step_separator
        return [check_row_steps(row.columns, steps_of(_completion(row), separator)) for row in rows]

    def _placed(
        self, rows: Sequence[Row], steps: Sequence[StepScores], context: Context
    ) -> list[Score]:
        """Grades at the tokens in which the steps end."""
        separator = section_of(self._node, context).read.step_separator
        ends = step_ends(rows, self._node, context, separator)
        return [
            at_ends(said, ends.get(row.id, range(len(said))))
            for row, said in zip(rows, steps, strict=True)
        ]


def _whole(row: Row) -> float | None:
    return check_row(row.columns, _completion(row)) if _has_text(row) else None


def _has_text(row: Row) -> bool:
    return isinstance(row.columns.get("completion"), str)


def _completion(row: Row) -> str:
    return str(row.columns["completion"]) if _has_text(row) else ""


# A checker of a formal language, run in the limited process: what it cannot read has no score.

NEEDED = ("prompt", "completion")


class FormalVerifier(Stateless):
    """Scores proofs with a formal checker."""

    def __init__(self, node: str, context: Context) -> None:
        checker = section_of(node, context).checker
        assert checker is not None
        self._node = node
        self._sandbox = Sandbox(source_of(checker), function="reward", node=node)

    def run(self, call: Call) -> Outcome:
        rows, _ = judged_rows(self._node, call)
        readable = [row for row in rows if all(_is_text(row, name) for name in NEEDED)]
        grades = self._grades(readable, call) if readable else {}
        scores = [grades.get(row.id) for row in rows]
        return judgement(self._node, call.context, rows, scores)

    def _grades(self, rows: list[Row], call: Call) -> dict[str, Score]:
        columns = reward_columns([{name: row.columns[name] for name in NEEDED} for row in rows])
        seed = derive_seed(call.context.seed, self._node, call.salt, call.step) % 2**31
        with self._sandbox.held(partial(call.tick, 0, len(rows))) as child:
            said = score_rows(child, columns, len(rows), on_error="stop", seed=seed).scores
        return {
            row.id: float(one)
            for row, one in zip(rows, said, strict=True)
            if isinstance(one, float | int)
        }

    def close(self) -> None:
        """End the process of the checker."""
        self._sandbox.close()


def _is_text(row: Row, name: str) -> bool:
    return isinstance(row.columns.get(name), str)
