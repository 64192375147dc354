"""Built-in rewards that compare a completion with what the row knows."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from coloop.data.answers import as_text, says
from coloop.data.rewards.math_text import are_equal, final_answer, marked_answer
from coloop.data.rewards.options import option_in, right_option
from coloop.data.rewards.scoring import Question, Score, ScoringRow, extracted, text_of
from coloop.data.tasks import check_row, has_checker
from coloop.errors import DataError
from coloop.spec import builtins as options

NO_JSON = ""
"""Stands for every text that is none, so that one question answers them all."""


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


def math_equal(rows: Sequence[ScoringRow], given: options.MathEqual) -> list[Score | Question]:
    """1 where the final answer is the same number, set or expression as the gold one."""
    return [_equal(row, given) for row in rows]


def _equal(row: ScoringRow, given: options.MathEqual) -> Score | Question:
    text, wanted = text_of(row), golds(row, given.column)
    if text is None or not wanted:
        return None
    said = final_answer(text) if given.extract is None else extracted(text, given.extract)
    if said is None:
        return 0.0
    right = [extracted(gold, given.extract) or gold for gold in wanted]
    right = [marked_answer(gold) or gold for gold in right]
    known = [are_equal(said, gold, tolerance=given.tolerance) for gold in right]
    if any(known):
        return 1.0
    still_open = [gold for gold, is_equal in zip(right, known, strict=True) if is_equal is None]
    return Question(columns={"said": said, "golds": still_open}) if still_open else 0.0


def choice(rows: Sequence[ScoringRow], given: options.Choice) -> list[Score]:
    """1 where the chosen option is the right one; a text that names two chooses none."""
    return [_chosen(row, given) for row in rows]


def _chosen(row: ScoringRow, given: options.Choice) -> Score:
    text, wanted = text_of(row), golds(row, given.column)
    if text is None or not wanted:
        return None
    if given.extract is None:
        wanted = [right_option(gold, given.column) for gold in wanted]
        said = option_in(text)
    else:
        said = extracted(text, given.extract)
    chosen = (said or "").strip().casefold()
    return float(any(chosen == gold.strip().casefold() for gold in wanted))


def json_schema(rows: Sequence[ScoringRow], given: options.JsonSchema) -> list[Score | Question]:
    """1 where the completion is JSON that fits the schema of the row, or of the node."""
    return [_fits(row, given) for row in rows]


def _fits(row: ScoringRow, given: options.JsonSchema) -> Score | Question:
    text = text_of(row)
    if text is None:
        return None
    schema = given.shape if given.column is None else _schema_of(row, given.column)
    if schema is None:
        return float(_is_json(text))
    if not isinstance(schema, Mapping | bool):
        raise DataError(f"json_schema: a schema is an object, found {repr(schema)[:80]}")
    # What is no JSON fits no schema; it is asked all the same whether the schema is one.
    columns = {"schema": schema, "text": text if _is_json(text) else NO_JSON}
    place = "" if given.column is None else f"json_schema: column `{given.column}`: "
    return Question(columns=columns, place=place)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _schema_of(row: ScoringRow, column: str) -> Any:
    value = row.columns.get(column)
    if value is None:
        raise DataError(
            f"json_schema: column `{column}` wants a JSON schema, and the row has none there; "
            f"write `{{}}` where any JSON will do"
        )
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
    try:
        return float(value if isinstance(value, bool | int | float) else str(value))
    except (ValueError, OverflowError):
        raise DataError(
            f"column `{name}` wants a number as score, found {repr(value)[:80]}"
        ) from None
