"""The registry of built-in rewards: by name the function, what it reads, and its judge.

To add one: its options in `coloop.spec.builtins`, a function over rows, and a line in OWN_BUILTINS.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal

from coloop.data.rewards import combine, gym, programs, shapes, texts
from coloop.data.rewards.judging import Judge, LibraryJudge, Tick, Verdict
from coloop.data.rewards.scoring import Question, Scorer, ScoringRow
from coloop.data.rewards.user_code import OnError, RowFailure, ScoredRows, score_instead
from coloop.data.tables.row import Score
from coloop.errors import DataError
from coloop.spec.builtins import PLUGINS
from coloop.spec.installed import WithPlugins
from coloop.spec.plugins import Builtin

Reads = Literal["rollouts", "rows", "scores"]


@dataclass(frozen=True, slots=True)
class BuiltinReward:
    score: Scorer
    needs: Reads
    """`rows`: columns; `rollouts`: also the token counts; `scores`: the scores of other nodes."""
    judge: Callable[[str, Any], Judge] | None = None
    """Makes a judge from node name and options; None if the function returns no questions."""


def _library(file: str, library: str) -> Callable[[str, Any], Judge]:
    return lambda node, _: LibraryJudge(file, node, library=library)


OWN_BUILTINS: Final[Mapping[str, BuiltinReward]] = {
    "task": BuiltinReward(texts.task, "rows"),
    "exact_match": BuiltinReward(texts.exact_match, "rows"),
    "math_equal": BuiltinReward(texts.math_equal, "rows", _library("mathematics", "math-verify")),
    "choice": BuiltinReward(texts.choice, "rows"),
    "code_tests": BuiltinReward(programs.code_tests, "rows", programs.ProgramJudge),
    "format": BuiltinReward(shapes.format_, "rows"),
    "length": BuiltinReward(shapes.length, "rollouts"),
    "regex": BuiltinReward(shapes.regex, "rows"),
    "json_schema": BuiltinReward(texts.json_schema, "rows", _library("schema", "jsonschema")),
    "reasoning_gym": BuiltinReward(gym.reasoning_gym, "rows", _library("gym", "reasoning-gym")),
    "ngram_repetition": BuiltinReward(shapes.ngram_repetition, "rows"),
    "language": BuiltinReward(texts.language, "rows"),
    "overlong": BuiltinReward(shapes.overlong, "rollouts"),
    "column": BuiltinReward(texts.column, "rows"),
    "weighted": BuiltinReward(combine.weighted, "scores"),
    "one_minus": BuiltinReward(combine.one_minus, "scores"),
    "band": BuiltinReward(combine.band, "scores"),
    "margin": BuiltinReward(combine.margin, "scores"),
    "agreement": BuiltinReward(combine.agreement, "scores"),
    "gate": BuiltinReward(combine.gate, "scores"),
    "first": BuiltinReward(combine.first, "scores"),
    "turn_allocation": BuiltinReward(combine.turn_allocation, "scores"),
    "other_rows": BuiltinReward(combine.other_rows, "scores"),
    "constant": BuiltinReward(combine.constant, "scores"),
    "coin": BuiltinReward(combine.coin, "scores"),
}

BUILTINS: Final = WithPlugins(
    OWN_BUILTINS,
    {name: plugin.score for name, plugin in PLUGINS.items()},
    lambda name, score: BuiltinReward(score, PLUGINS[name].needs),
)


def judge_of(source: Builtin, node: str) -> Judge | None:
    """The judge for a reward's questions; None if it asks none."""
    make = _reward(source).judge
    return None if make is None else make(node, source)


def score_builtin(
    source: Builtin,
    rows: Sequence[ScoringRow],
    *,
    node: str,
    on_error: OnError = "stop",
    judge: Judge | None = None,
    tick: Tick = lambda: None,
) -> ScoredRows[Score]:
    """Scores of rows by a built-in reward with the options of its section.

    Args:
        on_error: `stop` raises the `DataError` of the first row that cannot be scored; else such
            a row gets None or a fixed score. A completion that the judge cannot decide keeps the
            judge's score and is listed among the failures.
        judge: answers the reward's questions; None: one is made for this call.
        tick: called a few times a second while a judge runs; may raise.
    """
    answers, failures = _answers(source, rows, node, on_error)
    asked = {row: answer for row, answer in enumerate(answers) if isinstance(answer, Question)}
    scores: list[Score] = [None if isinstance(answer, Question) else answer for answer in answers]
    for row, verdict in _judged(source, asked, node, judge, tick).items():
        scores[row] = verdict.score
        if verdict.problem is not None:
            message = f"{node}, row {row}: {asked[row].place}{verdict.problem}"
            if on_error == "stop":
                raise DataError(message, node, "source")
            scores[row] = score_instead(on_error)
            failures.append(RowFailure(row=row, message=message))
        elif verdict.note is not None:
            failures.append(RowFailure(row=row, message=f"{node}, row {row}: {verdict.note}"))
    return ScoredRows(scores=scores, failures=tuple(sorted(failures, key=attrgetter("row"))))


def _answers(
    source: Builtin, rows: Sequence[ScoringRow], node: str, on_error: OnError
) -> tuple[list[Score | Question], list[RowFailure]]:
    """Scores and questions of a reward, and failures; after a failure, row by row to find it."""
    reward = _reward(source)
    try:
        return [*reward.score(rows, source)], []
    except DataError as error:
        if reward.needs == "scores":
            raise DataError(f"{node}: {error}", node, "source") from None
    answers: list[Score | Question] = []
    failures = []
    for index, row in enumerate(rows):
        try:
            answers += reward.score([row], source)
        except DataError as error:
            message = f"{node}, row {index}: {error}"
            if on_error == "stop":
                raise DataError(message, node, "source") from None
            failures.append(RowFailure(row=index, message=message))
            answers.append(score_instead(on_error))
    return answers, failures


def _judged(
    source: Builtin,
    asked: Mapping[int, Question],
    node: str,
    judge: Judge | None,
    tick: Tick,
) -> dict[int, Verdict]:
    if not asked:
        return {}
    own = judge if judge is not None else judge_of(source, node)
    assert own is not None, "a reward that asks needs a judge"
    try:
        return dict(zip(asked, own.verdicts([*asked.values()], tick), strict=True))
    finally:
        if judge is None:
            own.close()


def _reward(source: Builtin) -> BuiltinReward:
    return BUILTINS[str(vars(source)["name"])]
