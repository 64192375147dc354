"""Memory of one optimizer step on one GPU: the peak over its instants.

A step has instants at which different things are alive at once; the peak is the greatest of them,
never a sum:

    loss          gathered head, logits and their gradients, everything kept for the backward pass
    head          gradient of the output matrix on its way into the shards
    first layer   backward of the last layer: everything kept, one layer's workspace
    last layer    backward of the first layer: all gradients, next to nothing kept
    embedding     gradient of the embedding on its way into the shards
    step          optimizer step: gradients, states and the step's own copy

Checked against torch's FSDPMemTracker and published measurements. Knows no roles, stages or specs.
"""

from dataclasses import dataclass

from coloop.plan.settings.activations import (
    CROSS_ENTROPY_BYTES,
    WORKSPACE,
    Kernels,
    checkpoint_bytes,
    layer_bytes,
)
from coloop.plan.settings.architecture import Architecture, ParameterCount
from coloop.plan.settings.states import WHOLE, ModelStates, Scheme
from coloop.spec.training import Checkpointing

OFFLOADED_AHEAD = 2
"""Layers whose inputs are on the GPU while the others rest on the host."""
HALF = 0.5
"""Share of the layers whose activations selective checkpointing keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """Everything that the memory of a step depends on."""

    arch: Architecture
    parameters: ParameterCount
    states: ModelStates
    scheme: Scheme
    shards: int
    tokens: int
    """Tokens of one micro-batch on one GPU, padding included."""
    sequence_length: int
    checkpointing: Checkpointing
    compute_bytes: int = 2
    has_logits: bool = True
    """Critics and classifiers give one number a position: no vocabulary."""
    logits_bytes: float = CROSS_ENTROPY_BYTES
    loss_chunk: int | None = None
    """Tokens whose logits are alive at once."""
    kernels: Kernels = "eager"
    eager_attention: bool = False
    residual_bytes: int | None = None
    trains_all: bool = True
    """False for adapters: no gradient of whole matrices."""
    reshard: bool = True
    offloads_states: bool = False
    """Weights rest on the host: what is used comes over layer by layer."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1
    expert_parallel: int = 1
    accumulates: bool = False
    """Whether gradients of earlier micro-batches are there from the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """What is alive at one instant of a step, the resting weights and optimizer states apart."""

    name: str
    gradients: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    transfer: float = 0.0
    temporary: float = 0.0

    @property
    def total(self) -> float:
        """All of it, in bytes."""
        return self.gradients + self.activations + self.logits + self.transfer + self.temporary


def peak_instant(step: TrainingStep) -> Instant:
    """The instant at which the step needs most."""
    return max(step_instants(step), key=lambda instant: instant.total)


def step_instants(step: TrainingStep) -> tuple[Instant, ...]:
    arch, count, states = step.arch, step.parameters, step.states
    tp = step.tensor_parallel
    sharded = step.scheme not in (*WHOLE, "zero0")
    tokens = step.tokens / step.context_parallel
    layers = arch.layers / step.pipeline_parallel
    in_flight = step.pipeline_parallel  # micro-batches that the first pipeline stage holds

    layer = layer_bytes(
        arch,
        compute_bytes=step.compute_bytes,
        kernels=step.kernels,
        eager_attention_length=step.sequence_length if step.eager_attention else 0,
    )
    layer *= tokens / tp
    residual = step.residual_bytes or step.compute_bytes
    per_layer = checkpoint_bytes(arch, residual_bytes=residual) * tokens
    kept_per_layer = {
        False: layer,
        True: per_layer,
        "selective": HALF * layer + (1 - HALF) * per_layer,
        "offload": per_layer,
    }[step.checkpointing]
    kept_layers = min(layers, OFFLOADED_AHEAD) if step.checkpointing == "offload" else layers
    kept = kept_layers * kept_per_layer * in_flight
    workspace = WORKSPACE * layer if step.checkpointing else (WORKSPACE - 1) * layer
    final_norm = 8 * arch.hidden_size * tokens

    gathers = _gathers_weights(step)
    wide = step.compute_bytes if gathers else 0
    embedding = count.embedding / tp
    experts = tp if step.expert_parallel == 1 else step.expert_parallel
    one_layer = _shared(count.layer, _routed_layer(arch, count), tp, experts)
    here = _shared(count.total, count.routed, tp, experts)
    full_gradient = step.compute_bytes if gathers and step.trains_all else 0
    reduced = 4 if gathers and step.trains_all and sharded else 0
    owned_embedding = states.gradients * embedding / max(count.total / tp, 1)

    summed = states.gradients if step.accumulates else 0.0

    head_tokens = min(tokens, step.loss_chunk or tokens)
    logits = final_norm
    gathered_head = 0.0
    if step.has_logits:
        logits += step.logits_bytes * arch.vocab_size / tp * head_tokens
        gathered_head = wide * embedding
        if head_tokens < tokens and step.trains_all:  # the head's gradient grows meanwhile
            gathered_head += (full_gradient or 2) * embedding
    unsharded = 0.0 if step.reshard else wide * (here - embedding)

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
            activations=kept + workspace,
            transfer=(2 * wide + full_gradient + reduced) * one_layer + unsharded,
        ),
        Instant(
            name="last layer",
            gradients=max(summed, states.gradients - owned_embedding, 0.0),
            activations=kept_per_layer * in_flight + workspace,
            transfer=(wide + full_gradient + reduced) * one_layer
            + wide * max(embedding, one_layer)
            + unsharded,
        ),
        Instant(
            name="embedding",
            gradients=states.gradients,
            transfer=(full_gradient + reduced) * embedding + unsharded,
        ),
        Instant(name="step", gradients=states.gradients, temporary=states.step_temporary),
    ]
    if step.has_logits and count.head and step.trains_all:
        instants.append(
            Instant(
                name="head",
                gradients=max(summed, owned_embedding),
                activations=kept + final_norm,
                transfer=(full_gradient + reduced) * embedding + wide * one_layer + unsharded,
            )
        )
    return tuple(instants)


def offloaded_bytes(step: TrainingStep) -> float:
    """Inputs of layers that rest in the host's memory, for one GPU."""
    if step.checkpointing != "offload":
        return 0.0
    residual = step.residual_bytes or step.compute_bytes
    per_layer = checkpoint_bytes(step.arch, residual_bytes=residual)
    return per_layer * step.arch.layers * step.tokens / step.context_parallel


def _shared(parameters: float, routed: float, tensor: int, experts: int) -> float:
    """What is left of parameters on one rank: experts over ranks of their own."""
    return (parameters - routed) / tensor + routed / experts


def _routed_layer(arch: Architecture, count: ParameterCount) -> float:
    """Parameters of the experts of one layer."""
    if arch.moe is None:
        return 0.0
    return count.routed / max(arch.layers - arch.moe.dense_layers, 1)


def _gathers_weights(step: TrainingStep) -> bool:
    """Whether weights are used from a copy in the compute type instead of where they rest."""
    return step.scheme in ("fsdp2", "zero3") or step.offloads_states
