"""How texts lie in one row of tokens, and which of them see which.

    row (1, M):  prompts a b | first texts of a, of b | longer ones of b        a slab each
                 ─ ─ ─ ─ ─ ─   ────── ────── ──────     ────────────────

A slab is a rectangle of runs, padded on their right. A run sees itself and one run of the slab that
its slab stands behind, so what many texts begin with is read once.

M tokens of all slabs; N runs of a slab, C tokens of each; P tokens of the runs they stand behind.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.algorithms.batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """Runs of tokens, one below the other."""

    runs: int  # N
    tokens: int  # C
    behind: int | None = None
    """Number of an earlier slab, which itself stands behind nothing; None: behind nothing."""
    before: int = 0  # P, tokens of that slab's runs
    sees: Tensor | None = None  # (N,) the run of that slab that each run sees
    unseen: Tensor | None = None
    """(N, P) float32, -inf on padding of the runs that are seen, else 0; None: there is none."""


def in_row(slabs: Sequence[Slab]) -> Iterator[tuple[int, Slab, slice]]:
    """Each slab with its number and where it lies in the row."""
    start = 0
    for number, slab in enumerate(slabs):
        end = start + slab.runs * slab.tokens
        yield number, slab, slice(start, end)
        start = end


def tokens_in(slabs: Sequence[Slab]) -> int:
    """M, padding included."""
    return sum(slab.runs * slab.tokens for slab in slabs)


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


def shared(batch: Batch, *, is_whole: bool) -> tuple[dict[str, Any], Tensor] | None:
    """The batch as a row of slabs where that is less to read, else None. `is_whole`: texts are read
    to their last tokens, not to the last one trained.

    Returns what a model reads, and where in the row each token lies that is read (B, T); anything
    for others.
    """
    ids, mask, lengths = batch.token_ids.numpy(), batch.loss_mask.numpy(), batch.lengths()
    rows, width = mask.shape
    last = np.where(mask.any(1), width - 1 - mask[:, ::-1].argmax(1), 0)
    ends = np.asarray(lengths) if is_whole else last
    prompts, prompt_lengths = _renumbered(batch.prompts.numpy()), batch.prompt_lengths.numpy()
    is_shared = (np.bincount(prompts)[prompts] > 1) & (ends > 0)
    heads = np.flatnonzero(is_shared)[np.unique(prompts[is_shared], return_index=True)[1]]
    alone = np.flatnonzero(~is_shared)
    firsts = np.where(is_shared, prompt_lengths, 0)  # first token of each row behind what is shared

    begins = np.where(is_shared, prompt_lengths, ends)
    slabs: list[Slab] = []
    members: list[Numbers] = []  # by slab, the row of each run
    for runs in _cut(np.concatenate([heads, alone]), begins):
        slabs.append(Slab(runs=len(runs), tokens=int(begins[runs].max())))
        members.append(runs)
    for number, runs in enumerate(members[:]):
        run_of = np.full(rows, -1)  # by prompt
        is_head = is_shared[runs]
        run_of[prompts[runs[is_head]]] = np.flatnonzero(is_head)
        after = np.flatnonzero(is_shared & (run_of[prompts] >= 0))
        for own in _cut(after, ends - firsts):
            tokens = int((ends - firsts)[own].max())
            slabs.append(_slab_behind(number, begins[runs], run_of[prompts[own]], tokens))
            members.append(own)
    read = width if is_whole else width - 1
    if not slabs or tokens_in(slabs) + SLAB_TOKENS * (len(slabs) - 1) >= rows * read:
        return None

    own_start, prompt_start = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    token_ids, positions = [], []
    for number, slab, span in in_row(slabs):
        runs = members[number]
        start_of_runs = span.start + np.arange(slab.runs) * slab.tokens
        if slab.behind is None:
            starts = np.zeros(slab.runs, np.int64)
            is_head = is_shared[runs]
            prompt_start[prompts[runs[is_head]]] = start_of_runs[is_head]
            own_start[runs[~is_head]] = start_of_runs[~is_head]
        else:
            starts = firsts[runs]
            own_start[runs] = start_of_runs
        columns = np.minimum(starts[:, None] + np.arange(slab.tokens), width - 1)
        token_ids.append(ids[runs[:, None], columns].ravel())
        positions.append(columns.ravel())
    columns = np.arange(width)
    places = np.where(
        columns < firsts[:, None],
        prompt_start[prompts][:, None] + columns,
        (own_start - firsts)[:, None] + columns,
    )
    inputs = {
        "input_ids": torch.from_numpy(np.concatenate(token_ids))[None],
        "position_ids": torch.from_numpy(np.concatenate(positions))[None],
        "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool),  # it makes none
        "slabs": tuple(slabs),
    }
    return inputs, torch.from_numpy(places)


def _renumbered(prompts: Numbers) -> Numbers:
    """Numbers from 0 in the order of the rows."""
    _, first, numbers = np.unique(prompts, return_index=True, return_inverse=True)
    return first.argsort().argsort()[numbers]


def _cut(rows: Numbers, sizes: Numbers) -> list[Numbers]:
    """Rows, the longest first, in as many slabs as pay. `sizes`: by row."""
    order = rows[np.argsort(-sizes[rows], kind="stable")]
    order = order[sizes[order] > 0]
    cuts, padded = [0], 0
    for index, size in enumerate(sizes[order].tolist()):
        padded += int(sizes[order[cuts[-1]]]) - size
        if padded > SLAB_TOKENS:
            cuts.append(index)
            padded = 0
    return [runs for runs in np.split(order, cuts[1:]) if len(runs)]


def _slab_behind(number: int, sizes: Numbers, sees: Numbers, tokens: int) -> Slab:
    """A slab behind that of a number, whose runs have these sizes."""
    before, unseen = int(sizes.max()), None
    if (sizes[sees] < before).any():
        is_padding = torch.arange(before) >= torch.from_numpy(sizes[sees])[:, None]
        unseen = torch.zeros(is_padding.shape).masked_fill_(is_padding, -torch.inf)
    return Slab(
        runs=len(sees),
        tokens=tokens,
        behind=number,
        before=before,
        sees=torch.from_numpy(sees),
        unseen=unseen,
    )
