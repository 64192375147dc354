"""How an update speaks with who waits for it, and how it fails."""

from collections.abc import Callable
from dataclasses import dataclass

from coloop.errors import NodeFailed


class UpdateFailed(NodeFailed):
    """A loss or gradient is not finite; the weights are as they were before that optimizer step."""

    code = "training.not_finite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """How an update speaks with who waits for it."""

    progress: Callable[[int, int], None] = lambda done, total: None
    """Called with rows done by this rank and rows of all, after each micro-batch."""
    should_stop: Callable[[], bool] = lambda: False
    """Asked between micro-batches before an optimizer step is taken; if one rank stops, all do."""
