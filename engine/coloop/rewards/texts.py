"""Built-in rewards that compare a completion with what the row knows."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from coloop.data.answers import as_text, last_match, says
from coloop.data.patterns import PatternTimeout, pattern
from coloop.data.tasks import check_row, has_checker
from coloop.errors import DataError
from coloop.rewards.math_text import are_equal, final_answer, marked_answer
from coloop.rewards.schema import SchemaProblem, check_schema, fits
from coloop.rewards.scoring import Score, ScoringRow, text_of
from coloop.spec import builtins as options

CAPITAL: Final = re.compile(r"(?<![A-Za-z])([A-Z])(?![A-Za-z])")


def task(rows: Sequence[ScoringRow], _: options.TaskReward) -> list[Score]:
    """The grade by the checker that the row's task brings."""
    if rows and not any(has_checker(row.columns) for row in rows):
        raise DataError(
            "the reward `task` wants rows of a `task` source, and none of these rows says which "
            "task it is of (column `task`); use exact_match or Python for rows of a file"
        )
    return [
        None if (text := text_of(row)) is None else check_row(row.columns, text) for row in rows
    ]


def golds(row: ScoringRow, column: str) -> list[str]:
    """The right answers of a row: one, or those of a list; none where the column is empty."""
    value = row.columns.get(column)
    values = value if isinstance(value, list | tuple) else [value]
    return [text for item in values if (text := as_text(item)) is not None]


def extracted(text: str, expression: str | None) -> str | None:
    """What of a text counts: the last match, or all of it without an expression."""
    if expression is None:
        return text
    try:
        return pattern(expression).last(text)
    except PatternTimeout as late:
        raise DataError(f"extract: {late}") from None


def exact_match(rows: Sequence[ScoringRow], given: options.ExactMatch) -> list[Score]:
    """1 where the completion is the answer, or ends with it on a line of its own.

    Surrounding blanks and commas between thousands do not count. `extract` also applies to the
    gold answer where it matches there (`#### 18` at the end of a worked solution).
    """
    return [_exact(row, given.column, given.extract) for row in rows]


def _exact(row: ScoringRow, column: str, expression: str | None) -> Score:
    text, wanted = text_of(row), golds(row, column)
    if text is None or not wanted:
        return None
    said = extracted(text, expression)
    if said is None:
        return 0.0
    return float(any(says(said, extracted(gold, expression) or gold) for gold in wanted))


def math_equal(rows: Sequence[ScoringRow], given: options.MathEqual) -> list[Score]:
    """1 where the final answer is the same number, fraction or expression as the gold one."""
    return [_equal(row, given) for row in rows]


def _equal(row: ScoringRow, given: options.MathEqual) -> Score:
    text, wanted = text_of(row), golds(row, given.column)
    if text is None or not wanted:
        return None
    said = final_answer(text) if given.extract is None else extracted(text, given.extract)
    if said is None:
        return 0.0
    right = (extracted(gold, given.extract) or gold for gold in wanted)
    return float(
        any(
            are_equal(said, marked_answer(gold) or gold, tolerance=given.tolerance)
            for gold in right
        )
    )


def choice(rows: Sequence[ScoringRow], given: options.Choice) -> list[Score]:
    """1 where the chosen option is the right one: the last capital letter that stands alone."""
    scores: list[Score] = []
    for row in rows:
        text, wanted = text_of(row), golds(row, given.column)
        if text is None or not wanted:
            scores.append(None)
            continue
        said = (
            last_match(CAPITAL, text) if given.extract is None else extracted(text, given.extract)
        )
        chosen = (said or "").strip().casefold()
        scores.append(float(any(chosen == gold.strip().casefold() for gold in wanted)))
    return scores


def json_schema(rows: Sequence[ScoringRow], given: options.JsonSchema) -> list[Score]:
    """1 where the completion is JSON that fits the schema of the row, or of the node."""
    return [_fits(row, given) for row in rows]


def _fits(row: ScoringRow, given: options.JsonSchema) -> Score:
    text = text_of(row)
    if text is None:
        return None
    schema = given.shape if given.column is None else _schema_of(row, given.column)
    try:
        check_schema(True if schema is None else schema)
    except SchemaProblem as problem:
        raise DataError(f"json_schema: {problem}") from None
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return 0.0
    return float(schema is None or fits(value, schema))


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _schema_of(row: ScoringRow, column: str) -> Any:
    value = row.columns.get(column)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise DataError(f"json_schema: column `{column}` holds no JSON schema") from None


def column(rows: Sequence[ScoringRow], given: options.Column) -> list[Score]:
    """A number that the row brings; a list is one number a step."""
    return [_as_score(row.columns.get(given.column), given.column) for row in rows]


def _as_score(value: Any, name: str) -> Score:
    if isinstance(value, list | tuple):
        steps = {place: _as_score(item, name) for place, item in enumerate(value)}
        return {place: score for place, score in steps.items() if isinstance(score, float)}
    if value is None:
        return None
    if isinstance(value, bool | int | float):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        raise DataError(
            f"column `{name}` wants a number as score, found {repr(value)[:80]}"
        ) from None
