"""The seam between the node of a search and its method, and what methods share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from coloop.data.tables import Row
from coloop.runtime.roles.searching.tree_expansion import TreeExpansion
from coloop.runtime.roles.searching.trees import Chances, Path, chance_of
from coloop.spec.nodes import SearchNode
from coloop.spec.search import CompletionsByRate, RelativeProgress, StepLabels

CHANCES: Final = (0.0, 1.0)
"""Between which the scores of texts lie."""
Places = Callable[[int], int]
"""The place k among its siblings of the row's child of this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A row that the search gives."""

    row: Row
    score: float | None
    """Of its text, by `outcome`."""
    chances: Chances = field(default_factory=dict)
    before: float | None = None
    """Chance before its first step, where it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a search comes to."""

    rows: Sequence[Labelled]
    searched: Sequence[float | None] | None = None
    """Of the searched rows, where these are scored instead of the rows that are given."""
    rejected: int = 0
    """Finished proofs with which `outcome` does not agree."""


class Method(Protocol):
    """A method that grows texts or trees from rows without a text."""

    @property
    def counts_rollouts(self) -> bool:
        """Whether `searches_per_row` are completions; else the method counts its searches."""
        ...

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Least and greatest score of the rows that are given, where there are such."""
        ...

    def grow(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode, place: Places
    ) -> Findings: ...


@runtime_checkable
class Labels(Protocol):
    """A method that labels the steps of texts as well."""

    def label(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode
    ) -> list[Labelled]:
        """The same rows, which have a text, with what is known of their steps."""
        ...


def counts_of(rows: Sequence[Row], paths: Sequence[Path], section: SearchNode) -> list[int]:
    """Completions from each beginning of these texts; by pass rate that of the texts of one group.
    A rate that no band covers gets none."""
    by = section.completions
    if not isinstance(by, CompletionsByRate):
        return [by] * len(rows)
    groups: dict[str, list[Path]] = {}
    for row, path in zip(rows, paths, strict=True):
        groups.setdefault(group_of(row), []).append(path)
    rates = {group: chance_of(own) for group, own in groups.items()}
    return [_in_band(rates[group_of(row)], by) for row in rows]


def group_of(row: Row) -> str:
    """The row whose children count as answers to one problem."""
    return row.group or row.id


def _in_band(rate: float | None, by: CompletionsByRate) -> int:
    if rate is None:
        return 0
    return next((band.use for band in by.bands if rate < band.below), 0)


def labels_of(
    chances: Chances, rule: StepLabels, *, before: float | None, stop_at_zero: bool
) -> dict[int, float]:
    """By the token in which a step ends: `soft` its chance, `hard` whether it has any, or whether
    it keeps enough of the chance before it.

    Args:
        before: chance of the first step's beginning, for relative progress.
        stop_at_zero: steps behind the first one without a chance get no label.
    """
    found: dict[int, float] = {}
    for place, chance in sorted(chances.items()):
        label = _label(chance, before, rule)
        if label is not None:
            found[place] = label
        if stop_at_zero and chance == 0:
            break
        before = chance
    return found


def _label(chance: float, before: float | None, rule: StepLabels) -> float | None:
    if rule == "soft":
        return chance
    if rule == "hard":
        return float(chance > 0)
    assert isinstance(rule, RelativeProgress)
    if before is None:
        return None
    return float(before > 0 and chance / before >= rule.relative_progress)
