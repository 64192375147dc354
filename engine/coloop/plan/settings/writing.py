"""How long an engine on GPUs takes to write: a roofline over the tokens of many rows.

Two ends: with many rows the memory or the arithmetic is busy all the time; with few, or with one
very long row, the time is that row's length times the least time of one token. Checked against
published throughput of saturated engines and of single rows. Knows no roles, stages or specs.
"""

from dataclasses import dataclass
from typing import Literal

from coloop.plan.settings.architecture import Architecture, ParameterCount, kv_bytes_per_token

BANDWIDTH_SHARE = 0.85
COMPUTE_SHARE = 0.40
OVERLAP = 0.75
"""Of the smaller of compute and bandwidth, this much is not hidden behind the larger."""
SINGLE_BANDWIDTH_SHARE = 0.73
"""Reached by one row alone."""
COLLECTIVE_SECONDS = 1.0e-5
"""Least time of a sum over a tensor group."""
TOKEN_FLOOR_SECONDS = {"vllm": 0.0032, "torch": 0.008}
"""Least time of one token of a row, whatever the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingLoad:
    """What one engine has to write, and with what."""

    arch: Architecture
    count: ParameterCount
    width: float
    """Bytes of a parameter."""
    cache_width: float
    """Bytes of a cached number."""
    rows: float
    at_once: float
    """Rows that are written at once."""
    prompt: float
    written: float
    """Mean length of a completion."""
    longest: float
    tensor_parallel: int
    bandwidth: float
    """Of one GPU, in bytes per second."""
    flops: float
    """Of one GPU, per second."""
    link: float
    engine: str = "vllm"
    product_gain: float = 1.0
    """How much faster products are in the type of the weights than `flops` says."""


def writing_seconds(load: WritingLoad) -> tuple[float, Literal["compute", "bandwidth", "latency"]]:
    """Time until every row is written, and what holds it back."""
    if not load.rows:
        return 0.0, "latency"
    gpus, count = load.tensor_parallel, load.count
    context = load.prompt + load.written / 2
    # with fewer key heads than GPUs, several GPUs keep the same ones
    cached = kv_bytes_per_token(load.arch, 1, gpus, int(context)) * load.cache_width * gpus
    bandwidth = load.bandwidth * gpus
    flops = COMPUTE_SHARE * load.flops * load.product_gain * gpus
    weights = load.width * _read_parameters(load)
    memory = (weights + load.at_once * context * cached) / (BANDWIDTH_SHARE * bandwidth)
    compute = 2 * count.active * load.at_once / flops
    step = max(memory, compute) + OVERLAP * min(memory, compute) + _collective_seconds(load)
    steady = load.rows * (
        load.written * step / load.at_once + load.prompt * 2 * count.active / flops
    )
    alone = (load.width * count.decoded + context * cached) / (SINGLE_BANDWIDTH_SHARE * bandwidth)
    floor = TOKEN_FLOOR_SECONDS.get(load.engine, TOKEN_FLOOR_SECONDS["vllm"])
    latency = load.longest * (floor + alone)
    if latency >= steady:
        return latency, "latency"
    return steady, "bandwidth" if memory >= compute else "compute"


def _read_parameters(load: WritingLoad) -> float:
    """Parameters that one step reads: of sparse layers every expert that some row uses."""
    count, moe = load.count, load.arch.moe
    if moe is None:
        return count.decoded
    unused: float = (1 - moe.active_experts / moe.experts) ** load.at_once
    sparse = count.total - count.active
    dense = count.decoded
    return dense + sparse * (1 - unused)


def _collective_seconds(load: WritingLoad) -> float:
    """Two sums over the tensor group in every layer."""
    if load.tensor_parallel == 1:
        return 0.0
    moved = 2 * load.at_once * load.arch.hidden_size * 2
    return 2 * load.arch.layers * (COLLECTIVE_SECONDS + moved / load.link)
