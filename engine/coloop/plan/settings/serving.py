"""Memory and time of generation with one rollout engine on GPUs: weights, key-value cache and
workspace on one GPU, and seconds. Times on a CPU are in `cores`.

vLLM reserves a share of the GPU, and its cache gets what is left of it; the torch engine has a
static cache for the sequences that it generates at once. Both formulas are exact for logged runs,
except for the workspace, whose sampler coefficient is fitted to six logs.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, sqrt
from typing import Literal

from coloop.plan.settings.architecture import kv_bytes_per_token
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.traced import Constant, listed, named
from coloop.plan.settings.training import forward_bytes
from coloop.spec.lean import record
from coloop.spec.presets import DeviceFacts
from coloop.spec.table_sizes import TableSize

GIB = 2**30
BLOCK = 16
PREFILL_TOKENS = 8192
"""Most prompt tokens per pass."""
LOGS = "logs of vLLM"
OWN = "copies of the logits, counted"
EAGER = "transformers 4.46 on an A100"
PUBLISHED = "published throughput of engines (tests/bench)"
DRAW_BYTES = Constant(10.0, "bytes a logit while tokens are drawn", OWN)
"""Bytes per sequence and vocabulary entry while the torch engine samples: 16-bit logits, float32
logits and log-probs."""
SAMPLER_BYTES = Constant(38.5, "bytes a logit in vLLM's sampler", LOGS)
"""Bytes per sequence and vocabulary entry in vLLM's sampler if all sequences sample at once."""


LIBRARY_BYTES = {
    False: Constant(0.14 * GIB, "vLLM outside of torch", LOGS, "B"),
    True: Constant(0.54 * GIB, "vLLM outside of torch", LOGS, "B"),
}
"""Of vLLM's process, without and with communication between GPUs."""
ASLEEP_BYTES = {
    False: Constant(0.8 * GIB, "vLLM while it sleeps", LOGS, "B"),
    True: Constant(2.4 * GIB, "vLLM while it sleeps", LOGS, "B"),
}
"""The same while it sleeps."""


@record
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
    workspace = named("workspace of the engine", max(sampler, PREFILL_TOKENS * token), "B")
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
        workspace=named(
            "workspace of the torch engine",
            max(prefill, logits) + (logits if has_graphs else 0.0),
            "B",
        ),
        kv_cache=named("static cache of the engine", tokens * engine.token_bytes, "B"),
        tokens=tokens,
        sequences=engine.at_once,
    )


def library_bytes(tensor_parallel: int) -> float:
    """Memory of vLLM's process outside of torch, more with communication between GPUs."""
    return LIBRARY_BYTES[tensor_parallel > 1]


def asleep_bytes(tensor_parallel: int) -> float:
    """GPU memory that vLLM keeps while it sleeps."""
    return ASLEEP_BYTES[tensor_parallel > 1]


# Time of generation on GPUs: a roofline model over the tokens of many rows.
#
# All slots are busy while rows wait; then rows end one after another, shorter ones first, and each
# token costs less, down to the pace of a single row. The longest row decides when the stage ends,
# which no further GPU shortens. Checked against published throughput of saturated engines and of
# single rows.

BANDWIDTH_SHARE = Constant(0.85, "share of the bandwidth that many rows reach", PUBLISHED)
COMPUTE_SHARE = Constant(0.40, "share of the peak that generation reaches", PUBLISHED)
OVERLAP = Constant(0.75, "share of the shorter that adds to the longer", PUBLISHED)
"""Share of the shorter of compute and memory time that adds to the longer."""
SINGLE_BANDWIDTH_SHARE = Constant(0.73, "share of the bandwidth that one row reaches", PUBLISHED)
"""Share of the bandwidth that a single row reaches."""
COLLECTIVE_SECONDS = Constant(1.0e-5, "least time of a sum over GPUs", PUBLISHED, unit="s")
"""Minimum time of a sum over a tensor-parallel group."""
MACHINES_SECONDS = Constant(3.0e-5, "least time of a sum over machines", PUBLISHED, unit="s")
"""The same between machines."""
TOKEN_FLOOR_SECONDS = {
    "vllm": Constant(0.0032, "least time of a token", PUBLISHED, "s"),
    "torch": Constant(0.008, "least time of a token", PUBLISHED, "s"),
}
"""Minimum time of a step that generates a token of each row, for any model, with CUDA graphs."""
ROUTED_SECONDS = Constant(1.5e-4, "least time of a layer of experts", PUBLISHED, unit="s")
"""The same for a layer of experts, on top."""
EAGER_SECONDS = Constant(9.0e-4, "least time of a layer", EAGER, unit="s")
"""Minimum time of a layer where kernels are launched one by one: 0.9 ms for a single token of
models of 24 to 36 layers in transformers 4.46 on an A100, and about 1 ms in vLLM with
`enforce_eager` and adapters."""
PREFILL_SHARE = Constant(0.55, "share of the peak that prompts reach", PUBLISHED)
"""Of the peak, what a pass over prompts reaches; many tokens share the weights."""

STRATA = (
    *(-1.863, -1.318, -1.01, -0.776, -0.579, -0.402, -0.237, -0.078),
    *(0.078, 0.237, 0.402, 0.579, 0.776, 1.01, 1.318, 1.863),
)
"""Normal quantiles of the middles of sixteen equal parts of a distribution."""
SPREAD = 0.8
"""Standard deviation of the logarithm of completion lengths around their median."""


@lru_cache(maxsize=512)
def lengths_of_rows(mean: float, most: float, rows: float) -> tuple[tuple[float, float], ...]:
    """Lengths of sampled completions as (tokens, share of the rows), the shortest first; the last
    is the longest of them.

    Log-normal up to `most`, with this mean: rows that would be longer are cut there.
    """
    if mean >= most or rows <= 1:
        return ((min(mean, most) if rows <= 1 else most, 1.0),)
    shares = [exp(SPREAD * z) for z in STRATA]
    low, high = mean / sum(shares), most * exp(-SPREAD * STRATA[0])
    for _ in range(40):
        median = sqrt(low * high)
        found = sum(min(most, median * share) for share in shares) / len(shares)
        low, high = (median, high) if found < mean else (low, median)
    longest = min(most, median * exp(SPREAD * sqrt(2 * log(max(rows, 1.0)))))
    texts = [(min(most, median * share), 1 / len(shares)) for share in shares]
    last = min(1 / rows, 1 / len(shares))
    texts[-1] = texts[-1][0], texts[-1][1] - last
    return (*texts, (max(longest, texts[-1][0]), last))


def writing_seconds(
    engine: Engine, gpu: DeviceFacts, texts: TableSize, at_once: float
) -> tuple[float, Literal["compute", "bandwidth", "latency"]]:
    """Seconds until every row is generated, and what limits it. `texts` and `at_once`: rows of one
    copy of the engine, in total and at once."""
    if not texts.rows:
        return 0.0, "latency"
    pace = _Pace(engine, gpu)
    waiting = max(texts.rows - at_once, 0.0)
    full = pace.step(at_once, texts.prompt + texts.written / 2)
    steady = waiting * texts.written * full.seconds / at_once
    single = done = before = 0.0
    parts = []
    lengths = lengths_of_rows(float(texts.written), float(texts.written_max), float(texts.rows))
    for length, share in lengths:
        rows = max(at_once * (1 - done), 1.0)
        step = pace.step(rows, texts.prompt + (before + length) / 2)
        seconds = (length - before) * step.seconds
        parts.append(seconds)
        single += seconds if step.is_latency else 0.0
        done, before = done + share, length
    seconds = (
        named("rows that wait for a place", steady, "s")
        + listed("until the longest row ends", "part", parts, "s")
        + named("prompts", texts.rows * texts.prompt * pace.prompt, "s")
    )
    if single > seconds / 2:
        return seconds, "latency"
    return seconds, "bandwidth" if full.memory >= full.compute else "compute"


@dataclass(frozen=True, slots=True)
class _Step:
    """One token of each row."""

    memory: float
    compute: float
    fixed: float

    @property
    def seconds(self) -> float:
        longer, shorter = max(self.memory, self.compute), min(self.memory, self.compute)
        return named("a token of each row", longer + OVERLAP * shorter + self.fixed, "s")

    @property
    def is_latency(self) -> bool:
        """Whether more rows would hardly take longer."""
        return self.fixed > self.memory + self.compute


class _Pace:
    def __init__(self, engine: Engine, gpu: DeviceFacts) -> None:
        self._engine, self._gpu = engine, gpu
        arch = engine.weights.arch
        peak = gpu.bf16_flops * engine.gain * engine.tensor_parallel
        self._token = 2 * engine.weights.count.active / (COMPUTE_SHARE * peak)
        prompt = 2 * engine.weights.count.active / (PREFILL_SHARE * peak)
        self.prompt = named("a token of a prompt", prompt, "s")
        """Seconds of a prompt token."""
        self._floor: float = TOKEN_FLOOR_SECONDS.get(engine.kind, TOKEN_FLOOR_SECONDS["vllm"])
        if arch.moe is not None:
            self._floor += ROUTED_SECONDS * (arch.layers - arch.moe.dense_layers)
        if engine.is_eager:
            self._floor = EAGER_SECONDS * arch.layers

    def step(self, rows: float, context: float) -> _Step:
        engine, gpus = self._engine, self._engine.tensor_parallel
        arch, precision = engine.weights.arch, engine.weights.precision
        # with fewer key heads than GPUs, several GPUs keep the same ones
        cached = kv_bytes_per_token(arch, engine.cache_bytes, gpus, int(context)) * gpus
        read = named("read weights", precision.engine_bytes * _read_parameters(engine, rows), "B")
        read += named("read cache", rows * context * cached, "B")
        share = BANDWIDTH_SHARE - (BANDWIDTH_SHARE - SINGLE_BANDWIDTH_SHARE) / rows
        return _Step(
            memory=named("memory traffic", read / (share * self._gpu.bandwidth * gpus), "s"),
            compute=named("products", self._token * rows, "s"),
            fixed=self._fixed(rows),
        )

    def _fixed(self, rows: float) -> float:
        """Seconds of a token of each row that neither memory nor products explain."""
        if self._engine.tensor_parallel == 1:
            return self._floor
        return self._floor + _collective_seconds(self._engine, self._gpu, rows)


def _read_parameters(engine: Engine, at_once: float) -> float:
    """Parameters read per step: all experts that some row uses."""
    count, moe = engine.weights.count, engine.weights.arch.moe
    if moe is None:
        return count.decoded
    unused: float = (1 - moe.active_experts / moe.experts) ** at_once
    return count.decoded + (count.total - count.active) * (1 - unused)


def _collective_seconds(engine: Engine, gpu: DeviceFacts, at_once: float) -> float:
    """Two sums over the tensor-parallel group per layer. A group over several machines sums within
    each of them and then between them."""
    arch = engine.weights.arch
    moved = 2 * at_once * arch.hidden_size * 2
    one = COLLECTIVE_SECONDS + moved / gpu.link_bandwidth
    if engine.machines > 1:
        one += MACHINES_SECONDS + moved / engine.network
    return named("sums over the GPUs of the engine", 2 * arch.layers * one, "s")
