"""How large a table of a step is: rows in the mean, and lengths of their texts in tokens.

Where counts (`row_counts`) say what is sure, sizes say what is to be expected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from coloop.spec.rollout import Rollout

if TYPE_CHECKING:
    from coloop.spec.nodes.dataset import DatasetNode

MEAN_OF_MAXIMUM = 0.5
"""Mean length of what is written over the most that may be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """A table of one step, lengths in tokens."""

    rows: float = 0.0
    prompt: float = 0.0
    prompt_max: float = 0.0
    written: float = 0.0
    """Mean length of completion or target."""
    written_max: float = 0.0
    sides: int = 1
    """Texts of one row: two for pairs."""
    alike: float = 1.0
    """Texts that begin with the same prompt."""

    @property
    def length(self) -> float:
        """Mean length of prompt and what follows."""
        return self.prompt + self.written

    @property
    def length_max(self) -> float:
        """Greatest length."""
        return self.prompt_max + self.written_max


class Sizes(Protocol):
    """Sizes of the other tables of a loop, all of one round."""

    per_character: float
    """Tokens of a character."""

    def arriving_once(self, node: str, ports: Iterable[str]) -> TableSize:
        """All edges into these ports, one after another."""

    def worked_on_once(self, node: str) -> TableSize:
        """The rows that a scorer works on: its inputs joined."""

    def brought_once(self, node: str) -> TableSize:
        """Its rows, rollouts and pairs, joined."""

    def siblings(self, node: str) -> float:
        """Completions of one prompt above a node; 1 where no writer is found."""

    def loaded(self, node: str, section: DatasetNode, port: str) -> TableSize:
        """What a dataset gives, with the lengths of its texts."""

    def written(self, node: str, rollout: Rollout, prompts: TableSize) -> TableSize:
        """What a node writes to these prompts."""

    def rollouts_of(self, node: str, port: str) -> list[Rollout]:
        """How the nodes write that an input calls, those of them that write."""


def mean_written(rollout: Rollout) -> float:
    """Mean tokens of a completion, as the loop expects it."""
    longest = float(rollout.max_new_tokens)
    if rollout.expected_tokens is None:
        return MEAN_OF_MAXIMUM * longest
    return min(float(rollout.expected_tokens), longest)


def one_after_another(tables: list[TableSize]) -> TableSize:
    """Rows of several tables, each for itself."""
    rows = sum(table.rows for table in tables)
    if not rows:
        return TableSize()
    return TableSize(
        rows=rows,
        prompt=sum(t.rows * t.prompt for t in tables) / rows,
        prompt_max=max(t.prompt_max for t in tables),
        written=sum(t.rows * t.written for t in tables) / rows,
        written_max=max(t.written_max for t in tables),
        sides=max(t.sides for t in tables),
        alike=sum(t.rows * t.alike for t in tables) / rows,
    )


def joined(tables: list[TableSize]) -> TableSize:
    """Rows joined by lineage: as many as the finest input has."""
    if not tables:
        return TableSize()
    finest = max(tables, key=lambda table: table.rows)
    return replace(
        finest,
        prompt_max=max(t.prompt_max for t in tables),
        written_max=max(t.written_max for t in tables),
    )


# How many logits are held at once, decided here once: update, scoring and engine compute by it,
# plan and estimate say it.

LOGITS_AT_ONCE: dict[Literal["cpu", "cuda"], int] = {"cpu": 1 << 24, "cuda": 1 << 28}
"""64 MiB in float32 on a CPU, where more of them lie further from the core; 1 GiB on a GPU, whose
products need tall matrices and whose kernels take some microseconds each to begin."""


def logits_at_once(*, on_cpu: bool) -> int:
    """Most logits held at once where no chunk is set."""
    return LOGITS_AT_ONCE["cpu" if on_cpu else "cuda"]


def loss_chunk(vocabulary: int, *, on_cpu: bool) -> int:
    """Tokens whose logits are held at once where the loop sets no `training.loss_chunk`."""
    return max(logits_at_once(on_cpu=on_cpu) // vocabulary, 1)
