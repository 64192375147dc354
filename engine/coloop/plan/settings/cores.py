"""Times of one process on CPU cores: passes over tokens, generation, updates and weight syncs.

Each time is the sum of matrix products, the work besides them, and a fixed cost per call. Knows one
process at a time, no roles or stages. Constants are fitted to generation and training with 0.05M to
1M parameters in one process and 1M to 20M in two, measured on two cores of an AMD EPYC with AVX-512
BF16 (tests/bench/README.md).
"""

from coloop.plan.settings.architecture import Architecture
from coloop.plan.settings.traced import Constant, named
from coloop.spec.lean import record
from coloop.spec.table_sizes import TableSize

FITTED = "measured on an AMD EPYC (tests/bench)"
HALF_GAIN = Constant(2.0, "speed-up of products in bfloat16", FITTED)
"""Speed-up of products in bfloat16 on a CPU with instructions for it."""
SLOWER_AROUND = Constant(1.8, "slow-down beside products without AVX-512", FITTED)
"""Slow-down of work besides matrix products on a core without AVX-512. Fitted to nine preset loops
on a core with AVX2: CPU time in 18 phases was 0.42 to 2.31 times the prediction, in nine of them
within a factor of 1.5."""
THREADS_EXPONENT = 0.25
"""Speed of products is proportional to this power of the threads of a process, for models that are
wide enough (`machine.WIDTH_OF_THREAD`): two threads are 1.2 times as fast as one. Other work gains
almost nothing, so a step with 20M parameters and short texts is 1.1 times as fast."""
AROUND_SECONDS = Constant(1.2e-6, "time of a token in a layer, beside products", FITTED, unit="s")
"""Per token and layer of a pass, besides products: norms, attention, activations. The next constant
is the same for each unit of the hidden size."""
AROUND_WIDTH_SECONDS = Constant(
    2.1e-8, "the same for each unit of the hidden size", FITTED, unit="s"
)
LAYER_SECONDS = Constant(2.0e-4, "least time of a layer", FITTED, unit="s")
"""Per layer of a forward pass, independent of its tokens."""
LEARNED_LAYER_SECONDS = Constant(
    1.8e-3, "least time of a layer, forward and backward", FITTED, unit="s"
)
"""Per layer of a forward and backward pass, independent of its tokens."""
UPDATE_SECONDS = Constant(3.2e-3, "least time of an optimizer step", FITTED, unit="s")
"""Per optimizer step, besides passes and parameters."""
PARAMETER_SECONDS = Constant(6.4e-9, "time of a parameter in an optimizer step", FITTED, unit="s")
"""Per parameter of an optimizer step, which reads gradient, moments and weight and writes them."""
WRITING_SHARE = Constant(0.5, "speed of products of few rows", FITTED)
PACKED_SHARE = Constant(0.75, "speed of products of few rows, packed", FITTED)
"""Speed of products of few rows relative to those of a pass: with matrices as stored, and
packed."""
CACHED_BYTES = 2**27
"""Largest size of weights that stay in the CPU's cache between tokens, so that the shares above
apply."""
MEMORY_BYTES_PER_SECOND = Constant(8.4e9, "memory bandwidth of a core", FITTED, unit="B/s")
"""Memory bandwidth of one core for larger weights; the next constant is the share of their
products. Measured on an AMD EPYC with AVX2, 530 MB of weights: 74, 188, 259 and 786 ms for 1, 8, 16
and 64 rows."""
STREAMED_SHARE = Constant(0.8, "speed of products from memory", FITTED)
PACKED_TOKENS = 32
"""New tokens from which packing the matrices pays off."""
PACKED_BYTES = 2**28
"""Largest size of weights that are packed."""
WRITTEN_LAYER_SECONDS = Constant(5.0e-4, "least time of a layer for a token", FITTED, unit="s")
"""Per layer and generated token, independent of the number of rows."""
WRITTEN_ROW_SECONDS = Constant(1.0e-6, "time of a row in a layer for a token", FITTED, unit="s")
"""Per row, layer and generated token. The next constant is the same for each token of context."""
WRITTEN_CONTEXT_SECONDS = Constant(1.0e-8, "the same for each token of context", FITTED, unit="s")
SYNC_SECONDS = Constant(8.0e-3, "least time of a sync", FITTED, unit="s")
"""To send new weights to an engine in the same process and verify them. The next constant is the
same for each parameter."""
SYNC_PARAMETER_SECONDS = Constant(6.0e-9, "time of a parameter in a sync", FITTED, unit="s")


@record
class Core:
    flops: float
    """float32 operations per second of one core."""
    threads: int
    is_half: bool
    """Whether products run in bfloat16 with native instructions."""
    crowding: float
    """Slow-down because processes share cores; 1: none."""
    around: float = 1.0
    """Slow-down of the work besides products, relative to a core with AVX-512."""

    @property
    def products(self) -> float:
        """Operations per second of all threads, each on its own core."""
        gain = float(self.threads**THREADS_EXPONENT)
        speed = self.flops * gain * (HALF_GAIN if self.is_half else 1.0)
        return named("operations a second of a process", speed, "FLOP/s")


def pass_seconds(
    core: Core, arch: Architecture, active: float, tokens: float, length: float
) -> float:
    """Seconds of a forward pass over texts of this mean length. `active`: parameters used per
    token."""
    flops = 2 * active + 2 * arch.layers * arch.query_width * length
    around = arch.layers * (AROUND_SECONDS + AROUND_WIDTH_SECONDS * arch.hidden_size)
    around = named("time of a token beside products", around * core.around, "s")
    flops = named("operations of a token", flops)
    passed = tokens * (flops / core.products + around) * core.crowding
    return named("a forward pass", passed, "s")


def learned_seconds(
    core: Core,
    arch: Architecture,
    active: float,
    *,
    tokens: float,
    length: float,
    recompute: float,
    micro_batches: float,
) -> float:
    """Seconds of forward and backward passes. `recompute`: share of the forward pass that is
    repeated. `micro_batches`: passes that the tokens are divided into."""
    once = pass_seconds(core, arch, active, tokens, length)
    fixed = micro_batches * arch.layers * LEARNED_LAYER_SECONDS * core.crowding * core.around
    return (3 + recompute) * once + named("least time of the layers", fixed, "s")


def stepped_seconds(core: Core, trainable: float) -> float:
    seconds = (UPDATE_SECONDS + trainable * PARAMETER_SECONDS) * core.crowding
    return named("an optimizer step", seconds, "s")


def written_seconds(
    core: Core,
    arch: Architecture,
    active: float,
    texts: TableSize,
    *,
    at_once: float,
    is_packed: bool,
    held: float = 0.0,
) -> float:
    """Seconds of generation in one process, one token of each text at a time; the first comes with
    the prompt. `held`: bytes of the matrices read per token."""
    waves = max(texts.rows / at_once, 1.0)
    steps = waves * max(texts.written_max - 1, 0.0)
    busy = min(texts.written / max(texts.written_max, 1.0) * 1.2, 1.0)
    tokens = steps * at_once * busy
    share = PACKED_SHARE if is_packed else WRITING_SHARE
    fetched = 0.0
    if held > CACHED_BYTES:  # each token of all rows reads every matrix from memory
        share = STREAMED_SHARE
        fetched = steps * held / MEMORY_BYTES_PER_SECOND * core.crowding
    products = 2 * active / (core.products * share)
    context = texts.prompt + texts.written / 2
    around = arch.layers * (WRITTEN_ROW_SECONDS + WRITTEN_CONTEXT_SECONDS * context)
    around *= core.around
    calls = steps * arch.layers * WRITTEN_LAYER_SECONDS * core.crowding * core.around
    read = texts.rows / texts.alike * texts.prompt
    prompts = pass_seconds(core, arch, active, read, texts.prompt)
    return (
        named("least time of the layers", calls, "s")
        + named("weights read from memory", fetched, "s")
        + named("prompts", prompts, "s")
        + named("tokens of all rows", tokens * (products + around) * core.crowding, "s")
    )


def synced_seconds(total: float) -> float:
    return SYNC_SECONDS + total * SYNC_PARAMETER_SECONDS
