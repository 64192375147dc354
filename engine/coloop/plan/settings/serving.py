"""Memory of writing: weights, key-value cache and workspace of one rollout engine on one GPU.

vLLM reserves a share of the GPU and gives its cache what is left of it; the torch engine holds a
static cache for the sequences that it writes at once. Both are exact arithmetic over logged runs,
but for the workspace, whose coefficient of the sampler is a reading of six logs. Knows no roles,
stages or specs.
"""

from dataclasses import dataclass

from coloop.plan.settings.architecture import Architecture, ParameterCount, kv_bytes_per_token
from coloop.plan.settings.training import forward_bytes

GIB = 2**30
BLOCK = 16
"""Tokens in one block of vLLM's cache."""
PREFILL_TOKENS = 8192
"""Most tokens of prompts that the torch engine reads in one pass."""
DRAW_BYTES = 10.0
"""Bytes per sequence and word of a draw of the torch engine: logits of 16 bits, in float32, and
their log-probs."""
SAMPLER_BYTES = 38.5
"""Bytes per sequence and word that vLLM's sampler needs when all sequences sample at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What an engine holds on one GPU while it writes."""

    weights: float
    workspace: float
    kv_cache: float
    tokens: int
    """Tokens that the cache holds."""
    sequences: int
    """Sequences of full length that run at once."""

    @property
    def total(self) -> float:
        return self.weights + self.workspace + self.kv_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSetup:
    """Everything that an engine's memory depends on."""

    arch: Architecture
    parameters: ParameterCount
    weight_bytes: float
    """Bytes of one parameter."""
    compute_bytes: int
    sequence_length: int
    """Prompt and completion at their longest."""
    max_sequences: int
    tensor_parallel: int = 1

    @property
    def weights(self) -> float:
        """Bytes of the weights on one GPU."""
        return self.weight_bytes * self.parameters.total / self.tensor_parallel

    @property
    def token_bytes(self) -> float:
        """Bytes of cache for one token on one GPU."""
        return kv_bytes_per_token(
            self.arch, self.compute_bytes, self.tensor_parallel, self.sequence_length
        )


def serve_from_budget(
    setup: ServingSetup,
    *,
    budget: float,
    batched_tokens: int = 8192,
) -> Serving:
    """vLLM: the cache gets what weights, workspace and the library leave of `budget` bytes."""
    workspace = max(
        SAMPLER_BYTES * setup.max_sequences * setup.arch.vocab_size,
        batched_tokens
        * forward_bytes(
            setup.arch,
            compute_bytes=setup.compute_bytes,
            tensor_parallel=setup.tensor_parallel,
        ),
    )
    left = budget - setup.weights - workspace - library_bytes(setup.tensor_parallel)
    tokens = int(left // (BLOCK * setup.token_bytes)) * BLOCK if left > 0 else 0
    return Serving(
        weights=setup.weights,
        workspace=workspace,
        kv_cache=max(left, 0.0),
        tokens=max(tokens, 0),
        sequences=max(min(setup.max_sequences, tokens // max(setup.sequence_length, 1)), 0),
    )


def serve_static(setup: ServingSetup, *, prefill_tokens: int, has_graphs: bool) -> Serving:
    """The torch engine: room for `max_sequences` of full length, and one prefill at a time; the
    CUDA graphs of its steps hold what one step computes beside that."""
    tokens = setup.max_sequences * setup.sequence_length
    logits = DRAW_BYTES * setup.max_sequences * setup.arch.vocab_size
    prefill = prefill_tokens * forward_bytes(setup.arch, compute_bytes=setup.compute_bytes)
    return Serving(
        weights=setup.weights,
        workspace=max(prefill, logits) + (logits if has_graphs else 0.0),
        kv_cache=tokens * setup.token_bytes,
        tokens=tokens,
        sequences=setup.max_sequences,
    )


def library_bytes(tensor_parallel: int) -> float:
    """What vLLM's process holds outside of torch: more with communication between GPUs."""
    return (0.14 if tensor_parallel == 1 else 0.54) * GIB


def asleep_bytes(tensor_parallel: int) -> float:
    """What stays on the GPU while vLLM sleeps."""
    return (0.8 if tensor_parallel == 1 else 2.4) * GIB
