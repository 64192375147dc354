"""Metrics of a batch of events as columns, so that a curve or a list takes in many at once.

    metrics events of a batch --> by node and names --> steps, rows of values

Only batches in which the order of rows that tell different things makes no difference are turned
into columns; the others are taken in event by event.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from coloop_server.runs.eventlog import Entry
from coloop_server.runs.summary import NO_NODE, finite_or_none, path_of

PLAIN = frozenset((float, int, type(None)))
Names = tuple[str | None, tuple[str, ...]]
"""A node, None for the whole run, and names of metrics in their order."""


class Label(NamedTuple):
    """Where the numbers of one kind of row go."""

    keys: tuple[tuple[str, str], ...]
    """Of curves."""
    paths: tuple[str, ...]
    """Of lists."""


@dataclass(slots=True)
class Rows:
    """What the events of a batch say that name the same metrics of the same node."""

    label: Label
    steps: list[int] = field(default_factory=list)
    values: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass(slots=True)
class MetricRows:
    """All metrics of a batch."""

    groups: list[Rows]
    clock: list[tuple[int, float]]
    """Step and time of each event, in seconds, where it tells one."""


def rows_of(entries: Sequence[Entry], step: int) -> MetricRows | None:
    """The metrics of a batch as columns; None where they have to be taken in one by one.

    Args:
        step: the last one that an event before these has named.
    """
    groups: dict[Names, Rows] = {}
    clock: list[tuple[int, float]] = []
    attempt = entries[0].attempt
    for event, _, _, kind, _, own, its_attempt, at in entries:
        if its_attempt != attempt:
            return None
        if own is not None:
            step = own
        if kind != "metrics":
            continue
        metrics, node = event.get("metrics"), event.get("node")
        if type(metrics) is not dict:
            continue
        if node is not None and type(node) is not str:
            return None
        names = (node, tuple(metrics))
        rows = groups.get(names)
        if rows is None:
            rows = groups[names] = Rows(label_of(names))
        rows.steps.append(step)
        rows.values.append(tuple(metrics.values()))
        if at is not None:
            clock.append((step, at.timestamp()))
    found = list(groups.values())
    return MetricRows(found, clock) if is_plain(found) else None


def is_plain(groups: Sequence[Rows]) -> bool:
    """Whether all values are numbers or none, and no two groups tell of the same."""
    types = set(map(type, chain.from_iterable(chain.from_iterable(one.values for one in groups))))
    if not types <= PLAIN:
        return False
    keys = [key for one in groups for key in one.label.keys]
    paths = [path for one in groups for path in one.label.paths]
    return len(set(keys)) == len(keys) == len(set(paths))


@lru_cache(maxsize=1024)
def label_of(names: Names) -> Label:
    node, metrics = names
    return Label(
        tuple((node or NO_NODE, name) for name in metrics),
        tuple(path_of(node, name) for name in metrics),
    )


def column_of(values: Iterable[Any]) -> "array[float]":
    """Values of a curve; NaN for what is no number that a float holds."""
    found = list(values)
    try:
        column = array("d", found)
        if math.isfinite(sum(column)):
            return column
    except (TypeError, OverflowError):
        pass
    return array("d", map(number_or_nan, found))


def number_or_nan(value: float | None) -> float:
    number = finite_or_none(value)
    return math.nan if number is None else float(number)
