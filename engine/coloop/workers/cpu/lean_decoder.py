"""A decoder for Llama-like models over a static cache of keys and values.

The mathematics of the Hugging Face modules in fewer calls. Prompts are padded on the right; what
lies behind a row's end is masked until the row has written there.

B sequences, T tokens, N running rows, M = B * T or N, L cached tokens, H heads, K key-value heads,
G = H / K, D head width, W model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coloop.workers.cpu.lean_cache import LeanCache
from coloop.workers.cpu.lean_weights import (
    WORTH_TOKENS,
    Layer,
    LeanWeights,
    Matrices,
    added,
    can_pack,
    packed,
    plain,
    product,
)
from coloop.workers.rollout.decoder import (
    READ_AT_ONCE,
    Lines,
    pad_right,
    score_padded,
    token_log_probs,
)

# The angles of rotary positions as unit complex numbers, by the Hugging Face model's frequencies.


class Rotary:
    """Position p turns pair i by p * frequency[i]."""

    def __init__(self, frequencies: Tensor, scale: float) -> None:
        """`frequencies` (D / 2,) float32; `scale` stretches query and key (yarn)."""
        self._frequencies = frequencies
        self._scale = scale
        self._table = self._compute(256)

    @classmethod
    def of(cls, module: Any, device: torch.device) -> Rotary:
        frequencies = module.inv_freq
        assert isinstance(frequencies, Tensor)
        return cls(
            frequencies.detach().float().to(device),
            float(getattr(module, "attention_scaling", 1.0)),
        )

    def first(self, positions: int) -> Tensor:
        """Angles of positions 0 .. n-1, (n, D / 2) complex64."""
        if positions > len(self._table):
            self._table = self._compute(max(positions, 2 * len(self._table)))
        return self._table[:positions]

    def _compute(self, positions: int) -> Tensor:
        places = torch.arange(positions, device=self._frequencies.device, dtype=torch.float32)
        angles = places[:, None] * self._frequencies[None, :]
        return torch.complex(angles.cos() * self._scale, angles.sin() * self._scale)


LOOKS_AT_ONCE = 1 << 25
"""Most pairs of a token read and one looked at, over a part of texts that are read on."""

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, query (B, H, T, D), key (B, K, T, D), value (B, K, T, D)) -> (B, H, T, D)"""


class LeanDecoder:
    """Implements `Decoder`."""

    joins_running = True

    def __init__(self, weights: LeanWeights, rotary: Rotary) -> None:
        self.max_length: int | None = weights.shape.max_positions
        self.bytes_per_token = weights.shape.cached_numbers * weights.embedding.element_size()
        self._weights = weights
        self._plain = self._matrices = plain(weights)
        self._packed: Matrices | None = None
        self._shape = weights.shape
        self._rotary = rotary
        self._angles = rotary.first(0)
        self._device = weights.embedding.device
        self._dtype = weights.embedding.dtype
        self._cache = LeanCache(weights.shape, self._device, self._dtype)
        self._latest: Lines | None = None  # rows of one prompt often come in at different times
        self._scale = self._shape.head_width**-0.5
        self._is_grouped = self._shape.heads != self._shape.kv_heads
        self._epsilon = torch.tensor(self._shape.epsilon, device=self._device)
        self._is_on_cpu = self._device.type == "cpu"
        self._is_half = self._is_on_cpu and self._dtype.itemsize == 2

    def reserve(self, rows: int, length: int, running: int = 0) -> None:
        if not running:
            self._latest = None
        if not rows:
            self._forget_packed()
        self._cache.reserve(rows, length, running)
        if length != len(self._angles):  # the table is replaced as others ask for a longer one
            self._angles = self._rotary.first(length)

    def expect(self, tokens: int) -> None:
        is_worth = tokens >= WORTH_TOKENS and can_pack(self._weights)
        if is_worth and self._packed is None:
            self._packed = packed(self._weights)
        # Not whatever there is: what is written depends on what is asked alone.
        self._matrices = self._packed if is_worth and self._packed else self._plain

    def _forget_packed(self) -> None:
        self._packed, self._matrices = None, self._plain

    def keep(self, rows: int, targets: Tensor, sources: Tensor) -> None:
        del rows
        self._cache.move(targets, sources)

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        self._latest = None
        self._forget_packed()
        self._weights.load(weights)

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        return self._weights.named()

    def held(self) -> Iterator[Tensor]:
        return self._weights.held()

    # Whole sequences

    def admit(self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> Tensor:
        logits: list[Tensor] = []
        prompts, counts = list(prompts), list(counts)
        if self._latest is not None and self._latest.token_ids == tuple(prompts[0]):
            rows = counts.pop(0)
            self._cache.repeat(self._latest, slice(slot, slot + rows))
            assert self._latest.logits is not None
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
                lines = self._cache.take(slot - 1, len(last))
                self._latest = replace(lines, token_ids=tuple(last), logits=logits[-1][-1].clone())
        return torch.cat(logits)

    def _admit_chunk(
        self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]
    ) -> Tensor:
        """Read prompts into slots, prompt i into the next counts[i]; logits (n, V)."""
        tokens, lengths = pad_right(prompts, self._device)
        repeats = torch.tensor(counts, device=self._device)
        rows = sum(counts)
        slots = slice(slot, slot + rows)
        # With the rows said beforehand a GPU need not be waited for.
        prompt_of = torch.repeat_interleave(repeats, output_size=rows)

        def handed(parts: Tensor) -> Tensor:
            return parts.index_select(0, prompt_of)

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            self._cache.put(layer, slots, *map(handed, (key, value)))
            return self._look_back(layer, query, key, value)

        angles = self._first_angles(tokens)
        hidden = self._read(tokens, angles, attend, self._matrices)  # (B, T, W)
        self._cache.show(slots, handed(lengths))
        last = hidden[torch.arange(len(lengths), device=self._device), lengths - 1]
        logits = self._logits(last, self._matrices.head)
        return handed(logits)

    def take(self, slot: int, length: int) -> Lines | None:
        return self._cache.take(slot, length)

    def extend(
        self,
        slot: int,
        lines: Sequence[Lines],
        texts: Sequence[Sequence[int]],
        counts: Sequence[int],
    ) -> None:
        leads = []
        for known, count in zip(lines, counts, strict=True):
            self._cache.repeat(known, slice(slot, slot + 1))
            leads.append(slot)
            slot += count
        new = [text[known.length : -1] for text, known in zip(texts, lines, strict=True)]
        longest = max(map(len, texts)) - 1  # tokens that a text looks at
        size = max(LOOKS_AT_ONCE // (len(texts) * max(longest, 1)), 1)
        for at in range(0, max(map(len, new)), size):
            rows = [row for row in range(len(new)) if len(new[row]) > at]
            parts = [new[row][at : at + size] for row in rows]
            firsts = [lines[row].length + at for row in rows]
            self._read_on([leads[row] for row in rows], firsts, parts)
        for lead, count in zip(leads, counts, strict=True):
            if count > 1:
                others = torch.arange(lead + 1, lead + count, device=self._device)
                self._cache.move(others, torch.full_like(others, lead))

    def _read_on(
        self, slots: Sequence[int], firsts: Sequence[int], parts: Sequence[Sequence[int]]
    ) -> None:
        """Reads tokens that stand from position firsts[i] on into slot slots[i]."""
        tokens, lengths = pad_right(parts, self._device)
        places = torch.arange(tokens.shape[1], device=self._device)
        positions = torch.tensor(firsts, device=self._device)[:, None] + places  # (B, T)
        is_real = places < lengths[:, None]
        angles = self._rotary.first(max(firsts) + tokens.shape[1])
        seen = max(first + len(part) for first, part in zip(firsts, parts, strict=True))
        chosen = torch.tensor(slots, device=self._device)
        rows = self._cache.reading(chosen, positions, is_real, seen)

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = rows.append(layer, key, value)
            return F.scaled_dot_product_attention(
                query, keys, values, attn_mask=rows.mask, enable_gqa=self._is_grouped
            )

        self._read(tokens, angles[positions], attend, self._matrices)
        self._cache.show(chosen, positions[:, 0] + lengths)

    def score(self, sequences: Sequence[Sequence[int]], temperature: float) -> list[Tensor]:
        logits_of = partial(self._logits, head=self._plain.head)

        def scored(tokens: Tensor, lengths: Tensor) -> Tensor:
            del lengths
            hidden = self._read(tokens, self._first_angles(tokens), self._look_back, self._plain)
            return token_log_probs(hidden, tokens, logits_of, temperature)

        return score_padded(sequences, self._device, scored)

    def _first_angles(self, tokens: Tensor) -> Tensor:
        """Angles of tokens (B, T) that begin their texts, (T, D / 2)."""
        return self._rotary.first(tokens.shape[1])

    def _look_back(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attention of whole texts: each token looks at itself and at those before it."""
        del layer
        return F.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=self._is_grouped
        )

    def _read(self, tokens: Tensor, angles: Tensor, attend: Attend, matrices: Matrices) -> Tensor:
        """Hidden states before the last norm. (B, T), (B or none, T, D / 2) -> (B, T, W)"""
        s = self._shape
        rows, longest = tokens.shape
        angles = angles.unsqueeze(-2)  # of all heads alike
        x = F.embedding(tokens, self._weights.embedding).view(rows * longest, s.width)
        for index, layer in enumerate(matrices.layers):
            turned, value = self._project(x, layer, (rows, longest), angles)
            turned = turned.transpose(1, 2)  # (B, H + K, T, D)
            query, key = turned.split_with_sizes((s.heads, s.kv_heads), dim=1)
            mixed = attend(index, query, key, value.transpose(1, 2))
            x = self._finish(x, mixed.transpose(1, 2).reshape(rows * longest, -1), layer)
        return x.view(rows, longest, s.width)

    # One token more

    def step(self, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        s = self._shape
        rows = len(tokens)
        running = self._cache.running(positions, longest + 1)
        angles = self._angles.index_select(0, positions)[:, None, :]
        x = F.embedding(tokens, self._weights.embedding)  # (N, W)
        for index, layer in enumerate(self._matrices.layers):
            turned, value = self._project(x, layer, (rows,), angles)
            query, key = turned.split_with_sizes((s.heads, s.kv_heads), dim=1)
            keys, values = running.append(index, key, value)
            mixed = self._attend(
                query.reshape(rows * s.kv_heads, -1, s.head_width), keys, values, running.mask
            )
            x = self._finish(x, mixed.view(rows, -1), layer)
        return self._logits(x, self._matrices.head)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """query (N * K, G, D), keys and values (N * K, L, D), mask (N * K, 1, L)"""
        if self._is_half:  # a mask that is added by the product is copied to all heads first
            scores = torch.bmm(query, keys.transpose(1, 2))
            scores = torch.add(mask, scores, alpha=self._scale)  # float32, as the mask
        else:
            scores = torch.baddbmm(mask, query, keys.transpose(1, 2), alpha=self._scale)
        shares = torch.softmax(scores, dim=-1, dtype=torch.float32).to(values.dtype)
        return torch.bmm(shares, values)  # (N * K, G, D)

    # Parts of a block

    def _project(
        self, x: Tensor, layer: Layer, leading: tuple[int, ...], angles: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Turned query and key heads (..., H + K, D) and values (..., K, D) of x (M, W)."""
        s = self._shape
        joined = product(self._norm(x, layer.norm_in), layer.qkv, layer.qkv_bias)
        joined = joined.view(*leading, s.heads + 2 * s.kv_heads, s.head_width)
        turning, value = joined.split_with_sizes((s.heads + s.kv_heads, s.kv_heads), dim=-2)
        wide = turning.float() if layer.qk_norm is None else self._wide_norm(turning, layer.qk_norm)
        pairs = wide.view(*wide.shape[:-1], s.head_width // 2, 2)
        turned = torch.view_as_real(torch.view_as_complex(pairs) * angles).flatten(-2)
        return turned.to(self._dtype), value

    def _finish(self, x: Tensor, mixed: Tensor, layer: Layer) -> Tensor:
        """What follows attention. x (M, W), mixed (M, H D) -> (M, W)"""
        x = added(x, mixed, layer.output)
        if layer.output_bias is not None:
            x = x + layer.output_bias
        joined = product(self._norm(x, layer.norm_out), layer.gate_up)
        gate, up = joined.chunk(2, dim=-1)
        return added(x, F.silu(gate).mul_(up), layer.down)

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Root mean square norm over the last axis; the weight may differ from head to head."""
        if self._is_on_cpu:
            return self._wide_norm(x, weight).to(x.dtype)
        return F.rms_norm(x, (x.shape[-1],), None, self._shape.epsilon) * weight

    def _wide_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        if not self._is_on_cpu:
            return self._norm(x, weight).float()
        wide = x.float()  # the fused kernel of the CPU is slower than what follows
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        scale = torch.addcmul(self._epsilon, length, length, value=1 / x.shape[-1]).rsqrt_()
        scaled = wide * scale if x.dtype == torch.float32 else wide.mul_(scale)
        return scaled.mul_(weight)

    def _logits(self, x: Tensor, head: Tensor) -> Tensor:
        """(M, W) -> (M, V)"""
        return product(self._norm(x, self._weights.norm), head)
