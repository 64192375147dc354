"""The static cache of keys and values of a `LeanDecoder`: S rows, of which the first N run.

One block per layer, (S * K, L, D), and a mask of what each row may look at (0, else minus
infinity). On a CPU a block is as long as what is looked at, because products of many small matrices
copy slices of longer ones; on a GPU it keeps its length.

S slots, N running rows, L cached tokens, K key-value heads, D head width, B prompts, T prompt
tokens.
"""

from __future__ import annotations

import mmap
from math import prod

import torch
from torch import Tensor

from coloop.workers.cpu.lean_weights import Shape
from coloop.workers.rollout.decoder import Lines

ALIGNMENT = 16
"""Tokens are read in multiples of a processor's vector: a softmax over 15 takes ten times as long
as one over 16."""
GROWTH = 8
"""Blocks grow by one part in so many, so that what is copied stays small beside what is read."""


def round_up(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


class LeanCache:
    def __init__(self, shape: Shape, device: torch.device, dtype: torch.dtype) -> None:
        self._shape = shape
        self._device = device
        self._dtype = dtype
        self._is_tight = device.type == "cpu"
        self._mask_dtype = torch.float32 if self._is_tight and dtype.itemsize == 2 else dtype
        self._allocate(0, 0)

    def _allocate(self, slots: int, length: int) -> None:
        s = self._shape
        self._slots, self._length = slots, length
        size = 2 * slots * s.kv_heads * length * s.head_width
        # Never unset memory: a masked NaN is still a NaN.
        self._room = zeros_apart(s.layers, size, device=self._device, dtype=self._dtype)
        self.mask = torch.zeros(slots, length, device=self._device, dtype=self._mask_dtype)
        self._places = torch.arange(length, device=self._device)
        self._lay_out(0 if self._is_tight else length)

    def _lay_out(self, length: int) -> None:
        s, slots = self._shape, self._slots
        sizes = (2, slots, s.kv_heads, length, s.head_width)
        used = self._room[:, : 2 * slots * s.kv_heads * length * s.head_width]
        self._laid = length
        self._lines = used.view(s.layers, *sizes)
        self.blocks = self._lines.flatten(2, 3)
        """Keys (0) and values (1) of each layer, (layers, 2, S * K, L, D)."""
        starts = torch.arange(2 * slots * s.kv_heads, device=self._device) * length
        self.row_starts = starts.view(2, slots, s.kv_heads)
        """First line of each slot and head among all lines of a layer's keys and values."""

    def reserve(self, slots: int, length: int, running: int) -> None:
        """Room for so many rows of so many tokens; the first `running` stay as they are."""
        length = round_up(length)
        if (slots, length) == (self._slots, self._length):
            if not running and self._is_tight:
                self._lay_out(0)
            return
        lines, mask, seen = self._lines, self.mask, min(length, self._laid)
        if not running:
            del lines, mask
            self._allocate(0, 0)  # the old cache goes before the new one comes
        self._allocate(slots, length)
        if running:
            kept = min(length, mask.shape[1])
            self.hold(seen)
            self._lines[:, :, :running, :, :seen] = lines[:, :, :running, :, :seen]
            self.mask[:running] = -torch.inf
            self.mask[:running, :kept] = mask[:running, :kept]

    def hold(self, tokens: int) -> None:
        if tokens > self._laid:
            wanted = round_up(tokens)
            self._lay_anew(min(wanted + round_up(wanted // GROWTH - ALIGNMENT), self._length))

    def fit(self, tokens: int) -> int:
        """Lay rows out for so many tokens and little more; how many are to be looked at."""
        if not self._is_tight:
            return round_up(tokens)
        if self._laid >= 2 * round_up(tokens):
            self._lay_anew(round_up(tokens))
        self.hold(tokens)
        return self._laid

    def _lay_anew(self, length: int) -> None:
        lines, kept = self._lines, min(self._laid, length)
        self._lay_out(length)
        for old, new in zip(lines.unbind(), self._lines.unbind(), strict=True):
            new[..., :kept, :] = old[..., :kept, :].clone()  # both lie in the same memory
            new[..., kept:, :] = 0

    def put(self, layer: int, slots: slice, keys: Tensor, values: Tensor) -> None:
        """Writes the first tokens of some slots. (n, K, T, D) twice"""
        longest = keys.shape[2]
        self.hold(longest)
        self._lines[layer, 0, slots, :, :longest] = keys
        self._lines[layer, 1, slots, :, :longest] = values

    def show(self, slots: slice | Tensor, lengths: Tensor) -> None:
        """Lets slots look at their first tokens and at nothing behind. (n,)"""
        is_behind = self._places[None, :] >= lengths[:, None]  # (n, length)
        self.mask[slots] = torch.where(is_behind, -torch.inf, 0.0)

    def move(self, targets: Tensor, sources: Tensor) -> None:
        """Slot targets[i] becomes what slot sources[i] is."""
        if len(targets):
            self._lines[:, :, targets] = self._lines[:, :, sources]
            self.mask[targets] = self.mask[sources]

    def take(self, slot: int, length: int) -> Lines:
        """A copy of what a slot holds of its first tokens, (layers, 2, 1, K, T, D)."""
        return Lines(self._lines[:, :, slot : slot + 1, :, :length].clone(), length)

    def repeat(self, lines: Lines, slots: slice) -> None:
        """Hands tokens that were read before to more slots."""
        self.hold(lines.length)
        self._lines[:, :, slots, :, : lines.length] = lines.values
        self.mask[slots] = torch.where(self._places >= lines.length, -torch.inf, 0.0)

    def reading(self, slots: Tensor, positions: Tensor, is_real: Tensor, seen: int) -> ReadRows:
        """Rows about to get several tokens each. slots (B,), positions and is_real (B, T)."""
        self.hold(seen)
        return ReadRows(self, slots, positions, is_real, seen)

    def running(self, positions: Tensor, seen: int) -> RunningRows:
        """The first N rows, about to get one token each at these positions. (N,)"""
        return RunningRows(self, self._shape, positions, seen)


class RunningRows:
    """The running part of a cache during one step."""

    def __init__(self, cache: LeanCache, shape: Shape, positions: Tensor, seen: int) -> None:
        rows, kv = len(positions), shape.kv_heads
        seen = cache.fit(seen)
        self._blocks = cache.blocks
        self._seen = seen
        self._rows = rows * kv
        lines = cache.row_starts[:, :rows] + positions[:, None]  # (2, N, K)
        self._lines = lines.flatten()
        cache.mask[:rows].scatter_(1, positions[:, None], 0.0)
        mask = cache.mask[:rows, None, :seen].expand(rows, kv, seen)
        self.mask = mask.reshape(self._rows, 1, seen)
        """What each key-value head of each row may look at, (N * K, 1, L)."""

    def append(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Adds keys and values (N, K, D); gives all that the rows have, (N * K, L, D) twice."""
        block = self._blocks[layer]  # (2, S * K, L, D)
        width = key.shape[-1]
        new = torch.cat((key, value)).view(-1, width)  # (2 * N * K, D)
        block.view(-1, width).index_copy_(0, self._lines, new)
        return block[0, : self._rows, : self._seen], block[1, : self._rows, : self._seen]


class ReadRows:
    """Some rows of a cache while tokens behind those that they hold are read."""

    def __init__(
        self, cache: LeanCache, slots: Tensor, positions: Tensor, is_real: Tensor, seen: int
    ) -> None:
        self._blocks, self._seen, self._slots = cache.blocks, seen, slots
        self._rows, self._tokens = is_real.nonzero(as_tuple=True)
        starts = cache.row_starts[:, slots]  # (2, B, K)
        places = positions[self._rows, self._tokens]
        self._lines = (starts[:, self._rows] + places[:, None]).flatten()  # (2 * real * K,)
        places = torch.arange(seen, device=positions.device)
        self.mask = (places <= positions[:, :, None])[:, None]
        """What each token may look at, (B, 1, T, L); a padded one as if it were real."""

    def append(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Adds keys and values (B, K, T, D); gives all that the rows have, (B, K, L, D) twice."""
        width = key.shape[-1]
        real = [part[self._rows, :, self._tokens] for part in (key, value)]  # (real, K, D) each
        block = self._blocks[layer]  # (2, S * K, L, D)
        block.view(-1, width).index_copy_(0, self._lines, torch.cat(real).view(-1, width))
        by_slot = block.view(2, -1, key.shape[1], *block.shape[2:])  # (2, S, K, L, D)
        rows = by_slot[:, self._slots, :, : self._seen]
        return rows[0], rows[1]


# Memory that goes back to the system when it is not used any more.
#
# A process that trains keeps what it frees, as it wants it again at once (`cluster.environment`);
# a large cache that sleeps while others work must not stay in its heap.

LEAST_BYTES = 64 * 2**20  # less is not worth pages of its own


def zeros_apart(*size: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros; on a CPU, where they are many, in pages of their own that go with the tensor."""
    count = prod(size)
    if device.type != "cpu" or count * dtype.itemsize < LEAST_BYTES:
        return torch.zeros(size, device=device, dtype=dtype)
    pages = mmap.mmap(-1, count * dtype.itemsize)  # zeros, and none of them there before it is used
    return torch.frombuffer(pages, dtype=dtype).view(size)
