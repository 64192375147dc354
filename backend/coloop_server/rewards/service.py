"""Tries a reward on sample rows. The user's Python runs in a limited process of its own, and only
because the user asked for it here and now: a loop that is opened or imported runs nothing."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from coloop.errors import ColoopError
from coloop.spec.builtins import Builtin, BuiltinSource
from coloop_server.errors import Invalid, Unavailable
from coloop_server.rewards.schemas import RowProblem, TriedReward, TryReward

NODE = "reward"


def try_reward(body: TryReward, is_ending: Callable[[], bool]) -> TriedReward:
    """`is_ending`: whether the server is about to end; code that runs is ended with it."""
    return try_code(body, is_ending) if body.code is not None else try_builtin(body, is_ending)


def try_code(body: TryReward, is_ending: Callable[[], bool]) -> TriedReward:
    from coloop.rewards.user_code import preview

    found = preview(
        body.code or "",
        body.rows,
        node=NODE,
        timeout_seconds=body.timeout_seconds,
        memory_mib=body.memory_mib,
        tick=ends_with(is_ending),
    )
    return TriedReward(
        scores=[plain(score) for score in found.scores],
        failures=[RowProblem(**asdict(failure)) for failure in found.failures],
        error=found.error,
        traceback=found.traceback,
        printed=found.printed,
        seconds=found.seconds,
    )


def ends_with(is_ending: Callable[[], bool]) -> Callable[[], None]:
    """A tick that ends what runs once the server is about to end."""

    def tick() -> None:
        if is_ending():
            raise Unavailable("server.ending", "the server ends, and the reward with it")

    return tick


def try_builtin(body: TryReward, is_ending: Callable[[], bool]) -> TriedReward:
    from coloop.data.patterns import PatternProblem, PatternTimeout
    from coloop.rewards.builtin import score_builtin
    from coloop.rewards.scoring import ScoringRow

    source = read_source({**(body.source or {}), "type": "builtin"})
    start = time.monotonic()
    scores: list[Any] = [None] * len(body.rows)
    failures: list[RowProblem] = []
    error = None
    try:
        rows = [
            ScoringRow(
                columns=row, scores=given_scores(row), id=str(index), group=str(row.get("group"))
            )
            for index, row in enumerate(body.rows)
        ]
        found = score_builtin(
            source, rows, node=NODE, on_error="skip_row", tick=ends_with(is_ending)
        )
        scores = [plain(score) for score in found.scores]
        failures = [RowProblem(**asdict(failure)) for failure in found.failures]
    except (ColoopError, PatternProblem, PatternTimeout) as problem:
        error = str(problem)
    return TriedReward(
        scores=scores,
        failures=failures,
        error=error if error or not is_all(failures, body) else failures[0].message,
        traceback=None,
        printed="",
        seconds=time.monotonic() - start,
    )


def is_all(failures: list[RowProblem], body: TryReward) -> bool:
    """Whether every row failed."""
    return len(failures) == len(body.rows) > 0


def read_source(given: dict[str, Any]) -> Builtin:
    try:
        source: Builtin = TypeAdapter(BuiltinSource).validate_python(given)
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]
        field = ".".join(str(part) for part in problem["loc"][1:])
        where = f"{field}: " if field else ""
        raise Invalid(
            "reward.invalid", f"the reward does not fit: {where}{problem['msg']}"
        ) from error
    return source


def given_scores(row: dict[str, Any]) -> dict[str, float | None]:
    scores = row.get("scores")
    if not isinstance(scores, dict):
        return {}
    return {
        node: float(score) if isinstance(score, int | float) else None
        for node, score in scores.items()
    }


def plain(score: Any) -> Any:
    """A score as JSON: numbers at positions become an object, what is not finite null."""
    match score:
        case float() if not math.isfinite(score):
            return None
        case dict():
            return {str(position): plain(value) for position, value in score.items()}
        case list() | tuple():
            return [plain(value) for value in score]
    return score
