"""The registry of built-in rewards: name, function, and what it reads.

To add one: its options in `coloop.spec.builtins`, a function over rows, and a line in BUILTINS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from coloop.errors import DataError
from coloop.rewards import combine, shapes, texts
from coloop.rewards.scoring import Score, Scorer, ScoringRow
from coloop.spec.builtins import Builtin


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinReward:
    """A built-in reward."""

    score: Scorer
    needs: Literal["rollouts", "rows", "scores"]
    """`rollouts` counts tokens, `rows` reads columns, `scores` reads what other scorers said."""


def _of(score: Scorer, needs: Literal["rollouts", "rows", "scores"]) -> BuiltinReward:
    return BuiltinReward(score=score, needs=needs)


BUILTINS: Final[Mapping[str, BuiltinReward]] = {
    "task": _of(texts.task, "rows"),
    "exact_match": _of(texts.exact_match, "rows"),
    "math_equal": _of(texts.math_equal, "rows"),
    "choice": _of(texts.choice, "rows"),
    "format": _of(shapes.format_, "rows"),
    "length": _of(shapes.length, "rollouts"),
    "regex": _of(shapes.regex, "rows"),
    "json_schema": _of(texts.json_schema, "rows"),
    "ngram_repetition": _of(shapes.ngram_repetition, "rows"),
    "overlong": _of(shapes.overlong, "rollouts"),
    "column": _of(texts.column, "rows"),
    "weighted": _of(combine.weighted, "scores"),
    "one_minus": _of(combine.one_minus, "scores"),
    "band": _of(combine.band, "scores"),
    "margin": _of(combine.margin, "scores"),
    "agreement": _of(combine.agreement, "scores"),
    "gate": _of(combine.gate, "scores"),
    "first": _of(combine.first, "scores"),
    "turn_allocation": _of(combine.turn_allocation, "scores"),
}
"""By the name that `source.name` takes."""


def score_builtin(source: Builtin, rows: Sequence[ScoringRow], *, node: str) -> list[Score]:
    """Scores of rows by a built-in reward with the options of its section."""
    name = str(vars(source)["name"])
    try:
        return BUILTINS[name].score(rows, source)
    except DataError as error:
        raise DataError(f"{node}: {error}", node, "source") from None
