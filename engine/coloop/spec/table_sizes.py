"""How large a table of a step is: rows in the mean, and lengths of their texts in tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from coloop.spec.rollout import Rollout

MEAN_OF_MAXIMUM = 0.5
"""Assumed mean length of a generated text, relative to the maximum."""


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
    """Texts per row: two for pairs."""
    alike: float = 1.0
    """Number of texts that share a prompt prefix."""

    @property
    def length(self) -> float:
        """Mean length of prompt and completion."""
        return self.prompt + self.written

    @property
    def length_max(self) -> float:
        return self.prompt_max + self.written_max

    def times(self, factor: float) -> "TableSize":
        return self if factor == 1 else replace(self, rows=self.rows * factor)

    @property
    def as_pairs(self) -> "TableSize":
        """As a table of pairs: two texts per row under one prompt."""
        return self if self.sides == 2 else replace(self, sides=2, alike=2 * self.alike)


EMPTY = TableSize()
CHARACTERS_PER_TOKEN = 3.2
"""For word vocabularies; tokens of small vocabularies are assumed to be characters."""


def mean_written(rollout: Rollout) -> float:
    """Mean tokens of a completion."""
    longest = float(rollout.max_new_tokens)
    if rollout.expected_tokens is None:
        return MEAN_OF_MAXIMUM * longest
    return min(float(rollout.expected_tokens), longest)


def one_after_another(tables: Sequence[TableSize]) -> TableSize:
    """Size of concatenated tables."""
    rows = sum(table.rows for table in tables)
    if not rows:
        return EMPTY
    if len(tables) == 1:
        return tables[0]
    return TableSize(
        rows=rows,
        prompt=sum(t.rows * t.prompt for t in tables) / rows,
        prompt_max=max(t.prompt_max for t in tables),
        written=sum(t.rows * t.written for t in tables) / rows,
        written_max=max(t.written_max for t in tables),
        sides=max(t.sides for t in tables),
        alike=sum(t.rows * t.alike for t in tables) / rows,
    )


def joined(tables: Sequence[TableSize]) -> TableSize:
    """Size of a join by lineage, with as many rows as the finest input."""
    if len(tables) < 2:
        return tables[0] if tables else EMPTY
    finest = max(tables, key=lambda table: table.rows)
    return replace(
        finest,
        prompt_max=max(t.prompt_max for t in tables),
        written_max=max(t.written_max for t in tables),
    )


# How many logits are held at once, decided here once: update, scoring and engine compute by it,
# plan and estimate say it.

LOGITS_AT_ONCE: dict[Literal["cpu", "cuda"], int] = {"cpu": 1 << 24, "cuda": 1 << 28}
"""64 MiB in float32 on a CPU, where more do not fit into its caches; 1 GiB on a GPU, where products
need tall matrices and each kernel takes some microseconds to launch."""


def logits_at_once(*, on_cpu: bool) -> int:
    """Most logits held at once where no chunk is set."""
    return LOGITS_AT_ONCE["cpu" if on_cpu else "cuda"]


def loss_chunk(vocabulary: int, *, on_cpu: bool) -> int:
    """Tokens whose logits are held at once where the loop sets no `training.loss_chunk`."""
    return max(logits_at_once(on_cpu=on_cpu) // vocabulary, 1)
