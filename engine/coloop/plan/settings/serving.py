"""Memory and time of generation with one rollout engine on GPUs: weights, key-value cache and
workspace on one GPU, and seconds. Times on a CPU are in `cores`.

vLLM reserves a share of the GPU, and its cache gets what is left of it; the torch engine has a
static cache for the sequences that it generates at once. Both formulas are exact for logged runs,
except for the workspace, whose sampler coefficient is fitted to six logs.
"""

from dataclasses import dataclass
from typing import Literal

from coloop.plan.settings.architecture import kv_bytes_per_token
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.training import forward_bytes
from coloop.spec.presets import DeviceFacts
from coloop.spec.table_sizes import TableSize

GIB = 2**30
BLOCK = 16
PREFILL_TOKENS = 8192
"""Most prompt tokens per pass."""
DRAW_BYTES = 10.0
"""Bytes per sequence and vocabulary entry while the torch engine samples: 16-bit logits, float32
logits and log-probs."""
SAMPLER_BYTES = 38.5
"""Bytes per sequence and vocabulary entry in vLLM's sampler if all sequences sample at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Memory of an engine on one GPU while it generates."""

    weights: float
    workspace: float
    kv_cache: float
    tokens: int
    """Capacity of the cache."""
    sequences: int
    """Full-length sequences at once."""


def serve_from_budget(engine: Engine, budget: float) -> Serving:
    """vLLM: the cache gets what weights, workspace and library leave of `budget` bytes."""
    weights, tensor = engine.weights, engine.tensor_parallel
    token = forward_bytes(
        weights.arch, compute_bytes=weights.precision.compute_bytes, tensor_parallel=tensor
    )
    sampler = SAMPLER_BYTES * engine.at_once * weights.arch.vocab_size
    workspace = max(sampler, PREFILL_TOKENS * token)
    left = budget - engine.weight_bytes - workspace - library_bytes(tensor)
    tokens = int(left // (BLOCK * engine.token_bytes)) * BLOCK if left > 0 else 0
    return Serving(
        weights=engine.weight_bytes,
        workspace=workspace,
        kv_cache=max(left, 0.0),
        tokens=max(tokens, 0),
        sequences=max(min(engine.at_once, tokens // max(engine.length, 1)), 0),
    )


def serve_static(engine: Engine, *, prefill_tokens: int, has_graphs: bool) -> Serving:
    """The torch engine: room for `at_once` full-length sequences and one prefill; CUDA graphs hold
    the logits of one step in addition."""
    arch, compute = engine.weights.arch, engine.weights.precision.compute_bytes
    tokens = engine.at_once * engine.length
    logits = DRAW_BYTES * engine.at_once * arch.vocab_size
    prefill = prefill_tokens * forward_bytes(arch, compute_bytes=compute)
    return Serving(
        weights=engine.weight_bytes,
        workspace=max(prefill, logits) + (logits if has_graphs else 0.0),
        kv_cache=tokens * engine.token_bytes,
        tokens=tokens,
        sequences=engine.at_once,
    )


def library_bytes(tensor_parallel: int) -> float:
    """Memory of vLLM's process outside of torch, more with communication between GPUs."""
    return (0.14 if tensor_parallel == 1 else 0.54) * GIB


def asleep_bytes(tensor_parallel: int) -> float:
    """GPU memory that vLLM keeps while it sleeps."""
    return (0.8 if tensor_parallel == 1 else 2.4) * GIB


# Time of generation on GPUs: a roofline model over the tokens of many rows.
#
# With many rows, memory or compute is busy all the time. With few, or with one very long row, the
# time is that row's length times the minimum time of a token. Checked against published throughput
# of saturated engines and of single rows.

BANDWIDTH_SHARE = 0.85
COMPUTE_SHARE = 0.40
OVERLAP = 0.75
"""Share of the shorter of compute and memory time that adds to the longer."""
SINGLE_BANDWIDTH_SHARE = 0.73
"""Share of the bandwidth that a single row reaches."""
COLLECTIVE_SECONDS = 1.0e-5
"""Minimum time of a sum over a tensor-parallel group."""
TOKEN_FLOOR_SECONDS = {"vllm": 0.0032, "torch": 0.008}
"""Minimum time per token of a row, for any model."""


FP8_GAIN = 1.8
"""Speed-up of fp8 products over bfloat16 in engines."""


def writing_seconds(
    engine: Engine, gpu: DeviceFacts, texts: TableSize, at_once: float
) -> tuple[float, Literal["compute", "bandwidth", "latency"]]:
    """Seconds until every row is generated, and what limits it. `texts` and `at_once`: rows of one
    copy of the engine, in total and at once."""
    if not texts.rows:
        return 0.0, "latency"
    gpus, arch, count = engine.tensor_parallel, engine.weights.arch, engine.weights.count
    precision = engine.weights.precision
    context = texts.prompt + texts.written / 2
    # with fewer key heads than GPUs, several GPUs keep the same ones
    cached = kv_bytes_per_token(arch, 1, gpus, int(context)) * precision.compute_bytes * gpus
    bandwidth = gpu.bandwidth * gpus
    gain = FP8_GAIN if precision.has_fp8_products else 1.0
    flops = COMPUTE_SHARE * gpu.bf16_flops * gain * gpus
    weights = precision.engine_bytes * _read_parameters(engine, at_once)
    memory = (weights + at_once * context * cached) / (BANDWIDTH_SHARE * bandwidth)
    compute = 2 * count.active * at_once / flops
    collective = _collective_seconds(engine, gpu, at_once)
    step = max(memory, compute) + OVERLAP * min(memory, compute) + collective
    prompt = texts.prompt * 2 * count.active / flops
    steady = texts.rows * (texts.written * step / at_once + prompt)
    row = precision.engine_bytes * count.decoded + context * cached
    alone = row / (SINGLE_BANDWIDTH_SHARE * bandwidth)
    floor = TOKEN_FLOOR_SECONDS.get(engine.kind, TOKEN_FLOOR_SECONDS["vllm"])
    latency = texts.written_max * (floor + alone)
    if latency >= steady:
        return latency, "latency"
    return steady, "bandwidth" if memory >= compute else "compute"


def _read_parameters(engine: Engine, at_once: float) -> float:
    """Parameters read per step: all experts that some row uses."""
    count, moe = engine.weights.count, engine.weights.arch.moe
    if moe is None:
        return count.decoded
    unused: float = (1 - moe.active_experts / moe.experts) ** at_once
    return count.decoded + (count.total - count.active) * (1 - unused)


def _collective_seconds(engine: Engine, gpu: DeviceFacts, at_once: float) -> float:
    """Two sums over the tensor-parallel group per layer."""
    if engine.tensor_parallel == 1:
        return 0.0
    arch = engine.weights.arch
    moved = 2 * at_once * arch.hidden_size * 2
    return 2 * arch.layers * (COLLECTIVE_SECONDS + moved / gpu.link_bandwidth)
