"""The checker that a row's task brings: of the whole completion, or of each of its steps."""

from collections.abc import Sequence

from coloop.data.tables import Row, Score
from coloop.data.tasks import check_row, check_row_steps, has_checker
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call, Context, Outcome, Stateless
from coloop.runtime.roles.rows.steps import StepScores, at_ends, step_ends, steps_of
from coloop.runtime.roles.verifiers.judge import judged_rows, judgement, section_of, wants_steps
from coloop.runtime.roles.verifiers.reading import reduced


class RuleVerifier(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node

    def run(self, call: Call) -> Outcome:
        rows, _ = judged_rows(self._node, call)
        context, read = call.context, section_of(self._node, call.context).read
        if rows and not any(has_checker(row.columns) for row in rows):
            raise DataError(
                f"{self._node}: none of the {len(rows)} rows says which task it is of (column "
                "`task`), so there is no rule to judge by; give it rows of a `task` source, or "
                "take a reward in Python",
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
