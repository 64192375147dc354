"""How texts lie in one row of tokens, and which of them see which.

    row (1, M):  prompts a b | first texts of a, of b | longer ones of b        a slab each
                 ─ ─ ─ ─ ─ ─   ────── ────── ──────     ────────────────

A slab is a rectangle of runs, padded on their right. A run sees itself and one run of the slab that
its slab stands behind, so what many texts begin with is read once.

M tokens of all slabs; N runs of a slab, C tokens of each; P tokens of the runs they stand behind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.algorithms.batch import Batch
from coloop.algorithms.batch.passes import prompts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    slab: int  # number of an earlier slab, which itself stands behind nothing
    runs: Tensor  # (N,) the run of it that each run sees
    tokens: int  # P of them
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
    slabs: tuple[Slab, ...]
    reach: int

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


# Texts that begin alike as one row of slabs, in which what they begin with is read once.
#
#     a b c d e           a b c · f g h            prompts and texts alone | what follows prompts
#     a b c f       ->    d e · f                  a slab for each width that pays
#     f g h
#
# Only what bears on what is asked is read: nothing behind the last trained token, but whole texts
# where their last tokens are asked for. Rows of uneven length lie in several slabs, so little is
# padded.

SLAB_TOKENS = 64
"""What a slab costs beside its tokens, in tokens: so much padding another slab may spare."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A batch as one row of slabs."""

    token_ids: Tensor  # (1, M)
    positions: Tensor  # (1, M)
    layout: Layout
    places: Tensor
    """(B, T) where in the row each token lies that is read; anything for others."""

    def inputs(self) -> dict[str, Any]:
        """What a model reads; the mask of four dimensions tells it to make none."""
        return {
            "input_ids": self.token_ids,
            "position_ids": self.positions,
            "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool),
            "layout": self.layout,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """Tokens of rows that lie in one slab, in its order."""

    rows: Numbers
    starts: Numbers
    sizes: Numbers

    @property
    def width(self) -> int:
        return int(self.sizes.max())


def shared(batch: Batch, *, is_whole: bool) -> Shared | None:
    """The batch as a row of slabs where that is less to read, else None. `is_whole`: texts are read
    to their last tokens, not to the last one trained."""
    mask, lengths = batch.loss_mask.numpy(), np.asarray(batch.lengths())
    width = mask.shape[1]
    last = np.where(mask.any(1), width - 1 - mask[:, ::-1].argmax(1), 0)
    ends = lengths if is_whole else last
    prompts = prompts_of(batch)
    numbers = np.asarray(prompts.numbers)
    is_shared = (np.bincount(numbers)[numbers] > 1) & (ends > 0)
    firsts = np.where(is_shared, np.asarray(prompts.lengths), 0)
    heads = np.flatnonzero(is_shared)[np.unique(numbers[is_shared], return_index=True)[1]]
    alone = np.flatnonzero(~is_shared)

    rows = np.concatenate([heads, alone])
    sizes = np.concatenate([np.asarray(prompts.lengths)[heads], ends[alone]]).astype(np.int64)
    before = _cut(rows, np.zeros_like(rows), sizes)
    behind: list[tuple[int, _Runs]] = []
    slab_of, run_of = np.full(len(prompts.numbers), -1), np.zeros(len(prompts.numbers), np.int64)
    for number, runs in enumerate(before):
        own = np.isin(runs.rows, heads)
        slab_of[numbers[runs.rows[own]]] = number
        run_of[numbers[runs.rows[own]]] = np.flatnonzero(own)
        after = np.flatnonzero(is_shared & (slab_of[numbers] == number))
        behind += [(number, one) for one in _cut(after, firsts[after], ends[after] - firsts[after])]
    slabs = [Slab(runs=len(runs.rows), tokens=runs.width) for runs in before]
    for number, runs in behind:
        prefix = _prefix(number, before[number], run_of[numbers[runs.rows]])
        slabs.append(Slab(runs=len(runs.rows), tokens=runs.width, prefix=prefix))
    layout = Layout(tuple(slabs), int(lengths.max()))
    read = width if is_whole else width - 1
    if not slabs or layout.tokens + SLAB_TOKENS * (len(slabs) - 1) >= len(mask) * read:
        return None
    all_runs = [*before, *(runs for _, runs in behind)]
    return _laid(batch, layout, all_runs, numbers, firsts, heads)


def _cut(rows: Numbers, starts: Numbers, sizes: Numbers) -> list[_Runs]:
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    cuts, padded = [0], 0
    for place, size in enumerate(sizes[order].tolist()):
        padded += int(sizes[order[cuts[-1]]]) - size
        if padded > SLAB_TOKENS:
            cuts.append(place)
            padded = 0
    return [
        _Runs(rows=rows[part], starts=starts[part], sizes=sizes[part])
        for part in np.split(order, cuts[1:])
        if len(part)
    ]


def _prefix(number: int, runs: _Runs, seen: Numbers) -> Prefix:
    unseen = None
    sizes = runs.sizes[seen]
    if (sizes < runs.width).any():
        is_padding = torch.arange(runs.width) >= torch.from_numpy(sizes)[:, None]
        unseen = torch.zeros(is_padding.shape).masked_fill_(is_padding, -torch.inf)
    return Prefix(slab=number, runs=torch.from_numpy(seen), tokens=runs.width, unseen=unseen)


def _laid(
    batch: Batch,
    layout: Layout,
    all_runs: list[_Runs],
    numbers: Numbers,
    firsts: Numbers,
    heads: Numbers,
) -> Shared:
    ids = batch.token_ids.numpy()
    rows, width = ids.shape
    own, prompt = np.zeros(rows, np.int64), np.zeros(len(numbers), np.int64)
    token_ids, positions = [], []
    start = 0
    for number, runs in enumerate(all_runs):
        columns = np.minimum(runs.starts[:, None] + np.arange(runs.width), width - 1)
        token_ids.append(ids[runs.rows[:, None], columns].ravel())
        positions.append(columns.ravel())
        begins = start + np.arange(len(runs.rows)) * runs.width
        if layout.slabs[number].prefix is None:
            is_head = np.isin(runs.rows, heads)
            prompt[numbers[runs.rows[is_head]]] = begins[is_head]
            own[runs.rows[~is_head]] = begins[~is_head]
        else:
            own[runs.rows] = begins
        start += columns.size
    columns = np.arange(width)
    places = np.where(
        columns < firsts[:, None],
        prompt[numbers][:, None] + columns,
        (own - firsts)[:, None] + columns,
    )
    return Shared(
        token_ids=torch.from_numpy(np.concatenate(token_ids))[None],
        positions=torch.from_numpy(np.concatenate(positions))[None],
        layout=layout,
        places=torch.from_numpy(places),
    )
