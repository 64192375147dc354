"""What an update is given and what it reports: token sequences and recipes; no tables, edges or
phases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.protocol import Recipe
from coloop.data.arrays import Numbers
from coloop.errors import ColoopError


class UpdateFailed(ColoopError):
    """A loss or gradient is not finite; the weights are as they were before that optimizer step."""

    code = "training.not_finite"

    def __init__(
        self,
        message: str,
        group: str = "",
        node: str | None = None,
        port: str | None = None,
        step: int | None = None,
    ) -> None:
        super().__init__(message, group, node, port, step)
        self.group = group
        self.node = node
        self.port = port
        self.step = step


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainBatch:
    """What one teaching port of one role brings to an update, for one of its algorithms."""

    role: str
    """Node id."""
    port: str
    recipe: Recipe
    settings: Any
    """What `coloop.spec.algorithm` resolves the algorithm's section to."""
    rows: Sequence[TokenSequence] | Sequence[Pair]
    weight: float = 1.0
    """Of this load's loss among the learner's."""
    temperature: float | Sequence[float] = 1.0
    """That the rows were sampled at, one for all or one for each; logits are divided by it, as by
    the sampler. 0 counts as 1."""
    number: int = 0
    """Of the algorithm among those of its port."""

    @property
    def name(self) -> str:
        """Role, port and algorithm; what lasts from update to update belongs to it."""
        own = f"{self.role}.{self.port}.{self.settings.name}"
        return f"{own}.{self.number}" if self.number else own


def _keep_going() -> bool:
    return False


def _ignore(done: int, total: int) -> None:
    del done, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """How an update speaks with who waits for it."""

    progress: Callable[[int, int], None] = _ignore
    """Called with rows done by this rank and rows of all, after each micro-batch."""
    should_stop: Callable[[], bool] = _keep_going
    """Asked between micro-batches before an optimizer step is taken; if one rank stops, all do."""


Seen = Mapping[str, Mapping[str, Mapping[str, Numbers]]]
"""By load, then by row id, then by name: one number a token of prompt and completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    metrics: Mapping[str, Mapping[str, float]]  # by role, then by name
    rows: int  # rows learned from, each once
    tokens: int  # their trained tokens, each once
    optimizer_steps: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    """By role: rows without a trained token, which teach nothing."""
    seen: Seen = field(default_factory=dict)  # what the losses saw of each token of a few rows
