"""Causal attention as two batched products, for bfloat16 on a CPU.

The kernel that torch has there for the backward pass takes about four times as long (one core with
AVX-512 BF16: 56 against 14 ms for 30 texts of 133 tokens and 4 heads of width 32, 145 against 36 ms
for 8 heads of width 64). All shares are held, so texts that make too many of them go to torch's
kernel, and so does whatever is not plain causal attention. A model reaches it under the name
`ATTENTION`.

B texts, T tokens, H heads, K key-value heads, G = H / K, D head width.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "coloop_products"
SHARES_AT_ONCE = 1 << 25
"""Most shares of a layer; 64 MiB in bfloat16."""


def attend_by_products(model: nn.Module, compute: torch.dtype | None, device: torch.device) -> None:
    """Let a model that computes in bfloat16 on a CPU attend by products; others stay as they are.

    Args:
        compute: type of the matrix products; None: that of the weights.
        device: on which it computes.
    """
    first = next(model.parameters())
    is_meant = device.type == "cpu" and (compute or first.dtype) == torch.bfloat16
    kind = getattr(getattr(model, "config", None), "_attn_implementation", None)
    choose = getattr(model, "set_attn_implementation", None)
    if is_meant and kind == "sdpa" and callable(choose):
        choose(ATTENTION)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    **rest: Any,
) -> tuple[Tensor, None]:
    """Query (B, H, T, D), key and value (B, K, T, D) -> (B, T, H, D)."""
    rows, heads, tokens, _ = query.shape
    is_plain = (
        attention_mask is None
        and dropout == 0.0
        and key.shape[2] == tokens
        and getattr(module, "is_causal", True)
        and rest.get("is_causal") is not False
        and value.dtype == torch.bfloat16  # autocast casts query and key only in torch's kernel
        and rows * heads * tokens * tokens <= SHARES_AT_ONCE
    )
    if not is_plain:
        return sdpa_attention_forward(
            module,
            query,
            key,
            value,
            attention_mask,
            scaling=scaling,
            dropout=dropout,
            **rest,
        )
    with torch.autocast("cpu", enabled=False):
        return _by_products(query.to(value.dtype), key.to(value.dtype), value, scaling), None


def _by_products(query: Tensor, key: Tensor, value: Tensor, scaling: float | None) -> Tensor:
    rows, heads, tokens, width = query.shape
    kv_heads = key.shape[1]
    grouped = query.reshape(rows * kv_heads, -1, width)  # (B * K, G * T, D)
    keys = key.reshape(rows * kv_heads, tokens, width)
    values = value.reshape(rows * kv_heads, tokens, width)
    ahead = torch.full((tokens, tokens), -torch.inf, dtype=query.dtype).triu_(1)
    mask = ahead.repeat(heads // kv_heads, 1).expand(rows * kv_heads, -1, -1)
    scale = width**-0.5 if scaling is None else scaling
    scores = torch.baddbmm(mask, grouped, keys.transpose(1, 2), alpha=scale)
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values)  # (B * K, G * T, D)
    return mixed.view(rows, heads, tokens, width).transpose(1, 2).contiguous()


AttentionInterface.register(ATTENTION, attend)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
