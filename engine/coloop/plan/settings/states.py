"""Model states: how many bytes a parameter costs, by optimizer, precision and sharding.

Pure arithmetic over plain numbers. Does not know roles, stages or activations.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from coloop.plan.settings.architecture import ParameterCount
from coloop.spec.training import Offload

Scheme = Literal["single", "replicas", "fsdp2", "zero0", "zero1", "zero2", "zero3", "megatron"]
WHOLE: tuple[Scheme, ...] = ("single", "replicas")
"""Schemes in which who learns has everything; with `replicas` each process does."""

OPTIMIZER_STATES = {
    "adamw": 2.0,
    "adamw8bit": 0.51,
    "muon": 1.0,
    "lion": 1.0,
    "sgd": 1.0,
    "rmsprop": 1.0,
}
"""Numbers of a parameter's own type that an optimizer keeps for it (8-bit: two bytes and block
scales).
"""

QUANTIZED_BYTES = {"nf4": 0.53, "int8": 1.0, "fp8": 1.0, "mxfp4": 0.53}
"""Bytes of a quantized parameter with its scales; embeddings and heads stay 16-bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    compute_bytes: int
    """Of weights and activations while they are used."""
    master_bytes: int
    """Of the weights that the optimizer updates."""
    frozen_bytes: float
    """Of weights that do not train."""
    engine_bytes: float
    """Of the copy that a rollout engine writes with."""
    has_fp8_products: bool = False
    """Whether the engine's products are in fp8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStates:
    """Bytes on one GPU that a trained group holds, activations apart."""

    weights: float
    gradients: float
    optimizer: float
    step_temporary: float
    """What the step itself adds: one more copy for AdamW, fp32 gradients for ZeRO."""
    host: float
    """What rests in the host's memory instead, for this GPU."""

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.step_temporary


def resting_bytes_per_parameter(
    count: ParameterCount,
    compute_bytes: int,
    quantization: str | None = None,
    embedding_bytes: int | None = None,
) -> float:
    """Mean bytes of a parameter that does not train; embeddings may be held wider."""
    if quantization is None:
        wider = (embedding_bytes or compute_bytes) - compute_bytes
        return compute_bytes + wider * count.embedding / count.total
    wide = (count.embedding + count.head) / count.total
    return QUANTIZED_BYTES[quantization] * (1 - wide) + 2 * wide


def compute_states(
    *,
    total: int,
    trainable: int,
    scheme: Scheme,
    shards: int,
    precision: Precision,
    optimizer: str = "adamw",
    momentum: bool = True,
    offload: Offload = "none",
    model_parallel: int = 1,
    fused_optimizer: bool = False,
) -> ModelStates:
    """States of `total` parameters, of which `trainable` learn, over `shards` GPUs: those with rows
    of their own, and those that share a text (context parallel).

    `model_parallel` is the product of tensor and pipeline degrees, of experts that of expert and
    pipeline degrees: it divides everything first.
    """
    trainable_here, frozen_here = trainable / model_parallel, (total - trainable) / model_parallel
    per_state = OPTIMIZER_STATES.get(optimizer, 2.0)
    if optimizer in ("sgd", "rmsprop") and not momentum:
        per_state = 0.0 if optimizer == "sgd" else 1.0
    master = precision.master_bytes
    if scheme in (*WHOLE, "fsdp2"):
        n = shards if scheme == "fsdp2" else 1
        weights = (master * trainable_here + precision.frozen_bytes * frozen_here) / n
        gradients = master * trainable_here / n
        kept = per_state * (4 if optimizer == "adamw8bit" else master)
        optimizer_bytes = kept * trainable_here / n
        temporary = 0.0 if fused_optimizer else master * trainable_here / n
    elif scheme == "megatron":
        weights = 2 * trainable_here + precision.frozen_bytes * frozen_here
        gradients = 4 * trainable_here
        optimizer_bytes = (4 + 4 * per_state) * trainable_here / shards
        temporary = 0.0
    else:
        weights, gradients, optimizer_bytes, temporary = _zero(
            int(scheme[-1]), trainable_here, frozen_here, shards, per_state, precision
        )
    host = 0.0
    if offload != "none":
        host += optimizer_bytes + temporary
        optimizer_bytes = temporary = 0.0
    if offload == "all":
        host += weights + gradients
        weights = gradients = 0.0
    return ModelStates(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer_bytes,
        step_temporary=temporary,
        host=host,
    )


def sum_states(parts: Iterable[ModelStates]) -> ModelStates:
    """Of several blocks of one model on the same GPU."""
    found = list(parts)
    return ModelStates(
        weights=sum(one.weights for one in found),
        gradients=sum(one.gradients for one in found),
        optimizer=sum(one.optimizer for one in found),
        step_temporary=sum(one.step_temporary for one in found),
        host=sum(one.host for one in found),
    )


def _zero(
    stage: int,
    trainable: float,
    frozen: float,
    shards: int,
    per_state: float,
    precision: Precision,
) -> tuple[float, float, float, float]:
    """DeepSpeed: 16-bit weights and gradients, fp32 master, moments and gradients of the step."""
    weights = 2 * trainable + precision.frozen_bytes * frozen
    gradients = 2 * trainable
    states = (4 + 4 * per_state) * trainable
    return (
        weights / shards if stage == 3 else weights,
        gradients / shards if stage >= 2 else gradients,
        states / shards if stage >= 1 else states,
        4 * trainable / (shards if stage >= 1 else 1),
    )
