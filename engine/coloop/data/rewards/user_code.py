"""Scores rows by the user's Python, and applies `on_error` to rows for which it fails.

The function is called once with all rows. If that fails, the rows are tried one by one, so that the
message names the row and, with `on_error`, the other rows keep their scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeVar

from coloop.errors import UserCodeError
from coloop.sandbox.process import Sandbox, Scored
from coloop.spec.reward import ScoreAs

One = TypeVar("One")
OnError = Literal["stop", "skip_row"] | ScoreAs

RETRY_DEADLINES: Final = 4
"""Time that retrying rows one by one may take, as a multiple of the sandbox's timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFailure:
    row: int
    message: str
    traceback: str | None = None

    def at(self, index: int) -> "RowFailure":
        """The same failure at another row index."""
        message = self.message.replace(f", row {self.row}: ", f", row {index}: ", 1)
        return replace(self, row=index, message=message)


def score_instead(on_error: OnError) -> float | None:
    """The score of a failed row: that of ScoreAs, else None."""
    return on_error.score if isinstance(on_error, ScoreAs) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRows(Generic[One]):
    """Scores in the order of the rows, failed rows included, and the failures."""

    scores: list[One]
    failures: tuple[RowFailure, ...] = ()
    printed: str = ""


def score_rows(
    sandbox: Sandbox,
    columns: Mapping[str, Sequence[Any]],
    count: int,
    *,
    on_error: OnError = "stop",
    seed: int = 0,
) -> ScoredRows[Scored]:
    """Scores of all rows by the user's reward.

    Args:
        columns: arguments of the reward, each a list of `count` values; see `reward_columns`.
        on_error: `stop` raises the UserCodeError of the first row that fails; `skip_row` gives a
            failed row None, ScoreAs its score. Always raises if the code does not load, or if
            no single row fails, such as for a wrong number of scores.
    """
    if count == 0:
        return ScoredRows(scores=[])
    sandbox.load()
    try:
        scores = sandbox.score(columns, count, seed=seed)
        return ScoredRows(scores=list(scores), printed=sandbox.printed)
    except UserCodeError as error:
        if on_error == "stop" and error.row is not None:
            raise
        return _one_by_one(sandbox, columns, count, on_error, seed, error)


def _one_by_one(
    sandbox: Sandbox,
    columns: Mapping[str, Sequence[Any]],
    count: int,
    on_error: OnError,
    seed: int,
    whole: UserCodeError,
) -> ScoredRows[Scored]:
    most = sandbox.waited_seconds + RETRY_DEADLINES * sandbox.timeout_seconds
    scores: list[Scored] = []
    failures: list[RowFailure] = []
    for row in range(count):
        if sandbox.waited_seconds > most:
            raise whole
        single = {name: [values[row]] for name, values in columns.items()}
        try:
            scores.extend(sandbox.score(single, 1, seed=seed + row))
        except UserCodeError as error:
            message = f"{sandbox.node}, row {row}: {sandbox.bare(error)}"
            if on_error == "stop":
                raise UserCodeError(message, sandbox.node, row, error.traceback) from None
            failures.append(RowFailure(row=row, message=message, traceback=error.traceback))
            scores.append(score_instead(on_error))
    if not failures:
        raise whole
    return ScoredRows(scores=scores, failures=tuple(failures), printed=sandbox.printed)


def reward_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Keyword arguments of a reward: `prompts`, `completions`, and every other column by its bare
    name; missing values are None."""
    names = dict.fromkeys(name for row in rows for name in row if "." not in name)
    columns = {name: [row.get(name) for row in rows] for name in names}
    prompts = columns.pop("prompt", [None] * len(rows))
    completions = columns.pop("completion", [None] * len(rows))
    return {**columns, "prompts": prompts, "completions": completions}
