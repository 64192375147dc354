"""What a process costs beside the tensors that the formulas count.

Knows no roles or stages. The numbers are ranges in the sources (memory of a CUDA context 0.5 to 0.9
GiB, of communication 0.5 to 2 GiB, reserved over allocated 1.03 to 1.3); one value of each is taken
here.
"""

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
