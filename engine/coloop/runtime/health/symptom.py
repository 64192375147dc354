"""What a symptom is: how something that is wrong shows in the metrics of one node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Metrics = Mapping[str, float]
Shows = Callable[["Look"], str | None]
"""How something shows, in words; None where it does not."""
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
    reasons: Mapping[str, str]
    """Why readings are as they are, where the node knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What can be wrong; `shows` says how it shows, or nothing."""

    code: str
    level: Level
    metric: str
    """Without a reading of it nothing is said."""
    patience: int
    """Readings in a row."""
    shows: Shows
    hint: str
    about: str = ""
    """The metric that one looks at; empty: the same."""
    holds_from_the_start: bool = False
    """A run that ends before the patience does is told, where it held in every reading."""


def above(name: str, limit: float, words: str) -> Shows:
    """Shows where a reading is greater than the limit.

    Args:
        words: with a place for the reading, e.g. `{:.0%}`.
    """
    return lambda look: words.format(look.now[name]) if look.now[name] > limit else None


def below(name: str, limit: float, words: str) -> Shows:
    return lambda look: words.format(look.now[name]) if look.now[name] < limit else None


def at_least(name: str, limit: float, words: str) -> Shows:
    return lambda look: words.format(look.now[name]) if look.now[name] >= limit else None


def at_most(name: str, limit: float, words: str) -> Shows:
    return lambda look: words.format(look.now[name]) if look.now[name] <= limit else None
