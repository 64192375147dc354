"""How a node kind presents itself: title, help, icon, words, values on its card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Telling:
    """A value that a node shows on its card and lets people edit there."""

    label: str
    """One to three short words."""
    paths: tuple[str, ...]
    """Where the value may stand: the first of these that is set, else the first with a default."""


@dataclass(frozen=True, slots=True)
class Learning:
    """Where a kind that can be taught says how it learns."""

    algorithm: str
    """The setting; without it and without a teaching edge the node is no learner."""
    names: tuple[str, ...]
    """Paths of the names of its algorithms; `*` is any key."""
    rate: str
    """Path of its learning rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindText:
    """How a node kind presents itself."""

    title: str
    group: str
    icon: str
    help: str
    template: dict[str, Any]
    synonyms: str
    """Other words under which it is looked for, with commas between them."""
    summary: tuple[str, ...]
    """Paths of the values that stand beside the kind, most telling first; `*` is any key."""
    telling: tuple[Telling, ...]
    """At most three further values, most telling first."""
    learning: Learning | None = None


LEARNS_BY: Final = Learning(
    "algorithm",
    ("algorithm.name", "algorithm.*.name", "algorithm.*.*.name"),
    "training.optimizer.lr",
)
"""How the kinds learn that have weights."""
MODEL_PATHS: Final = ("model.architecture", "model.path", "model.run", "model.of", "model.with")
"""Where the weights of a model come from."""
