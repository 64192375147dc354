"""Metrics of a batch of events as columns, so that a curve or a list takes in many at once.

metrics events of one attempt --> by node and names --> steps, rows of values --> curves, lists
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, NamedTuple

from coloop_server.runs.eventlog import Entry
from coloop_server.runs.summary import NO_NODE, finite_or_none, is_number, path_of

PLAIN = frozenset((float, int, type(None)))
Names = tuple[str | None, tuple[str, ...]]
"""A node, None for the whole run, and names of metrics in their order."""


class Label(NamedTuple):
    """Destinations of the values of one kind of row."""

    keys: tuple[tuple[str, str], ...]
    """Keys of curves."""
    paths: tuple[str, ...]
    """Paths in lists."""


@dataclass(slots=True)
class Rows:
    """Values of events in a batch with equal node and metric names."""

    label: Label
    order: list[int] = field(default_factory=list)
    """Indices of the events in the batch."""
    steps: list[int] = field(default_factory=list)
    values: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass(slots=True)
class MetricRows:
    groups: list[Rows]
    """In the order of their last events."""
    clock: list[tuple[int, float]]
    """Step and time in seconds of each event that has a time."""

    def columns(self) -> Iterator[tuple[tuple[str, str], "array[int]", "array[float]"]]:
        """By curve, its steps and values in event order."""
        parts: dict[tuple[str, str], list[tuple[Rows, tuple[Any, ...]]]] = {}
        for group in self.groups:
            columns = zip(*group.values, strict=True)
            for key, column in zip(group.label.keys, columns, strict=True):
                parts.setdefault(key, []).append((group, column))
        for key, held in parts.items():
            if len(held) == 1:
                [(group, column)] = held
                yield key, array("i", group.steps), column_of(column)
                continue
            points = [zip(group.order, group.steps, column, strict=True) for group, column in held]
            _, steps, values = zip(*sorted(chain(*points), key=lambda point: point[0]), strict=True)
            yield key, array("i", steps), column_of(values)


def parts_of(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Divide a batch by attempt."""
    return (list(part) for _, part in groupby(entries, attrgetter("attempt")))


def rows_of(entries: Sequence[Entry], step: int) -> MetricRows:
    """Metrics of a batch of one attempt as columns.

    Args:
        step: the last one that an event before these has named.
    """
    grouped = _grouped(entries, step)
    values = chain.from_iterable(group.values for group in grouped.groups)
    if set(map(type, chain.from_iterable(values))) <= PLAIN:
        return grouped
    return _grouped(entries, step, is_odd=True)


def _grouped(entries: Sequence[Entry], step: int, *, is_odd: bool = False) -> MetricRows:
    """`is_odd`: some values are not numbers and are left out."""
    groups: dict[Names, Rows] = {}
    clock: list[tuple[int, float]] = []
    for index, (event, _, _, kind, _, own, _, at) in enumerate(entries):
        if own is not None:
            step = own
        if kind != "metrics":
            continue
        metrics, node = event.get("metrics"), event.get("node")
        if type(metrics) is not dict:
            continue
        if is_odd:
            metrics = {
                name: value for name, value in metrics.items() if value is None or is_number(value)
            }
        names = (node if type(node) is str else None, tuple(metrics))
        rows = groups.get(names)
        if rows is None:
            rows = groups[names] = Rows(label_of(names))
        rows.order.append(index)
        rows.steps.append(step)
        rows.values.append(tuple(metrics.values()))
        if at is not None:
            clock.append((step, at.timestamp()))
    return MetricRows(sorted(groups.values(), key=lambda rows: rows.order[-1]), clock)


@lru_cache(maxsize=1024)
def label_of(names: Names) -> Label:
    node, metrics = names
    return Label(
        tuple((node or NO_NODE, name) for name in metrics),
        tuple(path_of(node, name) for name in metrics),
    )


def column_of(values: Iterable[Any]) -> "array[float]":
    """Values of a curve; NaN if a float cannot hold the value."""
    known = list(values)
    try:
        column = array("d", known)
        if math.isfinite(sum(column)):
            return column
    except (TypeError, OverflowError):
        pass
    numbers = map(finite_or_none, known)
    return array("d", [math.nan if number is None else float(number) for number in numbers])
