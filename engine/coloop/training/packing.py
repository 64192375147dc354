"""Attention of sequences that lie end to end in one row: each token sees those before it in its
own sequence.

    row (1, S):  a a a b b b b c c      starts (N+1,): 0 3 7 9

On a GPU torch's kernel for sequences of variable length; elsewhere, or where that cannot (dropout,
float32), one sequence after another. Nothing of size S x S is made. A model reaches it under the
name `ATTENTION`; without `starts` it is torch's usual attention.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "coloop_packed"


def inputs_of(ids: Tensor, lengths: list[int]) -> dict[str, Any]:
    """What a model reads of sequences (S,) laid end to end.

    The mask of four dimensions is not looked at: it tells the model to make none.
    """
    positions = torch.cat([torch.arange(length) for length in lengths])
    starts = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    return {
        "input_ids": ids[None, :],
        "position_ids": positions[None, :].to(ids.device),
        "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool, device=ids.device),
        "cu_seq_lens_q": starts.to(ids.device),
        "cu_seq_lens_k": starts.to(ids.device),
        "max_length_q": max(lengths),
        "max_length_k": max(lengths),
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
    **rest: Any,
) -> tuple[Tensor, None]:
    """Query (1, H, S, D), key and value (1, H or fewer, S, D) -> (1, S, H, D)."""
    if cu_seq_lens_q is None:
        return sdpa_attention_forward(
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
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and dropout == 0.0:
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
    starts = cu_seq_lens_q.tolist()
    parts = []
    for start, end in pairwise(starts):
        mask = _window(end - start, sliding_window, query.device)
        parts.append(
            scaled_dot_product_attention(
                query[:, :, start:end],
                key[:, :, start:end],
                value[:, :, start:end],
                attn_mask=mask,
                dropout_p=dropout,
                is_causal=mask is None,
                scale=scaling,
                enable_gqa=query.shape[1] != key.shape[1],
            )
        )
    return torch.cat(parts, dim=2).transpose(1, 2).contiguous(), None


def _window(length: int, window: int | None, device: torch.device) -> Tensor | None:
    """(length, length), true where a token sees another; None: all before it."""
    if window is None or window >= length:
        return None
    places = torch.arange(length, device=device)
    distance = places[:, None] - places[None, :]
    return (distance >= 0) & (distance < window)


AttentionInterface.register(ATTENTION, attend)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
