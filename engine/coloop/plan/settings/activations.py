"""What a layer keeps for its backward pass, and what the logits cost.

All numbers are bytes for one token. Does not know sharding or stages. The eager formula is exact
against torch's memory tracker on Hugging Face models; the fused one is a fit on published runs of
compiled models.
"""

from typing import Literal

from coloop.plan.settings.architecture import Architecture

Kernels = Literal["eager", "fused"]

CROSS_ENTROPY_BYTES = 12.0
"""Bytes per token and word of the vocabulary, all copies at the peak of Hugging Face's loss."""
LOSS_BYTES = {2: 14.0, 4: 12.0}
"""The same for coloop's own loss, by the bytes of a computed number: logits, their fp32 copy, and
the gradients of the log-sum and of the chosen word."""
SCORE_BYTES = 8.0
"""The same for a pass without gradient: 16-bit logits and one fp32 copy."""
WORKSPACE = 1.2
"""Peak of one layer's recomputation or backward pass over what the layer keeps."""


def layer_bytes(
    arch: Architecture,
    *,
    compute_bytes: int = 2,
    kernels: Kernels = "eager",
    eager_attention_length: int = 0,
) -> float:
    """Bytes that one layer keeps for one token without gradient checkpointing.

    `eager_attention_length` adds the attention matrix of attention without a fused kernel.
    """
    h, q, k, heads = arch.hidden_size, arch.query_width, arch.kv_width, arch.heads
    inner = _inner_width(arch)
    if kernels == "fused":
        kept = 8.0 * h + 6 * inner + 8 * q + 4 * k + _routing(arch)
        kept += 4 * (q + k) if arch.qk_norm else 0
    else:
        norms = 8 * h * arch.norms_per_layer
        attention = 10 * q + 4 * heads + 8 + (2 * k if arch.qkv_bias else 0)
        kept = norms + 8 * inner + attention + _routing(arch)
        if arch.qk_norm:
            kept += 8 * (q + k)
        if compute_bytes == 4:  # norms keep no extra fp32 copy, everything else doubles
            kept = 2 * kept - 4 * h * arch.norms_per_layer
    return kept + 3.0 * compute_bytes * heads * eager_attention_length


def checkpoint_bytes(arch: Architecture, *, residual_bytes: int = 2) -> float:
    """Bytes that one layer keeps for one token with full gradient checkpointing: its input."""
    return residual_bytes * arch.hidden_size


def forward_bytes(arch: Architecture, *, compute_bytes: int = 2, tensor_parallel: int = 1) -> float:
    """Workspace of a forward pass for one token: the widest point of a layer and the residual."""
    return compute_bytes * (3 * arch.hidden_size + 3 * _inner_width(arch) / tensor_parallel)


def _inner_width(arch: Architecture) -> int:
    """Feed-forward width that one token passes through."""
    if arch.moe is None:
        return arch.ffn
    return arch.moe.ffn * (arch.moe.active_experts + arch.moe.shared_experts)


def _routing(arch: Architecture) -> float:
    """Copies of a token for its experts and the fp32 scores of the router."""
    if arch.moe is None:
        return 0.0
    return 4.0 * arch.hidden_size * arch.moe.active_experts + 4.0 * arch.moe.experts
