"""A block of a Llama-like decoder as one function with a gradient of its own.

The same mathematics as the modules of Hugging Face, in far fewer passes over memory than a graph of
single operations takes: query, key and value are one product, norms and their gradients are a few
operations each, what is cheap to compute again (normed states, the inner product of the gate) is
not kept, and attention is two products for each stretch of tokens, which see only what lies before
their end. The two halves of a rotary pair lie side by side, so that a rotation is one complex
product; query and key are turned the same way, which leaves their dot products as they were.

    x ─ norm ─ query, key, value ─ (norm of heads) ─ rotation ─ attention ─ output ─(+)─┐
    └───────────────────────────────────────────────────────────────────────────────────┤
    ┌───────────────────────────────────────────────────────────────────────────────────┘
    └─ norm ─ gate, up ─ silu(gate) · up ─ down ─(+)─ y

Products are computed in the type that is asked for, all else in float32 at least.

B rows, T tokens, M = B T, W width, F inner width, H heads, K key-value heads, G = H / K, D head
width.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import silu

STRETCH = 64
"""Tokens that attend at once: those behind a stretch are no work for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShape:
    """Sizes of a block."""

    heads: int
    kv_heads: int
    head_width: int
    epsilon: float
    scale: float
    """Of the dot products of query and key."""

    @property
    def group(self) -> int:
        """G, heads that share a key."""
        return self.heads // self.kv_heads


class BlockWeights(NamedTuple):
    """A block's weights, as Hugging Face has them; matrices are (out, in)."""

    norm_in: Tensor
    """(W,)"""
    query: Tensor
    """(H D, W)"""
    key: Tensor
    """(K D, W)"""
    value: Tensor
    """(K D, W)"""
    output: Tensor
    """(W, H D)"""
    norm_out: Tensor
    """(W,)"""
    gate: Tensor
    """(F, W)"""
    up: Tensor
    """(F, W)"""
    down: Tensor
    """(W, F)"""
    query_norm: Tensor | None
    """(D,)"""
    key_norm: Tensor | None
    """(D,)"""
    query_bias: Tensor | None
    """(H D,)"""
    key_bias: Tensor | None
    """(K D,)"""
    value_bias: Tensor | None
    """(K D,)"""
    output_bias: Tensor | None
    """(W,)"""


class LeanBlock(torch.autograd.Function):
    """Call with `run_block`."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        turns: Tensor,
        compute: torch.dtype,
        shape: BlockShape,
        *given: Tensor | None,
    ) -> Tensor:
        weights = BlockWeights(*given)  # type: ignore[arg-type]
        rows, tokens, width = hidden.shape
        x = hidden.reshape(-1, width)
        wide = torch.promote_types(x.dtype, torch.float32)

        normed, scale_in = _normed(x, weights.norm_in, shape.epsilon, compute, wide)
        joined = _joined(weights, shape, compute)  # ((H + 2K) D, W)
        flat = normed @ joined.t()
        bias = _joined_bias(weights, shape, compute)
        if bias is not None:
            flat += bias
        by_head = flat.view(rows, tokens, -1, shape.head_width)
        turning = by_head[:, :, : shape.heads + shape.kv_heads].to(wide)
        head_norm = _head_norm(weights, shape, wide)
        scale_heads = None
        straight = turning
        if head_norm is not None:
            straight, scale_heads = _normed(turning, head_norm, shape.epsilon, wide, wide)
        query, key = _turned(straight, turns, shape, compute)
        value = by_head[:, :, shape.heads + shape.kv_heads :].transpose(1, 2)
        value = value.reshape(-1, tokens, shape.head_width)  # (B K, T, D)
        shares, mixed = _attend(query, key, value, shape.group)
        mixed = _by_token(mixed, rows, shape)  # (M, H D)
        output = weights.output.to(compute)
        between = _added(x, mixed, output)
        if weights.output_bias is not None:
            between += weights.output_bias

        normed, scale_out = _normed(between, weights.norm_out, shape.epsilon, compute, wide)
        gate_in, up_in, down = (
            weight.to(compute) for weight in (weights.gate, weights.up, weights.down)
        )
        gate, up = normed @ gate_in.t(), normed @ up_in.t()  # (M, F)
        y = _added(between, silu(gate).mul_(up), down)

        ctx.shape, ctx.compute, ctx.size = shape, compute, hidden.shape
        ctx.given = [weight is not None for weight in given]
        ctx.stretches = len(shares)
        ctx.save_for_backward(
            *(weight for weight in given if weight is not None),
            *(x, turns, scale_in, joined, turning, scale_heads, query, key, value),
            *(mixed, output, between, scale_out, gate_in, up_in, down, gate, up, *shares),
        )
        # A view would have to be told from its base where a hook hangs on it.
        whole: Tensor = torch.ops.aten._unsafe_view(y, hidden.shape)
        return whole

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast("cpu", enabled=False):
            return _backward(ctx, grad)


def run_block(
    hidden: Tensor, turns: Tensor, weights: BlockWeights, shape: BlockShape, compute: torch.dtype
) -> Tensor:
    """What a block makes of hidden states (B, T, W), each token seeing those before it in its row.

    Args:
        turns: (1 or B, T, D / 2) complex, the rotation of each position.
        compute: type of the products.
    """
    with torch.autocast("cpu", enabled=False):
        said: Tensor = LeanBlock.apply(hidden, turns, compute, shape, *weights)  # type: ignore[no-untyped-call]
        return said


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    shape, compute = ctx.shape, ctx.compute
    saved = iter(ctx.saved_tensors)
    given = [next(saved) if is_given else None for is_given in ctx.given]
    weights = BlockWeights(*given)  # type: ignore[arg-type]
    x, turns, scale_in, joined, turning, scale_heads, query, key, value = (
        next(saved) for _ in range(9)
    )
    mixed, output, between, scale_out, gate_in, up_in, down, gate, up = (
        next(saved) for _ in range(9)
    )
    shares = list(saved)
    rows, tokens, width = ctx.size
    wide = scale_in.dtype
    found: dict[str, Tensor] = {}
    late = grad.reshape(-1, width)

    # y = between + (silu(gate) · up) down
    late_c = late.to(compute)
    passed = silu(gate)
    inner = late_c @ down  # (M, F)
    into_up = inner * passed
    found["down"] = late_c.t() @ passed.mul_(up)
    into_gate = torch.ops.aten.silu_backward(inner.mul_(up), gate)
    del passed, inner
    normed = _normed_again(between, scale_out, weights.norm_out, compute)
    found["gate"], found["up"] = into_gate.t() @ normed, into_up.t() @ normed
    into_normed = torch.addmm(into_gate @ gate_in, into_up, up_in)
    del into_gate, into_up
    into_between, found["norm_out"] = _norm_backward(
        into_normed.to(wide), between, scale_out, weights.norm_out
    )
    into_between += late

    # between = x + mixed output
    late_c = into_between.to(compute)
    found["output"] = late_c.t() @ mixed
    if weights.output_bias is not None:
        found["output_bias"] = into_between.sum(0)
    into_mixed = _by_head(late_c @ output, rows, shape)  # (B K, T G, D)
    into_query, into_key, into_value = _attend_backward(
        into_mixed, shares, query, key, value, shape.group
    )
    into_turning = _turned_back(into_query, into_key, turns, shape, rows, wide)
    if scale_heads is not None:
        into_turning, by_head = _head_norm_backward(
            into_turning, turning, scale_heads, _head_norm(weights, shape, wide)
        )
        by_head = _in_halves(by_head)  # (H + K, D)
        found["query_norm"] = by_head[: shape.heads].sum(0)
        found["key_norm"] = by_head[shape.heads :].sum(0)
    into_flat = torch.empty(
        (rows, tokens, shape.heads + 2 * shape.kv_heads, shape.head_width), dtype=compute
    )
    into_flat[:, :, : shape.heads + shape.kv_heads] = into_turning
    into_flat[:, :, shape.heads + shape.kv_heads :] = into_value.view(
        rows, shape.kv_heads, tokens, shape.head_width
    ).transpose(1, 2)
    into_flat = into_flat.view(rows * tokens, -1)
    if weights.query_bias is not None:
        found |= _apart(into_flat.sum(0, dtype=wide), shape, "_bias")
    normed = _normed_again(x, scale_in, weights.norm_in, compute)
    found |= _apart(into_flat.t() @ normed, shape, "")
    into_x, found["norm_in"] = _norm_backward(
        (into_flat @ joined).to(wide), x, scale_in, weights.norm_in
    )
    into_x += into_between

    needed = ctx.needs_input_grad[4:]
    by_weight = (
        found[name].to(weight.dtype) if weight is not None and is_needed else None
        for name, weight, is_needed in zip(BlockWeights._fields, weights, needed, strict=True)
    )
    return into_x.to(x.dtype).view(ctx.size), None, None, None, *by_weight


# Norms


def _normed(
    x: Tensor, weight: Tensor, epsilon: float, compute: torch.dtype, wide: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The root mean square norm over the last axis, and by how much it scaled."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=wide)
    scale = length.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
    return _normed_again(x, scale, weight, compute), scale


def _normed_again(x: Tensor, scale: Tensor, weight: Tensor, compute: torch.dtype) -> Tensor:
    return (x * scale).mul_(weight).to(compute)


def _norm_backward(into: Tensor, x: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of x (M, W) and of the weight (W,); `into` (M, W) is used up.

    y = w s x with s = (mean x² + ε)^-½, so dx = s w g − x s³ (Σ w g x) / W and dw = Σ g s x.
    """
    wide = weight.to(into.dtype)
    x = x.to(into.dtype)
    both = into * x
    by_weight = both.t() @ scale.squeeze(1)
    slope = (both @ wide)[:, None] * (scale**3 / -x.shape[1])
    return torch.addcmul(into.mul_(wide).mul_(scale), x, slope), by_weight


def _head_norm_backward(
    into: Tensor, x: Tensor, scale: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The same for heads (B, T, H + K, D), whose weights are (H + K, D)."""
    assert weight is not None
    both = into * x
    by_weight = torch.einsum("bthd,bth->hd", both, scale.squeeze(-1))
    slope = both.mul_(weight).sum(-1, keepdim=True).mul_(scale**3 / -x.shape[-1])
    return torch.addcmul(into.mul_(weight).mul_(scale), x, slope), by_weight


# Query, key and value


def _joined(weights: BlockWeights, shape: BlockShape, compute: torch.dtype) -> Tensor:
    """((H + 2K) D, W), query and key with their rows in rotary pairs."""
    width = weights.query.shape[1]
    pairs = [
        _in_pairs(weight.view(-1, shape.head_width, width), 1).reshape(-1, width)
        for weight in (weights.query, weights.key)
    ]
    return torch.cat([*(part.to(compute) for part in pairs), weights.value.to(compute)])


def _joined_bias(weights: BlockWeights, shape: BlockShape, compute: torch.dtype) -> Tensor | None:
    if weights.query_bias is None or weights.key_bias is None or weights.value_bias is None:
        return None
    pairs = [
        _in_pairs(bias.view(-1, shape.head_width), 1).reshape(-1)
        for bias in (weights.query_bias, weights.key_bias)
    ]
    return torch.cat([*pairs, weights.value_bias]).to(compute)


def _apart(joined: Tensor, shape: BlockShape, kind: str) -> dict[str, Tensor]:
    """Gradients of query, key and value, each by itself and with its rows in halves."""
    heads, kv_heads, width = shape.heads, shape.kv_heads, shape.head_width
    query, key, value = joined.split_with_sizes([heads * width, kv_heads * width, kv_heads * width])
    rest = joined.shape[1:]
    return {
        f"query{kind}": _in_halves(query.view(heads, width, *rest), 1).reshape(query.shape),
        f"key{kind}": _in_halves(key.view(kv_heads, width, *rest), 1).reshape(key.shape),
        f"value{kind}": value.clone(),
    }


def _head_norm(weights: BlockWeights, shape: BlockShape, wide: torch.dtype) -> Tensor | None:
    """(H + K, D), in rotary pairs."""
    if weights.query_norm is None or weights.key_norm is None:
        return None
    query, key = (_in_pairs(norm.to(wide)) for norm in (weights.query_norm, weights.key_norm))
    return torch.cat([query.expand(shape.heads, -1), key.expand(shape.kv_heads, -1)])


def _in_pairs(halves: Tensor, axis: int = -1) -> Tensor:
    """First and second half of an axis, one beside the other."""
    axis %= halves.dim()
    apart = torch.unflatten(halves, axis, (2, -1)).transpose(axis, axis + 1)
    return apart.flatten(axis, axis + 1)


def _in_halves(pairs: Tensor, axis: int = -1) -> Tensor:
    """What `_in_pairs` was given."""
    axis %= pairs.dim()
    apart = torch.unflatten(pairs, axis, (-1, 2)).transpose(axis, axis + 1)
    return apart.flatten(axis, axis + 1)


def _turned(
    straight: Tensor, turns: Tensor, shape: BlockShape, compute: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Heads (B, T, H + K, D) to query (B K, T G, D), scaled, and key (B K, T, D)."""
    pairs = torch.view_as_complex(torch.unflatten(straight, -1, (-1, 2)))
    turned = torch.view_as_real(pairs * turns.unsqueeze(2)).flatten(-2)
    query, key = turned.split_with_sizes([shape.heads, shape.kv_heads], 2)
    grouped = _grouped(query, shape).to(compute)
    return grouped.mul_(shape.scale), _grouped(key, shape).to(compute)


def _turned_back(
    query: Tensor, key: Tensor, turns: Tensor, shape: BlockShape, rows: int, wide: torch.dtype
) -> Tensor:
    """Gradients of what `_turned` gave, as one of what it was given; (B, T, H + K, D)."""
    tokens, width = key.shape[1:]
    back = torch.empty((rows, tokens, shape.heads + shape.kv_heads, width), dtype=wide)
    torch.mul(
        query.view(rows, shape.kv_heads, tokens, shape.group, width).transpose(1, 2),
        shape.scale,
        out=torch.unflatten(back[:, :, : shape.heads], 2, (shape.kv_heads, -1)),
    )
    back[:, :, shape.heads :] = key.view(rows, shape.kv_heads, tokens, width).transpose(1, 2)
    pairs = torch.view_as_complex(torch.unflatten(back, -1, (-1, 2)))
    pairs *= turns.conj().unsqueeze(2)
    return back


def _grouped(heads: Tensor, shape: BlockShape) -> Tensor:
    """Heads (B, T, n, D), each K key heads' own, to (B K, T n / K, D)."""
    rows, width = heads.shape[0], heads.shape[-1]
    by_key = torch.unflatten(heads, 2, (shape.kv_heads, -1)).transpose(1, 2)  # (B, K, T, n / K, D)
    return by_key.reshape(rows * shape.kv_heads, -1, width)


def _by_head(mixed: Tensor, rows: int, shape: BlockShape) -> Tensor:
    """(M, H D) -> (B K, T G, D)"""
    return _grouped(mixed.view(rows, -1, shape.heads, shape.head_width), shape)


def _by_token(mixed: Tensor, rows: int, shape: BlockShape) -> Tensor:
    """(B K, T G, D) -> (M, H D)"""
    by_key = mixed.view(rows, shape.kv_heads, -1, shape.group, shape.head_width)
    return by_key.transpose(1, 2).reshape(-1, shape.heads * shape.head_width)


# Attention


def _stretches(tokens: int) -> list[tuple[int, int]]:
    """First token and end of each stretch; the last has what is left, up to half as much more."""
    count = max((tokens + STRETCH // 2) // STRETCH, 1)
    starts = [number * STRETCH for number in range(count)]
    return list(zip(starts, [*starts[1:], tokens], strict=True))


def _attend(query: Tensor, key: Tensor, value: Tensor, group: int) -> tuple[list[Tensor], Tensor]:
    """Shares of each stretch (B K, n G, its end), and what they mix (B K, T G, D)."""
    shares, mixed = [], []
    for start, end in _stretches(key.shape[1]):
        own = query[:, start * group : end * group]
        scores = own @ key[:, :end].transpose(1, 2)
        ahead = torch.full((end - start, end - start), -torch.inf, dtype=scores.dtype).triu_(1)
        scores[:, :, start:] += ahead.repeat_interleave(group, 0)
        part = torch.softmax(scores, -1)
        shares.append(part)
        mixed.append(part @ value[:, :end])
    return shares, torch.cat(mixed, 1) if len(mixed) > 1 else mixed[0]


def _attend_backward(
    into: Tensor, shares: list[Tensor], query: Tensor, key: Tensor, value: Tensor, group: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value."""
    into_key = into_value = torch.empty(0)
    into_query = []
    stretches = _stretches(key.shape[1])
    for (start, end), part in zip(reversed(stretches), reversed(shares), strict=True):
        own = slice(start * group, end * group)
        of_value = part.transpose(1, 2) @ into[:, own]
        into_share = into[:, own] @ value[:, :end].transpose(1, 2)
        scores = torch.ops.aten._softmax_backward_data(into_share, part, -1, part.dtype)
        into_query.append(scores @ key[:, :end])
        of_key = scores.transpose(1, 2) @ query[:, own]
        if end == key.shape[1]:
            into_key, into_value = of_key, of_value
        else:
            into_key[:, :end] += of_key
            into_value[:, :end] += of_value
    into_query.reverse()
    return torch.cat(into_query, 1), into_key, into_value


def _added(x: Tensor, states: Tensor, matrix: Tensor) -> Tensor:
    """x + states matrixᵀ, in the type of x."""
    if x.dtype == states.dtype:
        return torch.addmm(x, states, matrix.t())
    return x + states @ matrix.t()
