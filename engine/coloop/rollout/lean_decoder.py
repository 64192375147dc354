"""A decoder for Llama-like models over a static cache of keys and values.

Same mathematics as the Hugging Face modules of these families (the tests compare both), in far
fewer calls: joined products, one rotation for query and key, additions folded into products, and
attention of one new token as two batched products over the cache.

Prompts are read padded on the right: what lies behind a row's end is masked until the row itself
has written there.

B sequences, T tokens, N running rows, M = B * T or N, L cached tokens, H heads, K key-value heads,
G = H / K, D head width, W model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from coloop.rollout.lean_cache import LeanCache, Prefix
from coloop.rollout.lean_weights import Layer, LeanWeights
from coloop.rollout.padding import pad_right, similar_lengths
from coloop.rollout.rotary import Rotary
from coloop.rollout.scoring import token_log_probs

READ_AT_ONCE = 8192
"""Most tokens, padding included, read in one pass over whole sequences."""

Fill = Callable[[int, Tensor, Tensor], None]
"""Takes the keys and values (B, K, T, D) of a layer."""


class LeanDecoder:
    """Implements `Decoder`."""

    joins_running = True

    def __init__(self, weights: LeanWeights, rotary: Rotary) -> None:
        self.max_length: int | None = weights.shape.max_positions
        self.bytes_per_token = weights.shape.cached_numbers * weights.embedding.element_size()
        self._weights = weights
        self._shape = weights.shape
        self._rotary = rotary
        self._device = weights.embedding.device
        self._dtype = weights.embedding.dtype
        self._cache = LeanCache(weights.shape, self._device, self._dtype)
        self._latest: Prefix | None = None  # rows of one prompt often come in at different times
        self._scale = self._shape.head_width**-0.5
        self._epsilon = torch.tensor(self._shape.epsilon, device=self._device)
        self._is_plain = self._device.type == "cpu" and self._dtype == torch.float32

    def reserve(self, rows: int, length: int) -> None:
        self._latest = None
        self._cache.reserve(rows, length)

    def keep(self, rows: int, targets: Tensor, sources: Tensor) -> None:
        del rows
        self._cache.move(targets, sources)

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        self._latest = None
        self._weights.load(weights)

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        return self._weights.named()

    # Whole sequences

    def admit(self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> Tensor:
        logits: list[Tensor] = []
        prompts, counts = list(prompts), list(counts)
        if self._latest is not None and self._latest.prompt == tuple(prompts[0]):
            rows = counts.pop(0)
            self._cache.repeat(self._latest, slice(slot, slot + rows))
            logits.append(self._latest.logits.expand(rows, -1))
            slot += rows
            del prompts[0]
        while prompts:
            size = max(READ_AT_ONCE // len(prompts[0]), 1)
            logits.append(self._admit_chunk(slot, prompts[:size], counts[:size]))
            slot += sum(counts[:size])
            last = prompts[-1]
            del prompts[:size], counts[:size]
            if not prompts:
                self._latest = self._cache.take(slot - 1, tuple(last), logits[-1][-1])
        return torch.cat(logits)

    def _admit_chunk(
        self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]
    ) -> Tensor:
        """Reads prompts and hands prompt i to the next counts[i] slots; the logits of each, (n,
        V)."""
        tokens, lengths = pad_right(prompts, self._device)
        repeats = torch.tensor(counts, device=self._device)
        slots = slice(slot, slot + sum(counts))

        def fill(layer: int, keys: Tensor, values: Tensor) -> None:  # (B, K, T, D)
            repeated = (part.repeat_interleave(repeats, dim=0) for part in (keys, values))
            self._cache.put(layer, slots, *repeated)

        hidden = self._read(tokens, fill)  # (B, T, W)
        self._cache.show(slots, lengths.repeat_interleave(repeats))
        last = hidden[torch.arange(len(lengths), device=self._device), lengths - 1]
        return self._logits(last).repeat_interleave(repeats, dim=0)

    def score(self, sequences: Sequence[Sequence[int]], temperature: float) -> list[Tensor]:
        scores: list[Tensor] = [torch.zeros(0)] * len(sequences)
        for places, chunk in similar_lengths(sequences, READ_AT_ONCE):
            tokens, lengths = pad_right(chunk, self._device)
            if not tokens.shape[1]:
                continue
            hidden = self._read(tokens, None)
            found = token_log_probs(hidden, tokens, self._logits, temperature)  # (B, T)
            for row, (place, length) in enumerate(zip(places, lengths.tolist(), strict=True)):
                scores[place] = found[row, :length]
        return scores

    def _read(self, tokens: Tensor, fill: Fill | None) -> Tensor:
        """The hidden states of whole sequences before the last norm. (B, T) -> (B, T, W)"""
        s = self._shape
        rows, longest = tokens.shape
        angles = self._rotary.first(longest)[:, None, :]  # (T, 1, D / 2)
        x = F.embedding(tokens, self._weights.embedding).view(rows * longest, s.width)
        for index, layer in enumerate(self._weights.layers):
            turned, value = self._project(x, layer, (rows, longest), angles)
            turned = turned.transpose(1, 2)  # (B, H + K, T, D)
            query, key = turned.split_with_sizes((s.heads, s.kv_heads), dim=1)
            value = value.transpose(1, 2)
            if fill is not None:
                fill(index, key, value)
            mixed = F.scaled_dot_product_attention(
                query, key, value, is_causal=True, enable_gqa=s.heads != s.kv_heads
            )
            x = self._finish(x, mixed.transpose(1, 2).reshape(rows * longest, -1), layer)
        return x.view(rows, longest, s.width)

    # One token more

    def step(self, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        s = self._shape
        rows = len(tokens)
        running = self._cache.running(positions, longest + 1)
        angles = self._rotary.first(longest + 1).index_select(0, positions)[:, None, :]
        x = F.embedding(tokens, self._weights.embedding)  # (N, W)
        for index, layer in enumerate(self._weights.layers):
            turned, value = self._project(x, layer, (rows,), angles)
            query, key = turned.split_with_sizes((s.heads, s.kv_heads), dim=1)
            keys, values = running.append(index, key, value)
            mixed = self._attend(
                query.reshape(rows * s.kv_heads, -1, s.head_width), keys, values, running.mask
            )
            x = self._finish(x, mixed.view(rows, -1), layer)
        return self._logits(x)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """query (N * K, G, D), keys and values (N * K, L, D), mask (N * K, 1, L)"""
        scores = torch.baddbmm(mask, query, keys.transpose(1, 2), alpha=self._scale)
        shares = torch.softmax(scores, dim=-1, dtype=torch.float32).to(values.dtype)
        return torch.bmm(shares, values)  # (N * K, G, D)

    # Parts of a block

    def _project(
        self, x: Tensor, layer: Layer, leading: tuple[int, ...], angles: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Turned query and key heads (..., H + K, D) and values (..., K, D) of x (M, W)."""
        s = self._shape
        joined = F.linear(self._norm(x, layer.norm_in), layer.qkv, layer.qkv_bias)
        joined = joined.view(*leading, s.heads + 2 * s.kv_heads, s.head_width)
        turning, value = joined.split_with_sizes((s.heads + s.kv_heads, s.kv_heads), dim=-2)
        if layer.qk_norm is not None:
            turning = self._norm(turning, layer.qk_norm)
        pairs = turning.float().view(*turning.shape[:-1], s.head_width // 2, 2)
        turned = torch.view_as_real(torch.view_as_complex(pairs) * angles).flatten(-2)
        return turned.to(self._dtype), value

    def _finish(self, x: Tensor, mixed: Tensor, layer: Layer) -> Tensor:
        """What follows attention. x (M, W), mixed (M, H D) -> (M, W)"""
        x = torch.addmm(x, mixed, layer.output.t())
        if layer.output_bias is not None:
            x = x + layer.output_bias
        joined = F.linear(self._norm(x, layer.norm_out), layer.gate_up)
        gate, up = joined.chunk(2, dim=-1)
        return torch.addmm(x, F.silu(gate).mul_(up), layer.down.t())

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Root mean square norm over the last axis; the weight may differ from head to head."""
        width = x.shape[-1]
        if self._is_plain:  # the fused kernel of the CPU is slower than these four
            length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
            scale = torch.addcmul(self._epsilon, length, length, value=1 / width).rsqrt_()
            return (x * scale).mul_(weight)
        return F.rms_norm(x, (width,), None, self._shape.epsilon) * weight

    def _logits(self, x: Tensor) -> Tensor:
        """(M, W) -> (M, V) float32"""
        return F.linear(self._norm(x, self._weights.norm), self._weights.head).float()
