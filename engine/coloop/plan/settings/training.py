"""Memory of one optimizer step on one GPU: the peak over its instants.

At each instant other things are in memory; the peak is the largest of the instants, not their sum:

    loss          gathered head, logits and their gradients, everything kept for the backward pass
    forward       with autocast: casts of all weights, everything kept for the backward pass
    head          gradient of the output matrix on its way into the shards
    first layer   backward of the last layer: everything kept, one layer's workspace
    last layer    backward of the first layer: all gradients, almost nothing kept
    embedding     gradient of the embedding on its way into the shards
    step          optimizer step: gradients, states and the step's own copy

Checked against torch's FSDPMemTracker and published measurements. Knows no roles, stages or specs.
"""

from collections.abc import Mapping

from coloop.plan.settings.architecture import Architecture, ParameterCount
from coloop.plan.settings.implementations import Allocator, Kernels, Root, Selective
from coloop.plan.settings.settings import UpdateSettings
from coloop.plan.settings.traced import Constant, named
from coloop.plan.settings.weights import WHOLE, ModelStates, Scheme
from coloop.spec.lean import record

# What a layer keeps for its backward pass, and what the logits cost.
#
# All numbers are bytes for one token. Does not know sharding or stages. The eager formula is
# exact against torch's memory tracker on Hugging Face models; the fused one is a fit on published
# runs of compiled models.

TRACKED = "torch's FSDPMemTracker"
PUBLISHED = "published peaks (tests/bench)"
MEASURED = "measured with coloop on a CPU"
CROSS_ENTROPY_BYTES = Constant(12.0, "bytes a logit", TRACKED)
"""Peak bytes per token and vocabulary entry of Hugging Face's loss, all copies."""
SCORE_BYTES = Constant(8.0, "bytes a logit without a gradient", TRACKED)
"""The same without gradient: 16-bit logits and one fp32 copy."""
WORKSPACE = Constant(1.2, "peak of a layer's backward pass, relative to what it keeps", TRACKED)
"""Peak of a layer's recomputation or backward pass, relative to what it keeps."""


def layer_bytes(
    arch: Architecture,
    compute_bytes: int,
    kernels: Kernels,
    *,
    tensor: int = 1,
    has_sequence_parallel: bool = False,
    routed_bytes: float = 4.0,
) -> float:
    """Bytes that one layer keeps per token on one GPU without gradient checkpointing. Of `tensor`
    ranks each has the norms whole, unless they divide the sequence there (arXiv 2205.05198)."""
    h, q, k, heads = arch.hidden_size, arch.query_width, arch.kv_width, arch.heads
    inner = _inner_width(arch)
    if kernels == "fused":
        norms = 8.0 * h
        kept = norms + 6 * inner + 8 * q + 4 * k + _routing(arch, routed_bytes)
        kept += 4 * (q + k) if arch.qk_norm else 0
    else:
        norms = 8.0 * h * arch.norms_per_layer
        attention = 10 * q + 4 * heads + 8 + (2 * k if arch.qkv_bias else 0)
        kept = norms + 8 * inner + attention + _routing(arch, routed_bytes)
        if arch.qk_norm:
            kept += 8 * (q + k)
        if compute_bytes == 4:  # norms keep no extra fp32 copy, everything else doubles
            kept = 2 * kept - 4 * h * arch.norms_per_layer
            norms += 4.0 * h * arch.norms_per_layer
    whole = 0.0 if has_sequence_parallel else norms
    return named("bytes a layer keeps of a token", whole + (kept - whole) / tensor, "B")


def product_bytes(arch: Architecture, compute_bytes: int) -> float:
    """Bytes that one layer keeps per token with selective checkpointing of products: its input,
    the attention's output, and every second product of q, k, v, o, gate, up and down, which are q,
    v, gate and down (torchtitan, distributed/activation_checkpoint.py)."""
    inner = arch.ffn if arch.moe is None else 0  # products of experts are grouped ones
    return compute_bytes * (2.0 * arch.hidden_size + 2 * arch.query_width + arch.kv_width + inner)


def forward_bytes(arch: Architecture, *, compute_bytes: int = 2, tensor_parallel: int = 1) -> float:
    """Workspace of a forward pass per token: the widest point of a layer, and the residual."""
    return compute_bytes * (3 * arch.hidden_size + 3 * _inner_width(arch) / tensor_parallel)


def _inner_width(arch: Architecture) -> int:
    """Feed-forward width per token."""
    if arch.moe is None:
        return arch.ffn
    return arch.moe.ffn * (arch.moe.active_experts + arch.moe.shared_experts)


def _routing(arch: Architecture, each: float) -> float:
    """Copies of a token for its experts, of `each` bytes an element, and fp32 router scores."""
    if arch.moe is None:
        return 0.0
    return each * arch.hidden_size * arch.moe.active_experts + 4.0 * arch.moe.experts


# Memory of a process besides the tensors that the formulas count.
#
# Knows no roles or stages. The numbers are ranges in the sources (memory of a CUDA context 0.5 to
# 0.9 GiB, of communication 0.5 to 2 GiB, reserved over allocated 1.03 to 1.3); one value of each
# is taken here.

GIB = 2**30
CONTEXT_BYTES = Constant(0.6 * GIB, "CUDA context and libraries", PUBLISHED, unit="B")
"""CUDA context, libraries and their workspaces."""
COMMUNICATION_BYTES = Constant(0.6 * GIB, "buffers of NCCL", PUBLISHED, unit="B")
"""Buffers of the communication library in a pool of several GPUs."""
FRAGMENTATION: Mapping[Allocator, float] = {
    "blocks": Constant(0.10, "share that the allocator holds on top", PUBLISHED),
    "segments": Constant(0.03, "share that the allocator holds on top", PUBLISHED),
}
"""Share of temporary memory that the allocator holds on top."""
CPU_PROCESS_BYTES = Constant(0.4 * GIB, "process with torch and transformers", MEASURED, unit="B")
"""A worker process with torch and transformers, measured; on a CPU, in place of a GPU's context."""
HEAP_SHARE = Constant(0.17, "share of activations that the heap holds on top", MEASURED)
HEAP_SHARE_OF_ADAPTERS = Constant(0.75, "share of activations that the heap holds on top", MEASURED)
"""Heap overhead of a CPU process, as a share of the activations that it keeps: intermediates leave
holes between them, with adapters one more at every matrix. Measured on a Llama with 135M
parameters, 2,048 to 4,096 tokens in float32, in kB per token and layer: 50 counted, 53 to 61
resident; with LoRA at every matrix 86 to 90."""


def heap_bytes(activations: float, *, has_adapter: bool) -> float:
    """What a CPU process holds besides the activations kept for a backward pass."""
    return activations * (HEAP_SHARE_OF_ADAPTERS if has_adapter else HEAP_SHARE)


def process_bytes(*, gpus: int) -> tuple[float, ...]:
    """Memory of a process on its GPU before any tensor, in parts."""
    return (CONTEXT_BYTES, COMMUNICATION_BYTES) if gpus > 1 else (CONTEXT_BYTES,)


def fragmentation_bytes(transient: float, allocator: Allocator = "blocks") -> float:
    """Allocator overhead for memory that comes and goes within a step."""
    return FRAGMENTATION[allocator] * transient


ZERO_LIVE = 1e9
"""Parameters that DeepSpeed keeps gathered with stage 3 (`stage3_max_live_parameters`)."""
ZERO_BUCKET = 5e8
"""Gradients that DeepSpeed sums at once (`reduce_bucket_size`)."""
OFFLOADED_AHEAD = 2
"""Layers whose inputs are on the GPU while the others are offloaded."""
HALF = 0.5
"""Share of the layers whose activations selective checkpointing of layers keeps."""


@record
class TrainingStep:
    """Inputs of the memory formulas for an optimizer step."""

    arch: Architecture
    parameters: ParameterCount
    states: ModelStates
    scheme: Scheme
    shards: int
    tokens: int
    """Tokens of a micro-batch on one GPU, with padding."""
    settings: UpdateSettings
    compute_bytes: int = 2
    has_logits: bool = True
    """False for critics and classifiers, which give one number per position."""
    logits_bytes: float = CROSS_ENTROPY_BYTES
    has_frozen_head_gradient: bool = False
    kernels: Kernels = "eager"
    routed_bytes: float = 4.0
    root: Root = "parts"
    selective: Selective = "layers"
    has_sequence_parallel: bool = False
    residual_bytes: int | None = None
    gathered_bytes: float | None = None
    """Bytes of a weight that is gathered for use; None: as wide as what is computed in."""
    trains_all: bool = True
    """False for adapters: whole matrices have no gradients."""
    accumulates: bool = False
    """Whether gradients of earlier micro-batches are resident from the start."""
    reduce_bytes: int = 4
    """In which sharded gradients are summed."""
    sums_whole: bool = False
    """Whether those are whole on each GPU."""
    has_casts: bool = False
    """Whether `torch.autocast` casts whole weights, and keeps the casts until the forward pass
    ends; without gradient checkpointing they stay for the backward pass."""
    micro_batches: int | None = None
    """Of an optimizer step; None: enough to fill a pipeline."""

    @property
    def input_bytes(self) -> int:
        """Bytes per token that a layer keeps with full gradient checkpointing: its input."""
        return (self.residual_bytes or self.compute_bytes) * self.arch.hidden_size


@record
class Instant:
    """Temporary memory at one instant of a step, without weights and optimizer states."""

    name: str
    gradients: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    transfer: float = 0.0
    temporary: float = 0.0

    @property
    def total(self) -> float:
        held = self.gradients + self.activations + self.logits + self.transfer + self.temporary
        return named("memory of the step at its peak", held, "B")


def peak_instant(step: TrainingStep) -> Instant:
    return max(step_instants(step), key=lambda instant: instant.total)


def step_instants(step: TrainingStep) -> tuple[Instant, ...]:
    arch, count, states, settings = step.arch, step.parameters, step.states, step.settings
    tp, checkpointing = settings.tensor_parallel, settings.gradient_checkpointing
    sharded = step.scheme not in (*WHOLE, "zero0")
    tokens = step.tokens / settings.context_parallel
    layers = arch.layers / settings.pipeline_parallel
    # micro-batches that the first pipeline stage holds; the last one, with the loss, holds one
    in_flight = min(settings.pipeline_parallel, step.micro_batches or settings.pipeline_parallel)
    whole_tokens = tokens / tp if step.has_sequence_parallel else tokens  # outside of products

    layer = tokens * layer_bytes(
        arch,
        step.compute_bytes,
        step.kernels,
        tensor=tp,
        has_sequence_parallel=step.has_sequence_parallel,
        routed_bytes=step.routed_bytes,
    )
    layer = named("kept in a layer", layer, "B")
    per_layer = named("input of a layer", step.input_bytes * whole_tokens, "B")
    selected = HALF * layer + (1 - HALF) * per_layer
    if step.selective == "products":
        selected = tokens * product_bytes(arch, step.compute_bytes) / tp
    selected = named("kept in a layer", selected, "B")
    kept_per_layer = {
        False: layer,
        True: per_layer,
        "selective": selected,
        "offload": per_layer,
    }[checkpointing]
    kept_layers = min(layers, OFFLOADED_AHEAD) if checkpointing == "offload" else layers
    kept = named("kept for the backward pass", kept_layers * kept_per_layer, "B")
    workspace = WORKSPACE * layer if checkpointing else (WORKSPACE - 1) * layer
    workspace = named("workspace of a layer", workspace, "B")
    final_norm = named("last norm", 8 * arch.hidden_size * whole_tokens, "B")

    # weights that rest on the host come over layer by layer
    gathers = step.scheme in ("fsdp2", "zero3") or settings.offload == "all"
    wide = step.compute_bytes if gathers else 0
    held = wide if step.gathered_bytes is None else min(wide, step.gathered_bytes)
    embedding, head = count.embedding / tp, count.head / tp
    output = head or embedding
    experts = tp if settings.expert_parallel == 1 else settings.expert_parallel
    dense = arch.moe.dense_layers if arch.moe is not None else 0
    routed = count.routed / max(arch.layers - dense, 1) if arch.moe is not None else 0.0
    one_layer = _shared(count.layer, routed, tp, experts)
    here = _shared(count.total, count.routed, tp, experts)
    full_gradient = step.compute_bytes if gathers and step.trains_all else 0
    reduced = step.reduce_bytes if gathers and step.trains_all and sharded else 0
    owned_embedding = states.gradients * embedding / max(count.total / tp, 1)

    # Megatron-LM's gradients lie in buffers that are always there
    is_resident = step.accumulates or step.scheme == "megatron"
    summed = states.gradients if is_resident else 0.0
    if step.accumulates and step.sums_whole and step.scheme == "fsdp2" and step.trains_all:
        summed = step.compute_bytes * here

    # embedding, last norm and head as one group: gathered, and their gradients whole, until the end
    is_one = step.scheme == "fsdp2" and (step.root == "whole" or not head)
    root = named("gathered embedding and output matrix", wide * (embedding + head), "B")
    root_gradient = named("gradient of the output matrix", full_gradient * output, "B")
    root = root if is_one else 0.0
    root_gradient = root_gradient if is_one and step.has_logits else 0.0

    head_tokens = min(tokens, settings.loss_chunk or tokens)
    logits = final_norm
    gathered_head = root
    if step.has_logits:
        each = step.logits_bytes * arch.vocab_size / tp * head_tokens
        logits += named("logits and their gradients", each, "B")
        gathered_head = max(root, wide * output)
        grows = step.trains_all or step.has_frozen_head_gradient
        if head_tokens < tokens and grows:  # the head's gradient, meanwhile
            gathered_head += (full_gradient or 2) * output
    unsharded = 0.0 if settings.reshard_after_forward else wide * (here - embedding)
    if step.scheme == "zero3":
        unsharded += wide * max(min(ZERO_LIVE, here) - 2 * one_layer, 0.0)
    if step.scheme in ("zero1", "zero2", "zero3") and step.trains_all:
        unsharded += step.compute_bytes * min(ZERO_BUCKET, here)
    casts = step.compute_bytes * (here - (embedding if head else 0.0)) if step.has_casts else 0.0
    if not checkpointing:
        unsharded += casts
    unsharded = named("weights that stay gathered", unsharded, "B")
    behind = root + root_gradient + unsharded

    instants = [
        Instant(
            name="loss",
            gradients=summed,
            activations=kept,
            logits=logits,
            transfer=gathered_head + unsharded,
        ),
        Instant(
            name="first layer",
            gradients=max(
                summed, owned_embedding if step.trains_all else states.gradients / max(layers, 1)
            ),
            activations=kept * in_flight + workspace,
            transfer=(2 * held + full_gradient + reduced) * one_layer + behind,
        ),
        Instant(
            name="last layer",
            gradients=max(summed, states.gradients - owned_embedding, 0.0),
            activations=kept_per_layer * in_flight + workspace,
            transfer=(held + full_gradient + reduced) * one_layer
            + max(root, wide * embedding, held * one_layer)
            + root_gradient
            + unsharded,
        ),
        Instant(
            name="embedding",
            gradients=states.gradients,
            transfer=(full_gradient + reduced) * (embedding + (head if is_one else 0.0))
            + unsharded,
        ),
        Instant(name="step", gradients=states.gradients, temporary=states.step_temporary),
    ]
    if step.has_casts:
        words = arch.vocab_size / tp * head_tokens if step.has_logits else 0.0
        instants.append(
            Instant(
                name="forward",
                gradients=summed,
                activations=kept,
                logits=final_norm + min(SCORE_BYTES, step.logits_bytes) * words,
                transfer=casts,
            )
        )
    if step.has_logits and head and step.trains_all and not is_one:
        instants.append(
            Instant(
                name="head",
                gradients=max(summed, owned_embedding),
                activations=kept + final_norm,
                transfer=(full_gradient + reduced) * head + held * one_layer + unsharded,
            )
        )
    return tuple(instants)


def offloaded_bytes(step: TrainingStep) -> float:
    """Layer inputs in host memory, per GPU."""
    if step.settings.gradient_checkpointing != "offload":
        return 0.0
    return step.input_bytes * step.arch.layers * step.tokens / step.settings.context_parallel


def _shared(parameters: float, routed: float, tensor: int, experts: int) -> float:
    """Parameters on one rank, with experts divided over ranks of their own."""
    return (parameters - routed) / tensor + routed / experts
