"""The static cache of keys and values of a `LeanDecoder`: room for S rows, of which the first N
run.

One block per layer, (S * K, length, D), so that the first N rows are a view of it. Beside it
stands the mask of what each row may look at: 0 where it has a token, else minus infinity.

S slots, N running rows, L cached tokens, K key-value heads, D head width, B prompts, T prompt
tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from coloop.rollout.lean_weights import Shape

ALIGNMENT = 16
"""Tokens looked at come in multiples of a vector of the processor; a softmax over 15 takes ten
times as long as over 16, and the rest is masked."""


def round_up(length: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-length // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What the cache holds of one prompt that was read."""

    prompt: tuple[int, ...]
    lines: Tensor
    """Keys and values of all layers, (layers, 2, 1, K, T, D)."""
    logits: Tensor
    """Of the token that follows, (V,)."""


class LeanCache:
    """Keys, values and masks of all slots."""

    def __init__(self, shape: Shape, device: torch.device, dtype: torch.dtype) -> None:
        self._shape = shape
        self._device = device
        self._dtype = dtype
        self._allocate(0, 0)

    def _allocate(self, slots: int, length: int) -> None:
        s = self._shape
        self._slots, self._length = slots, length

        def zeros(*size: int) -> Tensor:  # never unset memory: a masked NaN is still a NaN
            return torch.zeros(size, device=self._device, dtype=self._dtype)

        self._lines = zeros(s.layers, 2, slots, s.kv_heads, length, s.head_width)
        self.blocks = self._lines.flatten(2, 3)
        """Keys (0) and values (1) of each layer, (layers, 2, S * K, length, D)."""
        self.mask = zeros(slots, length)
        starts = torch.arange(2 * slots * s.kv_heads, device=self._device) * length
        self.row_starts = starts.view(2, slots, s.kv_heads)
        """First line of each slot and head among all lines of a layer's keys and values."""
        self._places = torch.arange(length, device=self._device)

    def reserve(self, slots: int, length: int) -> None:
        """Room for so many rows of so many tokens; grows, and is kept from call to call."""
        length = round_up(length)
        if slots > self._slots or length > self._length:
            slots, length = max(slots, self._slots), max(length, self._length)
            self._allocate(0, 0)  # the old cache goes before the new one comes
            self._allocate(slots, length)

    def put(self, layer: int, slots: slice, keys: Tensor, values: Tensor) -> None:
        """Writes the first tokens of some slots. (n, K, T, D) twice"""
        longest = keys.shape[2]
        self._lines[layer, 0, slots, :, :longest] = keys
        self._lines[layer, 1, slots, :, :longest] = values

    def show(self, slots: slice, lengths: Tensor) -> None:
        """Lets slots look at their first tokens and at nothing behind. (n,)"""
        is_behind = self._places[None, :] >= lengths[:, None]  # (n, length)
        self.mask[slots] = torch.where(is_behind, -torch.inf, 0.0)

    def move(self, targets: Tensor, sources: Tensor) -> None:
        """Slot targets[i] becomes what slot sources[i] is."""
        if len(targets):
            self._lines[:, :, targets] = self._lines[:, :, sources]
            self.mask[targets] = self.mask[sources]

    def take(self, slot: int, prompt: tuple[int, ...], logits: Tensor) -> Prefix:
        """A copy of what a slot holds of its prompt."""
        lines = self._lines[:, :, slot : slot + 1, :, : len(prompt)]
        return Prefix(prompt=prompt, lines=lines.clone(), logits=logits.clone())

    def repeat(self, prefix: Prefix, slots: slice) -> None:
        """Hands a prompt that was read before to more slots."""
        length = len(prefix.prompt)
        self._lines[:, :, slots, :, :length] = prefix.lines
        self.mask[slots] = torch.where(self._places >= length, -torch.inf, 0.0)

    def running(self, positions: Tensor, seen: int) -> RunningRows:
        """The first N rows, about to get one token each at these positions. (N,)"""
        return RunningRows(self, self._shape, positions, seen)


class RunningRows:
    """The running part of a cache during one step."""

    def __init__(self, cache: LeanCache, shape: Shape, positions: Tensor, seen: int) -> None:
        rows, kv = len(positions), shape.kv_heads
        seen = round_up(seen)
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
        block = self._blocks[layer]  # (2, S * K, length, D)
        width = key.shape[-1]
        new = torch.cat((key, value)).view(-1, width)  # (2 * N * K, D)
        block.view(-1, width).index_copy_(0, self._lines, new)
        return block[0, : self._rows, : self._seen], block[1, : self._rows, : self._seen]
