"""A block of a Llama-like decoder as one function with a gradient of its own.

The mathematics of the Hugging Face modules in fewer passes over memory: joined products and norms,
cheap large results computed again, attention of stretches (`lean_attention`), and rotary pairs side
by side, so that a rotation is one complex product. Only attention knows which tokens belong
together.

    x ─ norm ─ query, key, value ─ (norm of heads) ─ rotation ─ attention ─ output ─(+)─┐
    └───────────────────────────────────────────────────────────────────────────────────┤
    ┌───────────────────────────────────────────────────────────────────────────────────┘
    └─ norm ─ gate, up ─ silu(gate) · up ─ down ─(+)─ y

Products are computed in the type that is asked for, all else in float32 at least.

B rows, T tokens, M = B T, W width, F inner width, H heads, K key-value heads, G = H / K, D head
width.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import silu

from coloop.workers.cpu.lean_attention import attend, attend_backward
from coloop.workers.cpu.slabs import Slab

INNER_KEPT = 1 << 19
"""Largest inner product (M F) that is kept rather than computed again; 1 MiB in bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShape:
    heads: int
    kv_heads: int
    head_width: int
    epsilon: float
    scale: float


class BlockWeights(NamedTuple):
    """A block's weights, as Hugging Face has them; matrices are (out, in)."""

    norm_in: Tensor  # (W,)
    query: Tensor  # (H D, W)
    key: Tensor  # (K D, W)
    value: Tensor  # (K D, W)
    output: Tensor  # (W, H D)
    norm_out: Tensor  # (W,)
    gate: Tensor  # (F, W)
    up: Tensor  # (F, W)
    down: Tensor  # (W, F)
    query_norm: Tensor | None  # (D,)
    key_norm: Tensor | None  # (D,)
    query_bias: Tensor | None  # (H D,)
    key_bias: Tensor | None  # (K D,)
    value_bias: Tensor | None  # (K D,)
    output_bias: Tensor | None  # (W,)


class LeanBlock(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        turns: Tensor,
        compute: torch.dtype,
        shape: BlockShape,
        slabs: tuple[Slab, ...],
        *given: Tensor | None,
    ) -> Tensor:
        weights = BlockWeights(*given)  # type: ignore[arg-type]
        rows, tokens, width = hidden.shape
        x = hidden.reshape(-1, width)
        wide = torch.promote_types(x.dtype, torch.float32)

        normed_in, scale_in = _normed(x, weights.norm_in, shape.epsilon, compute, wide)
        joined = _joined((weights.query, weights.key, weights.value), shape, compute)
        flat = normed_in @ joined.t()  # (M, (H + 2K) D)
        if weights.query_bias is not None:
            biases = (weights.query_bias, weights.key_bias, weights.value_bias)
            flat += _joined(biases, shape, compute)
        turning_heads = shape.heads + shape.kv_heads
        by_head = flat.view(rows, tokens, -1, shape.head_width)
        turning = by_head[:, :, :turning_heads].to(wide)
        head_norm = _head_norm(weights, shape, wide)
        scale_heads = None
        straight = turning
        if head_norm is not None:
            straight, scale_heads = _normed(turning, head_norm, shape.epsilon, wide, wide)
        turned = _turned(straight, turns).view(-1, turning_heads, shape.head_width)
        value = flat.view(-1, turning_heads + shape.kv_heads, shape.head_width)[:, turning_heads:]
        mixed, kept = attend(turned, value, slabs, heads=shape.heads, scale=shape.scale)
        output = weights.output.to(compute)
        between = _added(x, mixed, output)
        if weights.output_bias is not None:
            between += weights.output_bias

        normed_out, scale_out = _normed(between, weights.norm_out, shape.epsilon, compute, wide)
        gate_in, up_in, down = (
            weight.to(compute) for weight in (weights.gate, weights.up, weights.down)
        )
        gate, up = normed_out @ gate_in.t(), normed_out @ up_in.t()  # (M, F)
        passed = silu(gate)
        again: tuple[Tensor | None, ...] = (None, None, None, None)
        if gate.numel() <= INNER_KEPT:
            inner = passed * up
            again = normed_in, normed_out, passed, inner
        else:
            inner = passed.mul_(up)
        y = _added(between, inner, down)

        ctx.shape, ctx.compute, ctx.size, ctx.slabs = shape, compute, hidden.shape, slabs
        ctx.given = [weight is not None for weight in given]
        ctx.save_for_backward(
            *(weight for weight in given if weight is not None),
            *(x, turns, scale_in, joined, turning, head_norm, scale_heads, mixed, output),
            *(between, scale_out, gate_in, up_in, down, gate, up, *again, *kept),
        )
        # a view would have to be told from its base where a hook hangs on it.
        whole: Tensor = torch.ops.aten._unsafe_view(y, hidden.shape)
        return whole

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast("cpu", enabled=False):
            return _backward(ctx, grad)


def run_block(
    hidden: Tensor,
    turns: Tensor,
    slabs: tuple[Slab, ...],
    weights: BlockWeights,
    shape: BlockShape,
    compute: torch.dtype,
) -> Tensor:
    """What a block makes of hidden states (B, T, W).

    Args:
        turns: (1 or B, T, D / 2) complex, the rotation of each position.
        slabs: of all B T tokens.
        compute: type of the products.
    """
    with torch.autocast("cpu", enabled=False):
        states: Tensor = LeanBlock.apply(hidden, turns, compute, shape, slabs, *weights)  # type: ignore[no-untyped-call]
        return states


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    shape, compute = ctx.shape, ctx.compute
    saved = iter(ctx.saved_tensors)
    given = [next(saved) if is_given else None for is_given in ctx.given]
    weights = BlockWeights(*given)  # type: ignore[arg-type]
    x, turns, scale_in, joined, turning, head_norm, scale_heads, mixed, output = (
        next(saved) for _ in range(9)
    )
    between, scale_out, gate_in, up_in, down, gate, up = (next(saved) for _ in range(7))
    normed_in, normed_out, passed, product = (next(saved) for _ in range(4))
    rows, tokens, width = ctx.size
    turning_heads = shape.heads + shape.kv_heads
    wide = scale_in.dtype
    gradients: dict[str, Tensor] = {}
    late = grad.reshape(-1, width)

    # y = between + (silu(gate) · up) down
    late_c = late.to(compute)
    if passed is None:
        passed = silu(gate)
    inner = late_c @ down  # (M, F)
    into_up = inner * passed
    gradients["down"] = late_c.t() @ (passed.mul_(up) if product is None else product)
    into_gate = torch.ops.aten.silu_backward(inner.mul_(up), gate)
    del passed, product, inner
    if normed_out is None:
        normed_out = _normed_again(between, scale_out, weights.norm_out, compute)
    gradients["gate"], gradients["up"] = into_gate.t() @ normed_out, into_up.t() @ normed_out
    into_normed = torch.addmm(into_gate @ gate_in, into_up, up_in)
    del into_gate, into_up
    into_between, gradients["norm_out"] = _norm_backward(
        into_normed.to(wide), between, scale_out, weights.norm_out
    )
    into_between += late

    # between = x + mixed output
    late_c = into_between.to(compute)
    gradients["output"] = late_c.t() @ mixed
    if weights.output_bias is not None:
        gradients["output_bias"] = into_between.sum(0)
    into_turning = torch.empty((rows, tokens, turning_heads, shape.head_width), dtype=wide)
    into_flat = torch.empty(
        (rows * tokens, turning_heads + shape.kv_heads, shape.head_width), dtype=compute
    )
    attend_backward(
        late_c @ output,
        saved,
        ctx.slabs,
        heads=shape.heads,
        scale=shape.scale,
        into_turned=into_turning.view(-1, turning_heads, shape.head_width),
        into_value=into_flat[:, turning_heads:],
    )
    _turn_back(into_turning, turns)
    if scale_heads is not None:
        into_turning, by_head = _head_norm_backward(into_turning, turning, scale_heads, head_norm)
        gradients["query_norm"], gradients["key_norm"] = _norms_apart(by_head, shape)
    into_flat[:, :turning_heads] = into_turning.view(-1, turning_heads, shape.head_width)
    into_flat = into_flat.view(rows * tokens, -1)
    if weights.query_bias is not None:
        parts = _apart(into_flat.sum(0, dtype=wide), shape)
        gradients |= zip(("query_bias", "key_bias", "value_bias"), parts, strict=True)
    if normed_in is None:
        normed_in = _normed_again(x, scale_in, weights.norm_in, compute)
    parts = _apart((into_flat.t() @ normed_in).to(weights.query.dtype), shape)
    gradients |= zip(("query", "key", "value"), parts, strict=True)
    into_x, gradients["norm_in"] = _norm_backward(
        (into_flat @ joined).to(wide), x, scale_in, weights.norm_in
    )
    into_x += into_between

    needed = ctx.needs_input_grad[5:]
    by_weight = (
        gradients[name].to(weight.dtype) if weight is not None and is_needed else None
        for name, weight, is_needed in zip(BlockWeights._fields, weights, needed, strict=True)
    )
    return into_x.to(x.dtype).view(ctx.size), None, None, None, None, *by_weight


def _normed(
    x: Tensor, weight: Tensor, epsilon: float, compute: torch.dtype, wide: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The root mean square norm over the last axis, and by how much it scaled."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=wide)
    scale = torch.addcmul(
        _number(epsilon, wide), length, length, value=1 / x.shape[-1], out=length
    ).rsqrt_()
    return _normed_again(x, scale, weight, compute), scale


@lru_cache(maxsize=16)
def _number(value: float, dtype: torch.dtype) -> Tensor:
    return torch.tensor(value, dtype=dtype)


def _normed_again(x: Tensor, scale: Tensor, weight: Tensor, compute: torch.dtype) -> Tensor:
    return (x * scale).mul_(weight).to(compute)


def _norm_backward(into: Tensor, x: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of x (M, W) and of the weight (W,); `into` (M, W) is used up. y = w s x with s
    = (mean x² + ε)^-½, so dx = s w g − x s³ (Σ w g x) / W and dw = Σ g s x."""
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
    straight = x * scale
    both = into * straight
    by_weight = both.flatten(0, 1).sum(0)
    slope = both.mul_(weight).sum(-1, keepdim=True).mul_(scale / -x.shape[-1])
    return torch.addcmul(into.mul_(weight).mul_(scale), straight, slope), by_weight


def _joined(parts: Iterable[Tensor | None], shape: BlockShape, compute: torch.dtype) -> Tensor:
    """Query, key and value in one, the first two in rotary pairs: ((H + 2K) D, ...)."""
    whole = torch.cat([part for part in parts if part is not None])
    return whole.index_select(0, _orders(shape).in_pairs).to(compute)


def _apart(joined: Tensor, shape: BlockShape) -> tuple[Tensor, ...]:
    width, whole = shape.head_width, joined.index_select(0, _orders(shape).in_halves)
    sizes = [shape.heads * width, shape.kv_heads * width, shape.kv_heads * width]
    return whole.split_with_sizes(sizes)


def _head_norm(weights: BlockWeights, shape: BlockShape, wide: torch.dtype) -> Tensor | None:
    """(H + K, D), in rotary pairs."""
    if weights.query_norm is None or weights.key_norm is None:
        return None
    both = torch.cat([weights.query_norm, weights.key_norm]).to(wide)
    return both.index_select(0, _orders(shape).of_norms).view(-1, shape.head_width)


def _norms_apart(by_head: Tensor, shape: BlockShape) -> tuple[Tensor, ...]:
    both = by_head.new_zeros(2 * shape.head_width)
    both.index_add_(0, _orders(shape).of_norms, by_head.view(-1))
    return torch.split(both, shape.head_width)


class _Orders(NamedTuple):
    """Rotary pairs lie side by side in a block, halves apart in the weights that it is given."""

    in_pairs: Tensor  # ((H + 2K) D,) rows of query, key and value as a block has them
    in_halves: Tensor  # ((H + 2K) D,) the same back
    of_norms: Tensor  # ((H + K) D,) the place of each number in the two norms


@lru_cache(maxsize=16)
def _orders(shape: BlockShape) -> _Orders:
    heads, width = shape.heads + shape.kv_heads, shape.head_width
    pairs = torch.arange(width).view(2, -1).t().reshape(-1)
    turning = (torch.arange(heads)[:, None] * width + pairs).view(-1)
    rest = torch.arange(heads * width, (heads + shape.kv_heads) * width)
    in_pairs = torch.cat([turning, rest])
    is_key = torch.arange(heads) >= shape.heads
    of_norms = (is_key[:, None] * width + pairs).view(-1)
    return _Orders(in_pairs, in_pairs.argsort(), of_norms)


def _turned(straight: Tensor, turns: Tensor) -> Tensor:
    pairs = torch.view_as_complex(torch.unflatten(straight, -1, (-1, 2)))
    return torch.view_as_real(pairs * turns.unsqueeze(2)).flatten(-2)


def _turn_back(turned: Tensor, turns: Tensor) -> None:
    pairs = torch.view_as_complex(torch.unflatten(turned, -1, (-1, 2)))
    pairs *= turns.conj().unsqueeze(2)


def _added(x: Tensor, states: Tensor, matrix: Tensor) -> Tensor:
    """x + states matrixᵀ, in the type of x."""
    if x.dtype == states.dtype:
        return torch.addmm(x, states, matrix.t())
    return x + states @ matrix.t()
