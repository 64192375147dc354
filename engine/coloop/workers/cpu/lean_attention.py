"""Attention by two products for each stretch of tokens, and its gradients.

Kept for the backward pass: query, key and value of each slab, and its shares unless they are many.

M tokens, H heads, K key-value heads, G = H / K, D head width; of a slab N runs of C tokens behind P
others, L = P + C.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from coloop.workers.cpu.slabs import Slab, in_row

STRETCH = 64
"""Tokens that attend at once: those behind a stretch are no work for it."""

SHARES_KEPT = 1 << 25  # most shares of a layer that are kept; 64 MiB in bfloat16

NARROW, NARROW_BACK = 64, 32
"""Shorter rows of shares are computed in float32, forward and backward: torch takes bfloat16 by
single numbers there (2,000 rows of 30: 383 and 248 against 92 and 39 µs)."""
FEW = 16
"""Shorter bfloat16 rows are computed by single operations over all of them (1,536 rows of 9: 255
and 110 µs in float32 against 54 and 29 µs)."""


def attend(
    turned: Tensor, value: Tensor, slabs: Sequence[Slab], *, heads: int, scale: float
) -> tuple[Tensor, list[Tensor]]:
    """What each token mixes of the values it sees, (M, H D), and what `attend_backward` needs.

    Args:
        turned: (M, H + K, D) query and key.
        value: (M, K, D), in the type of the products.
    """
    kv_heads, width = value.shape[1:]
    is_kept = _keeps_shares(slabs, heads)
    mixed: list[Tensor] = []
    kept: list[Tensor] = []
    keys: list[Tensor] = []
    values: list[Tensor] = []
    for _, slab, span in in_row(slabs):
        own = turned[span]
        query = _by_key(own[:, :heads], slab, kv_heads, value.dtype)
        key = _by_key(own[:, heads:], slab, kv_heads, value.dtype)
        held = _by_key(value[span], slab, kv_heads, value.dtype)
        keys.append(key)
        values.append(held)
        if slab.behind is not None:
            key = _behind(keys[slab.behind], key, slab, kv_heads)
            held = _behind(values[slab.behind], held, slab, kv_heads)
        parts = []
        kept += [query, key, held]
        for start, end in _stretches(slab.tokens):
            part = _shares(query, key, slab, start, end, scale)
            parts.append(part @ held[:, : slab.before + end])
            if is_kept:
                kept.append(part)
        mixed.append(_by_token(torch.cat(parts, 1) if len(parts) > 1 else parts[0], slab, kv_heads))
    return (torch.cat(mixed) if len(mixed) > 1 else mixed[0]).reshape(-1, heads * width), kept


def attend_backward(
    into: Tensor,
    kept: Iterable[Tensor],
    slabs: Sequence[Slab],
    *,
    heads: int,
    scale: float,
    into_turned: Tensor,
    into_value: Tensor,
) -> None:
    """Gradients of what `attend` was given: `into` (M, H D) written to `into_turned` (M, H + K, D)
    and `into_value` (M, K, D)."""
    kv_heads, width = into_value.shape[1:]
    group = heads // kv_heads
    saved, is_kept = iter(kept), _keeps_shares(slabs, heads)
    kept_of = []
    for slab in slabs:
        query, key, value = next(saved), next(saved), next(saved)
        shares = [next(saved) if is_kept else None for _ in _stretches(slab.tokens)]
        kept_of.append((query, key, value, shares))
    wide = into_turned.dtype
    later: dict[int, tuple[Tensor, Tensor]] = {}
    for number, slab, span in reversed(list(in_row(slabs))):
        query, key, value, shares = kept_of[number]
        own = _by_key(into[span].view(-1, heads, width), slab, kv_heads, into.dtype)
        of_query, of_key, of_value = _backward(own, shares, query, key, value, slab, scale)
        if slab.behind is not None:
            runs = slabs[slab.behind].runs
            _add_behind(later, runs, slab, of_key, of_value, wide)
            of_key, of_value = (part[:, slab.before :] for part in (of_key, of_value))
        elif number in later:
            of_key, of_value = (
                part + more for part, more in zip((of_key, of_value), later[number], strict=True)
            )
        sides = torch.unflatten(into_turned[span], 0, (slab.runs, slab.tokens))
        sides[:, :, :heads].view(slab.runs, slab.tokens, kv_heads, group, width).copy_(
            of_query.view(slab.runs, kv_heads, slab.tokens, group, width).transpose(1, 2)
        )
        sides[:, :, heads:] = torch.unflatten(of_key, 0, (-1, kv_heads)).transpose(1, 2)
        torch.unflatten(into_value[span], 0, (slab.runs, slab.tokens)).copy_(
            torch.unflatten(of_value, 0, (-1, kv_heads)).transpose(1, 2)
        )


def _stretches(tokens: int) -> list[tuple[int, int]]:
    """First token and end of each stretch; the last has what is left, up to half as much more."""
    count = max((tokens + STRETCH // 2) // STRETCH, 1)
    starts = [number * STRETCH for number in range(count)]
    return list(zip(starts, [*starts[1:], tokens], strict=True))


def _keeps_shares(slabs: Sequence[Slab], heads: int) -> bool:
    shares = sum(slab.runs * slab.tokens * (slab.before + slab.tokens) for slab in slabs)
    return heads * shares <= SHARES_KEPT


def _shares(query: Tensor, key: Tensor, slab: Slab, start: int, end: int, scale: float) -> Tensor:
    group, seen = query.shape[1] // slab.tokens, slab.before + end
    own, sees = query[:, start * group : end * group], key[:, :seen].transpose(1, 2)
    scores = _product(own, sees, scale)
    scores[:, :, slab.before + start :] += _ahead(end - start, group, scores.dtype)
    if slab.unseen is not None:
        unseen = slab.unseen[:, None].to(scores.dtype)
        scores.view(slab.runs, -1, seen)[:, :, : slab.before] += unseen
    return _softmax(scores)


@lru_cache(maxsize=64)
def _ahead(tokens: int, group: int, dtype: torch.dtype) -> Tensor:
    """(n G, n): -inf where a token lies ahead of one that looks, else 0."""
    ahead = torch.full((tokens, tokens), -torch.inf, dtype=dtype).triu_(1)
    return ahead.repeat_interleave(group, 0)


def _product(left: Tensor, right: Tensor, scale: float) -> Tensor:
    nothing = left.new_empty(())
    return torch.baddbmm(nothing, left, right, beta=0, alpha=scale)


def _is_narrow(shares: Tensor, limit: int) -> bool:
    return shares.dtype == torch.bfloat16 and shares.shape[-1] < limit


def _softmax(scores: Tensor) -> Tensor:
    if _is_narrow(scores, FEW):
        shares = scores.float()
        shares = shares.sub_(shares.amax(-1, keepdim=True)).exp_()
        return shares.div_(shares.sum(-1, keepdim=True)).to(scores.dtype)
    if _is_narrow(scores, NARROW):
        return torch.softmax(scores.float(), -1).to(scores.dtype)
    return torch.softmax(scores, -1)


def _softmax_backward(into: Tensor, shares: Tensor) -> Tensor:
    if _is_narrow(shares, FEW):
        wide = shares.float()
        scores = into * wide
        return torch.addcmul(scores, wide, scores.sum(-1, keepdim=True), value=-1).to(shares.dtype)
    if _is_narrow(shares, NARROW_BACK):
        return _softmax_backward(into.float(), shares.float()).to(shares.dtype)
    gradient: Tensor = torch.ops.aten._softmax_backward_data(into, shares, -1, shares.dtype)
    return gradient


def _backward(
    into: Tensor,
    shares: list[Tensor | None],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    slab: Slab,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value of a slab, those that it stands behind included."""
    group = query.shape[1] // slab.tokens
    into_key = into_value = torch.empty(0)
    into_query = []
    stretches = _stretches(slab.tokens)
    for (start, last), kept in zip(reversed(stretches), reversed(shares), strict=True):
        part = _shares(query, key, slab, start, last, scale) if kept is None else kept
        own, end = slice(start * group, last * group), slab.before + last
        of_value = part.transpose(1, 2) @ into[:, own]
        into_share = into[:, own] @ value[:, :end].transpose(1, 2)
        scores = _softmax_backward(into_share, part)
        into_query.append(_product(scores, key[:, :end], scale))
        of_key = _product(scores.transpose(1, 2), query[:, own], scale)
        if end == key.shape[1]:
            into_key, into_value = of_key, of_value
        else:
            into_key[:, :end] += of_key
            into_value[:, :end] += of_value
    into_query.reverse()
    return (
        torch.cat(into_query, 1) if len(into_query) > 1 else into_query[0],
        into_key,
        into_value,
    )


def _behind(before: Tensor, own: Tensor, slab: Slab, kv_heads: int) -> Tensor:
    """Keys or values (N K, C, D) behind those of the runs that they see: (N K, L, D)."""
    assert slab.sees is not None
    seen = torch.unflatten(before, 0, (-1, kv_heads)).index_select(0, slab.sees)
    return torch.cat([seen.flatten(0, 1), own], 1)


def _add_behind(
    later: dict[int, tuple[Tensor, Tensor]],
    runs: int,
    slab: Slab,
    into_key: Tensor,
    into_value: Tensor,
    wide: torch.dtype,
) -> None:
    """Gradients of the keys and values that a slab stands behind, summed over its runs. `runs`: of
    the slab before."""
    assert slab.behind is not None
    assert slab.sees is not None
    kv_heads, width = into_key.shape[0] // slab.runs, into_key.shape[-1]
    if slab.behind not in later:
        shape = (runs, kv_heads, slab.before, width)
        sums = torch.zeros(shape, dtype=wide), torch.zeros(shape, dtype=wide)
        later[slab.behind] = sums[0].flatten(0, 1), sums[1].flatten(0, 1)
    for total, part in zip(later[slab.behind], (into_key, into_value), strict=True):
        seen = torch.unflatten(part[:, : slab.before], 0, (-1, kv_heads)).to(wide)
        torch.unflatten(total, 0, (runs, kv_heads)).index_add_(0, slab.sees, seen)


def _by_key(heads: Tensor, slab: Slab, kv_heads: int, dtype: torch.dtype) -> Tensor:
    """Heads (N C, n, D), each key's own, to (N K, C n / K, D)."""
    count, width = heads.shape[1:]
    group = count // kv_heads
    by_key = heads.view(slab.runs, slab.tokens, kv_heads, group, width)
    turned = by_key.transpose(1, 2)  # (N, K, C, n / K, D)
    laid = turned.to(dtype, memory_format=torch.contiguous_format, copy=True)
    return laid.view(slab.runs * kv_heads, slab.tokens * group, width)


def _by_token(mixed: Tensor, slab: Slab, kv_heads: int) -> Tensor:
    width = mixed.shape[-1]
    by_key = mixed.view(slab.runs, kv_heads, slab.tokens, -1, width)
    return by_key.transpose(1, 2).reshape(slab.runs * slab.tokens, -1, width)


# Causal attention as two batched products, for bfloat16 on a CPU.
#
# The kernel that torch has there for the backward pass takes about four times as long (one core
# with AVX-512 BF16: 56 against 14 ms for 30 texts of 133 tokens and 4 heads of width 32, 145
# against 36 ms for 8 heads of width 64). All shares are held, so texts that make too many of them
# go to torch's kernel, and so does whatever is not plain causal attention. A model reaches it
# under the name `ATTENTION`.
#
# B texts, T tokens, H heads, K key-value heads, G = H / K, D head width.

ATTENTION = "coloop_products"
SHARES_AT_ONCE = 1 << 25  # most shares of a layer; 64 MiB in bfloat16


def attend_by_products(model: nn.Module, compute: torch.dtype | None, device: torch.device) -> None:
    """Let a model that computes in bfloat16 (`compute`) on a CPU attend by products."""
    first = next(model.parameters())
    is_meant = device.type == "cpu" and (compute or first.dtype) == torch.bfloat16
    kind = getattr(getattr(model, "config", None), "_attn_implementation", None)
    choose = getattr(model, "set_attn_implementation", None)
    if is_meant and kind == "sdpa" and callable(choose):
        choose(ATTENTION)


def attend_in_two_products(
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
        return sdpa_attention_forward(  # type: ignore[no-any-return]
            module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **rest
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


AttentionInterface.register(ATTENTION, attend_in_two_products)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
