"""The seam between roles and what trains weights.

A backend owns the model, the optimizer, the learning-rate schedule and the counters of one weights
group. It knows token sequences and recipes; it names no algorithm and knows no tables, edges or
phases.

    prepare (what a recipe compares with, once) ->
    loads (port, recipe, rows) -> mini-batches -> micro-batches -> loss / divisor -> one step each

Invariants:
- The divisor of a load is taken over a whole optimizer step, so micro-batches change nothing.
- The order of rows follows from the seed that is passed; nothing draws from global state.
- `state_dict` is all that an exact resume needs: k + (N - k) updates equal N bit for bit on a CPU.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.errors import ColoopError
from coloop.models import ONLY
from coloop.spec.heads import Reading
from coloop.spec.training import Training
from coloop.workers.training.adapters import Adapted
from coloop.workers.training.train_batch import Seen, TrainBatch


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
    """Asked between micro-batches; of an update until the first optimizer step is taken. Where one
    rank is told so, all stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    metrics: Mapping[str, Mapping[str, float]]
    """By role, then by name."""
    rows: int
    """Rows learned from, each once."""
    tokens: int
    """Their trained tokens, each once."""
    optimizer_steps: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    """By role: rows without a trained token, which teach nothing."""
    seen: Seen = field(default_factory=dict)
    """What the losses saw of each token of a few rows."""


class TrainBackend(Protocol):
    """Owner of one weights group's training.

    Over ranks each process has one; all are called alike, each is given everything, and each gives
    the same answer: rows are divided, and what was found is put together, inside.
    """

    @property
    def has_stepped(self) -> bool:
        """Whether the last update changed the weights; of one that broke off as well."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the model that it was given still holds all weights, for others to read."""
        ...

    @property
    def adapted(self) -> Adapted | None:
        """The adapter that learns, and what it stands on; None: all weights learn."""
        ...

    def begin_phase(self, total_updates: int | None) -> None:
        """A phase's entry starts: warm-up and decay of the learning rate span its updates."""
        ...

    def prepare(
        self,
        loads: Sequence[TrainBatch],
        training: Training,
        *,
        seed: int,
        hooks: Hooks | None = None,
    ) -> list[TrainBatch]:
        """The loads with what their recipes ask of the whole batch (`Needs.prepares`), by the
        weights as they are: however many updates follow, all learn against this policy.

        Raises `StopRequested` where a stop is asked; nothing has changed then.
        """
        ...

    def update(
        self,
        loads: Sequence[TrainBatch],
        training: Training,
        *,
        seed: int,
        hooks: Hooks | None = None,
    ) -> UpdateReport:
        """Learn from all loads jointly; the policy before it is the old one of rows that were not
        prepared.

        Raises `StopRequested` where a stop is asked before the first optimizer step; then nothing
        has changed. Once a step is taken the update is completed, so that a version of the weights
        never stands for half an update. Raises `UpdateFailed` on a loss that is not finite.
        """
        ...

    def evaluate(
        self, loads: Sequence[TrainBatch], training: Training, *, hooks: Hooks | None = None
    ) -> UpdateReport:
        """Losses and metrics of the loads by the weights as they are; nothing learns."""
        ...

    def score(
        self,
        sequences: Sequence[TokenSequence],
        reading: Reading = "log_probs",
        *,
        temperature: float = 1.0,
        hooks: Hooks | None = None,
        node: str = ONLY,
    ) -> list[Numbers]:
        """Log-prob or value of each token, aligned to `token_ids`, 0 where the loss mask is false;
        or the C numbers that a score head says of each text: that of the node that reads, where
        several have their own."""
        ...

    def at_once(self) -> tuple[int, int] | None:
        """Most rows and most tokens of the micro-batches that were planned last; None before the
        first."""
        ...

    def narrow(self, rows: int, tokens: int) -> None:
        """No more than this in a micro-batch from here on, whatever settings say; the same on every
        rank. Losses and gradients do not change by it."""
        ...

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, by its Hugging Face name, one at a time in memory."""
        ...

    def replace_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Others, by the names of `weights`, in place of those; running means and counters stay.
        An adapter begins anew beside them."""
        ...

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        """own = ema * own + (1 - ema) * given, a weight at a time, as `replace_weights` replaces
        them; names of those that were not given."""
        ...

    def reset_optimizer(self) -> None:
        """Forget the optimizer's running means; weights and counters stay."""
        ...

    def state_dict(self, *, has_weights: bool = True) -> dict[str, Any]:
        """All that a resume needs, on the first rank; of the same form on every backend.

        Args:
            has_weights: else without weights, which are saved in files of their own.
        """
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """What `state_dict` gave on any backend and any number of ranks.

        Raises `CheckpointError` where it does not fit.
        """
        ...
