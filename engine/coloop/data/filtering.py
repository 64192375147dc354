"""Filters: rules over plain rows, a maximum number of rows per group, and resampling.

Each rule without code sees all rows of the input; a row stays if every rule keeps it. Bounds are
inclusive unless a rule says otherwise, and None is within no bounds. Group rules keep or cut whole
groups; their statistics leave out scores of None. The caller says which rows form a group.
"""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from coloop.data.patterns import PatternProblem, PatternTimeout, pattern
from coloop.data.tables.row import Score, whole
from coloop.errors import DataError
from coloop.sandbox.process import Sandbox
from coloop.spec.base import as_tuple
from coloop.spec.shaping import (
    AccuracyBand,
    GroupMean,
    LengthRule,
    NonzeroVariance,
    PerGroup,
    PythonRule,
    RegexRule,
    Resample,
    Rule,
    ScoreRule,
    UniqueRule,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRow:
    columns: Mapping[str, Any] = field(default_factory=dict)
    score: Score = None
    by: Mapping[str, Score] = field(default_factory=dict)
    group: Hashable = None
    """The row's group for rules without `by`."""
    seed: int = 0
    """Seed of random decisions about this row."""


GroupOf = Callable[[FilterRow, tuple[str, ...]], Hashable]
"""Returns the row's group by the names in a rule's `by` (columns, nodes, `role`, `round`, ...)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    kept: tuple[int, ...]
    """Indices of the rows that stay, in order."""
    cut_by: Mapping[str, int]
    """Number of rows that each rule cut, including rows that other rules cut too."""


def by_columns(row: FilterRow, names: tuple[str, ...]) -> Hashable:
    """The default `GroupOf`: by the values of columns; without names, `FilterRow.group`."""
    if not names:
        return row.group
    return tuple(_key(row.columns.get(name)) for name in names)


def decide(
    rows: Sequence[FilterRow],
    rules: Sequence[Rule],
    per_group: PerGroup | None = None,
    *,
    node: str = "filter",
    group_of: GroupOf = by_columns,
    runners: Sequence[Sandbox | None] = (),
) -> Decision:
    """Apply all rules. User code is called only for rows that all earlier rules keep.

    Args:
        runners: for each rule, the sandbox for its code; None for rules without code.
    """
    stays = [True] * len(rows)
    cut_by: dict[str, int] = {}
    for index, rule in enumerate(rules):
        runner = runners[index] if index < len(runners) else None
        try:
            if runner is None:
                verdict = kept_by(rows, rule, group_of=group_of)
            else:
                verdict = _kept_by_code(rows, stays, rule, runner)
        except (DataError, PatternProblem, PatternTimeout) as problem:
            field_path = f"keep.{index}"
            raise DataError(f"{node}: {field_path}: {problem}", node, field_path) from None
        cut_by[rule.rule] = cut_by.get(rule.rule, 0) + verdict.count(False)
        stays = [before and keep for before, keep in zip(stays, verdict, strict=True)]
    kept = [index for index, stay in enumerate(stays) if stay]
    if per_group is not None:
        passed = len(kept)
        kept = picked(rows, kept, per_group, group_of=group_of)
        cut_by["per_group"] = passed - len(kept)
    return Decision(kept=tuple(kept), cut_by=cut_by)


def _kept_by_code(
    rows: Sequence[FilterRow], stays: Sequence[bool], rule: Rule, runner: Sandbox
) -> list[bool]:
    """The verdicts of user code on the rows that stay so far; True for all others."""
    staying = [row for row, stay in zip(rows, stays, strict=True) if stay]
    verdicts = iter(kept_by(staying, rule, runner=runner))
    return [next(verdicts) if stay else True for stay in stays]


def kept_by(
    rows: Sequence[FilterRow],
    rule: Rule,
    *,
    group_of: GroupOf = by_columns,
    runner: Sandbox | None = None,
) -> list[bool]:
    match rule:
        case ScoreRule():
            return [_is_within(_number(row, rule.of), rule.min, rule.max) for row in rows]
        case LengthRule():
            return [_is_within(_length(row, rule.column), rule.min, rule.max) for row in rows]
        case RegexRule():
            regex = pattern(rule.pattern)
            texts = [row.columns.get(rule.column) for row in rows]
            return [isinstance(text, str) and regex.is_in(text) for text in texts]
        case UniqueRule():
            return _first_of_each(rows, rule.column)
        case PythonRule():
            assert runner is not None, "a rule with code needs a runner"
            arguments = [{**row.by, **row.columns} for row in rows]
            return runner.keep(arguments, seeds=[row.seed for row in rows])
        case AccuracyBand() | NonzeroVariance() | GroupMean():
            keys = [group_of(row, as_tuple(rule.by)) for row in rows]
            groups: dict[Hashable, list[float]] = defaultdict(list)
            for row, key in zip(rows, keys, strict=True):
                number = _number(row, rule.of)
                if number is not None:
                    groups[key].append(number)
            kept = {key for key, scores in groups.items() if _keeps_group(rule, scores)}
            return [key in kept for key in keys]


def _keeps_group(rule: AccuracyBand | NonzeroVariance | GroupMean, scores: list[float]) -> bool:
    match rule:
        case AccuracyBand():
            share = fmean(score >= rule.right_at for score in scores)
            if rule.open:
                return rule.min < share < rule.max
            return rule.min <= share <= rule.max
        case NonzeroVariance():
            return min(scores) != max(scores)
        case GroupMean():
            return _is_within(fmean(scores), rule.min, rule.max)


def _number(row: FilterRow, of: str | None) -> float | None:
    score = row.score
    if of is not None:
        if of not in row.by:
            available = ", ".join(row.by) or "none"
            raise DataError(f"no score of `{of}` arrives at port `by`; available: {available}")
        score = row.by[of]
    return whole(score)


def _length(row: FilterRow, column: str) -> int | None:
    """Length of a column: the completion in tokens if known, other texts in characters, lists in
    items; None for other values."""
    tokens = row.columns.get("length")
    if column == "completion" and isinstance(tokens, int) and not isinstance(tokens, bool):
        return tokens
    value = row.columns.get(column)
    return len(value) if isinstance(value, str | list | tuple | dict) else None


def _is_within(value: float | None, low: float | None, high: float | None) -> bool:
    if value is None:
        return False
    return (low is None or value >= low) and (high is None or value <= high)


def _key(value: Any) -> Hashable:
    """A hashable key of a value; equal values of one type have equal keys."""
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, sort_keys=True, default=str)
    return (type(value).__name__, value)


def _first_of_each(rows: Sequence[FilterRow], column: str) -> list[bool]:
    seen: set[Hashable] = set()
    verdict = []
    for row in rows:
        value = row.columns.get(column)
        key = _key(value)
        verdict.append(value is not None and key not in seen)
        seen.add(key)
    return verdict


def picked(
    rows: Sequence[FilterRow],
    kept: Sequence[int],
    section: PerGroup,
    *,
    group_of: GroupOf = by_columns,
) -> list[int]:
    """Those of the kept rows, in order, that are among the first `section.max` of their group."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index in kept:
        groups[group_of(rows[index], as_tuple(section.by))].append(index)
    chosen: set[int] = set()
    for members in groups.values():
        chosen.update(_pick(rows, members, section))
    return [index for index in kept if index in chosen]


def _pick(rows: Sequence[FilterRow], members: list[int], section: PerGroup) -> list[int]:
    def rank(index: int) -> float:
        """Sort key: the lowest are picked, the first of equal ones."""
        row = rows[index]
        match section.pick:
            case "first":
                return 0
            case "random":
                return row.seed
            case "longest":
                return -(_length(row, "completion") or 0)
            case "best" | "worst":
                score = _number(row, None)
                if score is None:
                    return float("inf")
                return score if section.pick == "worst" else -score

    return sorted(members, key=rank)[: section.max] if len(members) > section.max else members


def spare_wanted(*, kept: int, received: int, up_to: int | None) -> int:
    """Number of rows to take from port `spare` to make up for rows that were cut."""
    return max(0, (received if up_to is None else up_to) - kept)


def resampled(rows: Sequence[FilterRow], section: Resample, *, rng: random.Random) -> list[int]:
    """How often each row is drawn, with replacement, as in PF-PPO (arXiv 2409.06957).

    Weights are |s|^exponent (`power`), 1 for the best and the worst of a group (`max_min`), or 0.4
    for the best and 0.1 for any other (`max_random`); a row without a score is never drawn. If all
    weights are 0, all scored rows get the same weight.
    """
    scores = [_number(row, None) for row in rows]
    weights = _weights(rows, scores, section)
    if not any(weights):
        weights = [float(score is not None) for score in scores]
    counts = [0] * len(rows)
    if any(weights):
        drawn = rng.choices(range(len(rows)), weights, k=section.rows or len(rows))
        for index in drawn:
            counts[index] += 1
    return counts


def _weights(
    rows: Sequence[FilterRow], scores: Sequence[float | None], section: Resample
) -> list[float]:
    if section.weight == "power":
        return [0.0 if score is None else abs(score) ** section.exponent for score in scores]
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for row, score in zip(rows, scores, strict=True):
        if score is not None:
            groups[row.group].append(score)
    weights = []
    for row, score in zip(rows, scores, strict=True):
        if score is None:
            weights.append(0.0)
        elif section.weight == "max_min":
            weights.append(float(score in (max(groups[row.group]), min(groups[row.group]))))
        else:
            weights.append(0.4 if score == max(groups[row.group]) else 0.1)
    return weights
