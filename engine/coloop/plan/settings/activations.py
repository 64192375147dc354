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


# What a process costs beside the tensors that the formulas count.
#
# Knows no roles or stages. The numbers are ranges in the sources (memory of a CUDA context 0.5 to
# 0.9 GiB, of communication 0.5 to 2 GiB, reserved over allocated 1.03 to 1.3); one value of each
# is taken here.

GIB = 2**30
CONTEXT_BYTES = 0.6 * GIB
"""CUDA context, libraries and their workspaces."""
COMMUNICATION_BYTES = 0.6 * GIB
"""Buffers of the communication library, in a pool of several GPUs."""
FRAGMENTATION = 0.10
"""Share of what comes and goes that the allocator holds on top."""
CPU_PROCESS_BYTES = 0.4 * GIB
"""A worker process with torch and transformers, measured; it takes the place of a GPU's context."""
HEAP_SHARE, HEAP_SHARE_OF_ADAPTERS = 0.17, 0.75
"""Of the activations that a process on a CPU keeps, what its heap holds on top: intermediates leave
holes between them, and with an adapter there is one more at every matrix. Measured on a Llama of
135M parameters, 2,048 to 4,096 tokens in float32, in kB a token and layer: 50 counted, 53 to 61
resident; with LoRA at every matrix 86 to 90."""


def heap_bytes(activations: float, *, has_adapter: bool) -> float:
    """What a process on a CPU holds beside the activations that it keeps for a backward pass."""
    return activations * (HEAP_SHARE_OF_ADAPTERS if has_adapter else HEAP_SHARE)


def process_bytes(*, gpus: int) -> float:
    """What one process holds on its GPU before any tensor."""
    return CONTEXT_BYTES + (COMMUNICATION_BYTES if gpus > 1 else 0.0)


def fragmentation_bytes(transient: float) -> float:
    """What the allocator holds on top of bytes that come and go within a step."""
    return FRAGMENTATION * transient
