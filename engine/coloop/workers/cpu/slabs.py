"""How texts lie in one row of tokens, and which of them see which.

    row (1, M):  prompts a b | first texts of a, of b | longer ones of b        a slab each
                 ─ ─ ─ ─ ─ ─   ────── ────── ──────     ────────────────

A slab is a rectangle of runs that are equally long but for padding on their right. A run sees what
is before it in itself and, where the slab stands behind another, all of one run of that. So what
many texts begin with is read once. Does not know models or batches.

M tokens of all slabs; N runs of a slab, C tokens of each; P tokens of the runs they stand behind.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What the runs of a slab stand behind."""

    slab: int
    """Number of an earlier slab, which itself stands behind nothing."""
    runs: Tensor
    """(N,) the run of it that each run sees."""
    tokens: int
    """P of them."""
    unseen: Tensor | None = None
    """(N, P) float32, -inf on padding of these runs, else 0; None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """Runs of tokens, one below the other."""

    runs: int
    tokens: int
    prefix: Prefix | None = None

    @property
    def before(self) -> int:
        """P, tokens that its runs stand behind."""
        return 0 if self.prefix is None else self.prefix.tokens

    @property
    def seen(self) -> int:
        """Places that its tokens look at together, those ahead of them included."""
        return self.runs * self.tokens * (self.before + self.tokens)


@dataclass(frozen=True, slots=True)
class Layout:
    """The slabs of a row."""

    slabs: tuple[Slab, ...]
    reach: int
    """Tokens of the longest text."""

    @property
    def tokens(self) -> int:
        """M, padding included."""
        return sum(slab.runs * slab.tokens for slab in self.slabs)

    @property
    def seen(self) -> int:
        """Places that all tokens look at together."""
        return sum(slab.seen for slab in self.slabs)

    def parts(self) -> Iterator[tuple[int, Slab, slice]]:
        """Each slab with its number and its place in the row."""
        start = 0
        for number, slab in enumerate(self.slabs):
            end = start + slab.runs * slab.tokens
            yield number, slab, slice(start, end)
            start = end
