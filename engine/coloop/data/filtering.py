"""Which rows a filter keeps: rules over plain rows, then at most so many of each group.

All rules look at the table as it came in; a row stays if every rule keeps it. Bounds are
inclusive, and None fails. Group rules keep or cut whole groups; a score of None takes no part in
a group's numbers. Knows nothing of lineage: the caller says which rows make a group.
"""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Protocol

from coloop.data.patterns import PatternProblem, PatternTimeout, pattern
from coloop.data.tables.row import Score, whole
from coloop.errors import DataError
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
    """Scores at port `by`, by the scorer's node."""
    group: Hashable = None
    """What rows of a group share where a rule names nothing else."""
    seed: int = 0
    """Decides what is drawn for this row."""


GroupOf = Callable[[FilterRow, tuple[str, ...]], Hashable]
"""The group of a row by the names that a rule gives (columns, nodes, `role`, `round`, `prompt`)."""


class KeepRunner(Protocol):
    """Runs `keep(**columns)` of the user on rows; a sandbox."""

    def keep(
        self, rows: Sequence[Mapping[str, Any]], *, seeds: Sequence[int] | None = None
    ) -> list[bool]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    kept: tuple[int, ...]
    """Places of the rows that stay, in order."""
    cut_by: Mapping[str, int]
    """How many rows each rule cut, alone or with others."""


def by_columns(row: FilterRow, names: tuple[str, ...]) -> Hashable:
    """Groups of rows with equal values of columns; without names, the row's own group."""
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
    runners: Sequence[KeepRunner | None] = (),
) -> Decision:
    """Which rows stay. Code is asked only about rows that the rules before it keep.

    Args:
        runners: for each rule the sandbox of its code, None where it has none.
    """
    stays = [True] * len(rows)
    cut_by: dict[str, int] = {}
    for place, rule in enumerate(rules):
        runner = runners[place] if place < len(runners) else None
        try:
            if runner is None:
                verdict = kept_by(rows, rule, group_of=group_of)
            else:
                verdict = _kept_by_code(rows, stays, rule, runner)
        except (DataError, PatternProblem, PatternTimeout) as problem:
            where = f"keep.{place}"
            raise DataError(f"{node}: {where}: {problem}", node, where) from None
        cut_by[rule.rule] = cut_by.get(rule.rule, 0) + verdict.count(False)
        stays = [both and one for both, one in zip(stays, verdict, strict=True)]
    kept = [place for place, stay in enumerate(stays) if stay]
    if per_group is not None:
        before = len(kept)
        kept = picked(rows, kept, per_group, group_of=group_of)
        cut_by["per_group"] = before - len(kept)
    return Decision(kept=tuple(kept), cut_by=cut_by)


def _kept_by_code(
    rows: Sequence[FilterRow], stays: Sequence[bool], rule: Rule, runner: KeepRunner
) -> list[bool]:
    """What code says of the rows that stay so far; it has nothing against the others."""
    asked = [row for row, stay in zip(rows, stays, strict=True) if stay]
    said = iter(kept_by(asked, rule, runner=runner))
    return [next(said) if stay else True for stay in stays]


def kept_by(
    rows: Sequence[FilterRow],
    rule: Rule,
    *,
    group_of: GroupOf = by_columns,
    runner: KeepRunner | None = None,
) -> list[bool]:
    match rule:
        case ScoreRule():
            return [_is_within(_number(row, rule.of), rule.min, rule.max) for row in rows]
        case LengthRule():
            return [_is_within(_length(row, rule.column), rule.min, rule.max) for row in rows]
        case RegexRule():
            found = pattern(rule.pattern)
            texts = [row.columns.get(rule.column) for row in rows]
            return [isinstance(text, str) and found.is_in(text) for text in texts]
        case UniqueRule():
            return _first_of_each(rows, rule.column)
        case PythonRule():
            assert runner is not None, "a rule with code needs a runner"
            given = [{**row.by, **row.columns} for row in rows]
            return [bool(keep) for keep in runner.keep(given, seeds=[row.seed for row in rows])]
        case AccuracyBand() | NonzeroVariance() | GroupMean():
            keys = [group_of(row, as_tuple(rule.by)) for row in rows]
            groups: dict[Hashable, list[float]] = defaultdict(list)
            for row, key in zip(rows, keys, strict=True):
                number = _number(row, rule.of)
                if number is not None:
                    groups[key].append(number)
            verdicts = {key: _keeps_group(rule, scores) for key, scores in groups.items()}
            return [verdicts.get(key, False) for key in keys]


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
            there = ", ".join(row.by) or "none"
            raise DataError(f"no score of `{of}` arrives at port `by`; available: {there}")
        score = row.by[of]
    return whole(score)


def _length(row: FilterRow, column: str) -> int | None:
    """Tokens of a completion, else characters of a text or items of a list."""
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
    """A value that can be compared and put into a set."""
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
    """Of the kept rows at most `max` of each group; the order of the rows stays."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place in kept:
        groups[group_of(rows[place], as_tuple(section.by))].append(place)
    chosen: set[int] = set()
    for members in groups.values():
        chosen.update(_pick(rows, members, section))
    return [place for place in kept if place in chosen]


def _pick(rows: Sequence[FilterRow], members: list[int], section: PerGroup) -> list[int]:
    if len(members) <= section.max:
        return members

    def number(place: int) -> float:
        score = _number(rows[place], None)
        worst = float("inf") if section.pick == "worst" else float("-inf")
        return worst if score is None else score

    match section.pick:
        case "random":
            return sorted(members, key=lambda place: rows[place].seed)[: section.max]
        case "first":
            return members[: section.max]
        case "best":
            return sorted(members, key=lambda place: -number(place))[: section.max]
        case "worst":
            return sorted(members, key=number)[: section.max]
        case "longest":
            by_length = sorted(members, key=lambda p: -(_length(rows[p], "completion") or 0))
            return by_length[: section.max]


def spare_wanted(*, kept: int, received: int, up_to: int | None) -> int:
    """How many rows at `spare` fill the filter up; each of them is used once."""
    return max(0, (received if up_to is None else up_to) - kept)


def resampled(rows: Sequence[FilterRow], section: Resample, *, rng: random.Random) -> list[int]:
    """How often each row is drawn, with replacement; PF-PPO (2409.06957).

    Weights are |s|^exponent (`power`), 1 for the best and the worst of a group (`max_min`), or 0.4
    for the best and 0.1 for any other (`max_random`); a row without a score is never drawn. Where
    every weight is 0, all scored rows weigh alike.
    """
    scores = [_number(row, None) for row in rows]
    weights = _weights(rows, scores, section)
    if not any(weights):
        weights = [float(score is not None) for score in scores]
    counts = [0] * len(rows)
    if any(weights):
        drawn = rng.choices(range(len(rows)), weights, k=section.rows or len(rows))
        for place in drawn:
            counts[place] += 1
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
