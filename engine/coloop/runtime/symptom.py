"""What a symptom is: how something that is wrong shows in the metrics of one node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Metrics = Mapping[str, float]
Level = Literal["warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a symptom sees of one node at one step."""

    now: Metrics
    start: Metrics
    """The very first readings in this phase: of the weights that it began with."""
    first: Metrics
    """Medians of the first readings in this phase, where there were enough."""
    recent: Metrics
    """Medians of the last readings."""
    best: Metrics
    """The greatest of these medians in this phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What can be wrong; `shows` says how it shows, or nothing."""

    code: str
    level: Level
    metric: str
    """Without a reading of it nothing is said."""
    patience: int
    """Readings in a row."""
    shows: Callable[[Look], str | None]
    hint: str
    about: str = ""
    """The metric that one looks at; empty: the same."""
    holds_from_the_start: bool = False
    """A run that ends before the patience does is told, where it held in every reading."""
