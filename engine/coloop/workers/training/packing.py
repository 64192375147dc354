"""Attention of sequences end to end in one row: each token sees its own sequence before it.

    row (1, S):  a a a b b b b c c      starts (N+1,): 0 3 7 9

On a GPU torch's kernel for variable length. Elsewhere (float32, dropout, wide heads, an old GPU)
sequences are padded by powers of two. Nothing of size S x S is made. A model reaches it under the
name `ATTENTION`; without `starts` it is torch's usual attention.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "coloop_packed"
HALVES = (torch.bfloat16, torch.float16)  # types that the kernel of variable length computes in
KERNEL_CAPABILITY = (8, 0)  # the oldest GPUs that have it: Ampere
KERNEL_HEAD_WIDTH = 256  # the widest head that it takes


class Lengths:
    """Lengths of sequences laid end to end, and batches of about one length, for all layers."""

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        self._lengths, self._device = lengths, device

    @cached_property
    def batches(self) -> list[Tensor]:
        """Places (n, L) of some sequences' tokens; a shorter one's last place is repeated."""
        starts = torch.tensor([0, *self._lengths]).cumsum(0)
        by_size: dict[int, list[int]] = {}
        for number, length in enumerate(self._lengths):
            by_size.setdefault(max(length - 1, 0).bit_length(), []).append(number)
        return [
            (
                starts[numbers][:, None]
                + torch.arange(max(self._lengths[number] for number in numbers)).clamp(
                    max=torch.tensor([self._lengths[number] - 1 for number in numbers])[:, None]
                )
            ).to(self._device)
            for _, numbers in sorted(by_size.items())
        ]

    @cached_property
    def back(self) -> Tensor:
        """Where each token (S,) stands among all places of the batches, one after another."""
        places = torch.cat([batch.flatten() for batch in self.batches]).cpu()
        back = torch.empty(sum(self._lengths), dtype=torch.int64)
        # Of a place that is repeated the first counts: it is the token's own.
        order = torch.arange(len(places) - 1, -1, -1)
        back[places[order]] = order
        return back.to(self._device)


def inputs_of(ids: Tensor, lengths: list[int]) -> dict[str, Any]:
    """What a model reads of sequences (S,) laid end to end; the mask tells it to make none."""
    starts = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    positions = torch.arange(len(ids)) - starts[:-1].repeat_interleave(torch.tensor(lengths))
    return {
        "input_ids": ids[None, :],
        "position_ids": positions[None, :].to(ids.device),
        "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool, device=ids.device),
        "cu_seq_lens_q": starts.to(ids.device),
        "cu_seq_lens_k": starts.to(ids.device),
        "max_length_q": max(lengths),
        "max_length_k": max(lengths),
        "texts": Lengths(lengths, ids.device),
    }


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int = 0,
    texts: Lengths | None = None,
    **rest: Any,
) -> tuple[Tensor, None]:
    """Query (1, H, S, D), key and value (1, H or fewer, S, D) -> (1, S, H, D)."""
    if cu_seq_lens_q is None:
        return sdpa_attention_forward(  # type: ignore[no-any-return]
            module,
            query,
            key,
            value,
            attention_mask,
            scaling=scaling,
            dropout=dropout,
            sliding_window=sliding_window,
            **rest,
        )
    # Under autocast the rotation leaves query and key in float32, unlike the value.
    query, key = query.to(value.dtype), key.to(value.dtype)
    if _has_kernel(query, value, dropout):
        from torch.nn.attention.varlen import varlen_attn

        window = -1 if sliding_window is None else sliding_window - 1
        mixed = varlen_attn(
            query[0].transpose(0, 1),  # (S, H, D)
            key[0].transpose(0, 1),
            value[0].transpose(0, 1),
            cu_seq_lens_q,
            cu_seq_lens_q,
            max_length_q,
            max_length_q,
            scale=scaling,
            window_size=(window, 0),
            enable_gqa=query.shape[1] != key.shape[1],
        )
        assert isinstance(mixed, Tensor)
        return mixed[None], None
    if texts is None:
        starts = cu_seq_lens_q.tolist()
        texts = Lengths([end - start for start, end in pairwise(starts)], query.device)
    parts = []
    for places in texts.batches:
        mixed, _ = sdpa_attention_forward(
            module,
            _laid_out(query, places),
            _laid_out(key, places),
            _laid_out(value, places),
            _window(places.shape[1], sliding_window, query.device),
            scaling=scaling,
            dropout=dropout,
            is_causal=True,
        )
        parts.append(mixed.flatten(0, 1))  # (n * L, H, D)
    return torch.cat(parts).index_select(0, texts.back)[None], None


def _has_kernel(query: Tensor, value: Tensor, dropout: float) -> bool:
    return (
        query.is_cuda
        and value.dtype in HALVES
        and dropout == 0.0
        and query.shape[-1] <= KERNEL_HEAD_WIDTH
        and torch.cuda.get_device_capability(query.device) >= KERNEL_CAPABILITY
    )


def _laid_out(states: Tensor, places: Tensor) -> Tensor:
    """States (1, H, S, D) of the tokens at places (n, L), (n, H, L, D)."""
    chosen = states[0].index_select(1, places.flatten())  # (H, n * L, D)
    return chosen.view(-1, *places.shape, states.shape[-1]).transpose(0, 1)


def _window(length: int, window: int | None, device: torch.device) -> Tensor | None:
    """(length, length), true where a token sees another; None: all before it."""
    if window is None or window >= length:
        return None
    places = torch.arange(length, device=device)
    distance = places[:, None] - places[None, :]
    return (distance >= 0) & (distance < window)


AttentionInterface.register(ATTENTION, attend)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
