"""Makes preference pairs, chosen and rejected, from plain rows.

Pairs with equal texts are left out and counted. The caller says which rows are siblings, and
creates the rows of the pairs.
"""

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

from coloop.data.chats import is_chat, plain_answer
from coloop.errors import DataError
from coloop.spec.shaping import SideColumns, SoftLabels


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    columns: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None
    group: Hashable = None
    """Only rows of one group are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    chosen: int
    rejected: int
    margin: float | None = None
    """Score of chosen minus score of rejected; None without scores."""
    probability: float | None = None
    """Probability that `chosen` is better; None without soft preferences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    pairs: tuple[Pair, ...]
    ties: int = 0
    equal_texts: int = 0


def pair_rows(
    rows: Sequence[PairRow],
    method: str,
    *,
    has_scores: bool,
    margin: float = 0.0,
    drop_ties: bool = True,
    soft: bool | SoftLabels = False,
    columns: SideColumns | None = None,
) -> Pairing:
    """Pairs within each group by `best_worst`, `all` or `margin`.

    The row with the higher score is `chosen`; of equal ones, and without scores, the earlier one.
    With scores, a row whose score is None is in no pair.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if not has_scores or row.score is not None:
            groups[row.group].append(index)
    candidates = itertools.chain.from_iterable(
        _candidates(rows, members, method, has_scores) for members in groups.values()
    )
    names = columns or SideColumns()
    pairs: list[Pair] = []
    ties = equal_texts = 0
    for chosen, rejected in candidates:
        difference = _score(rows[chosen]) - _score(rows[rejected]) if has_scores else None
        if difference == 0.0 and drop_ties:
            ties += 1
        elif difference is not None and difference < margin:
            continue
        elif are_equal(rows[chosen].columns, rows[rejected].columns, names):
            equal_texts += 1
        else:
            probability = _probability(difference, soft)
            pairs.append(
                Pair(chosen=chosen, rejected=rejected, margin=difference, probability=probability)
            )
    return Pairing(pairs=tuple(pairs), ties=ties, equal_texts=equal_texts)


def _candidates(
    rows: Sequence[PairRow], members: Sequence[int], method: str, has_scores: bool
) -> Iterator[tuple[int, int]]:
    if len(members) < 2:
        return
    if not has_scores:
        yield from itertools.combinations(members, 2)
        return
    if method == "best_worst":
        best = max(members, key=lambda place: (_score(rows[place]), -place))
        worst = min((m for m in members if m != best), key=lambda m: (_score(rows[m]), -m))
        yield best, worst
        return
    for earlier, later in itertools.combinations(members, 2):
        is_better = _score(rows[later]) > _score(rows[earlier])
        yield (later, earlier) if is_better else (earlier, later)


def _score(row: PairRow) -> float:
    assert row.score is not None
    return row.score


def _probability(difference: float | None, soft: bool | SoftLabels) -> float | None:
    """sigmoid(scale * difference), for soft preferences."""
    if difference is None or soft is False:
        return None
    scale = soft.scale if isinstance(soft, SoftLabels) else 1.0
    return sigmoid(scale * difference)


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x), without overflow."""
    if x >= 0:
        return 1.0 / (1.0 + exp(-x))
    return exp(x) / (1.0 + exp(x))


def side_of(columns: Mapping[str, Any], name: str | None) -> str | list[Any]:
    """The text or chat of a side: the named column, or without a name `completion`, else `target`;
    raises DataError if there is none."""
    names = [name] if name is not None else ["completion", "target"]
    for column in names:
        value = columns.get(column)
        if isinstance(value, str) or (isinstance(value, list) and is_chat(value)):
            return value
    told = " or ".join(f"`{column}`" for column in names)
    there = ", ".join(sorted(columns)) or "none"
    raise DataError(
        f"a side of a pair has no text or chat in column {told}; its columns are {there}"
    )


def are_equal(chosen: Mapping[str, Any], rejected: Mapping[str, Any], names: SideColumns) -> bool:
    left, right = side_of(chosen, names.chosen), side_of(rejected, names.rejected)
    return bool(plain_answer(left) == plain_answer(right))


def pair_directly(
    sides: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    columns: SideColumns | None = None,
) -> tuple[list[int], int]:
    """Indices of the pairs with different texts, and the number of the other pairs."""
    names = columns or SideColumns()
    kept = [
        index
        for index, (chosen, rejected) in enumerate(sides)
        if not are_equal(chosen, rejected, names)
    ]
    return kept, len(sides) - len(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelled:
    place: int
    is_swapped: bool
    probability: float | None


def relabel(
    preferences: Sequence[float | None],
    *,
    low: float = 0.0,
    high: float = 1.0,
    soft: bool | SoftLabels = False,
    drop_ties: bool = True,
) -> list[Relabelled]:
    """New labels of pairs from a judge's preferences for `chosen`, each from low to high.

    Below the middle the sides are swapped; with `soft` they stay, and the preference becomes a
    probability. Pairs without a preference are left out, and without `soft` ties if dropped.
    """
    labels = []
    for index, preference in enumerate(preferences):
        if preference is None:
            continue
        share = (preference - low) / (high - low)
        if soft is not False:
            probability = min(1.0, max(0.0, share))
            if isinstance(soft, SoftLabels):
                probability = sigmoid(soft.scale * (2.0 * share - 1.0))
            labels.append(Relabelled(place=index, is_swapped=False, probability=probability))
        elif share != 0.5 or not drop_ties:
            labels.append(Relabelled(place=index, is_swapped=share < 0.5, probability=None))
    return labels
