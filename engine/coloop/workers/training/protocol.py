"""What an update is given and what it reports: token sequences and recipes; no tables, edges or
phases."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from coloop.errors import ColoopError
from coloop.workers.training.train_batch import Seen


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    metrics: Mapping[str, Mapping[str, float]]  # by role, then by name
    rows: int  # rows learned from, each once
    tokens: int  # their trained tokens, each once
    optimizer_steps: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    """By role: rows without a trained token, which teach nothing."""
    seen: Seen = field(default_factory=dict)  # what the losses saw of each token of a few rows
