"""Seconds of a pass over tokens on one GPU: the work as it is done, and the traffic beside it.

    products     2 FLOPs a token and parameter forward, as many for the gradient of the inputs and
                 of the weights, as many again for what is recomputed
    attention    2 q L FLOPs a token and layer forward (causal, two products of width q over L / 2
                 positions each), 2.5 times that backward; a window shortens L
    traffic      norms, residuals, rotary embedding, activation function, tokens on their way to
                 experts, loss: bound by memory
    launches     at least a time for each layer and micro-batch, more for a layer of experts

Shares of the peak are of what is done. That of products is fitted on published pre-training
(`tests/bench/README.md` has the errors by source); the bytes are counted. Knows no roles or stages.
"""

from functools import lru_cache
from typing import Literal

from coloop.plan.settings.architecture import Architecture, ParameterCount
from coloop.plan.settings.traced import Constant, named
from coloop.spec.lean import record
from coloop.spec.presets import DeviceFacts

FITTED = "published training speeds (tests/bench)"
COUNTED = "reads and writes of the kernels, counted"
HOPPER = "FlashAttention-3 (arXiv 2407.08608, figure 5)"
PRODUCT_SHARE = Constant(1.35, "what products alone reach, relative to it", FITTED)
"""Of `training_share`, what products alone reach: that share counts the FLOPs of the model and the
time of everything else too."""
MEMORY_SHARE = Constant(0.85, "share of the bandwidth that kernels reach", FITTED)
"""Of the bandwidth, what elementwise kernels reach."""
BACKWARD_ATTENTION = Constant(2.5, "attention backward, relative to forward", "arXiv 2307.08691")
"""FLOPs of attention backward, relative to forward: five products of the two, as flash attention
recomputes the scores (Dao 2023, arXiv 2307.08691)."""
FP8_GAIN = Constant(1.8, "speed-up of fp8 products", FITTED)
"""Speed-up of fp8 products over bfloat16: their peak is twice as high."""
FP8_CASTS = Constant(5.0, "bytes a value that is cast to fp8", COUNTED)
"""Bytes a value that goes into an fp8 product: read twice (for its maximum, and to be cast), and
written once."""
LOSS_TRAFFIC = {
    True: Constant(40.0, "bytes read and written a logit", COUNTED),
    False: Constant(16.0, "bytes read and written a logit", COUNTED),
}
"""Bytes read and written for each logit, with and without a gradient."""
ADAPTER_TRAFFIC = Constant(6.0, "bytes for each input and output of an adapted matrix", COUNTED)
"""Bytes for each input and output of an adapted matrix: the input is read again, the output is
written, scaled and added."""
LAUNCH_SECONDS = {
    True: Constant(3.0e-4, "least time of a layer", FITTED, "s"),
    False: Constant(9.0e-4, "least time of a layer", FITTED, "s"),
}
"""Least time of a layer forward, with fused kernels and with modules of transformers: kernels are
launched one by one. Models of transformers take 0.9 ms a layer for a single token too
(`serving.EAGER_SECONDS`)."""
EXPERTS_SECONDS = Constant(3.2e-3, "least time of the experts of a layer", FITTED, unit="s")
"""The same of the experts of a layer: tokens are counted, sorted and sent, and the host waits for
the counts."""
BACKWARD_LAUNCHES = Constant(1.5, "launches backward, relative to forward", FITTED)
"""Launches backward, relative to forward."""

Attention = Literal["flash2", "native", "triton"]
"""Kernels of attention: FlashAttention-2; those written for the tensor cores of the GPU's own
generation (FlashAttention-3 and 4, cuDNN); FlashAttention in Triton with a bias."""
FLASH2_SHARE = Constant(0.62, "share of the peak that FlashAttention-2 reaches", HOPPER)
FLASH2_FLOPS = Constant(360e12, "operations a second of FlashAttention-2", HOPPER, unit="FLOP/s")
"""FlashAttention-2 does not use the asynchronous tensor cores of Hopper and Blackwell, and is
hardly faster there (Shah 2024, arXiv 2407.08608, figure 5)."""
NATIVE_SHARE = Constant(0.52, "share of the peak that attention reaches", FITTED)
"""Of the peak, forward and backward together: FlashAttention-3 on an H100 and 4 on a B200."""
TRITON_SHARE = Constant(0.55, "share of FlashAttention-2 that attention reaches", FITTED)
"""Of FlashAttention-2."""


@record
class Kernels:
    """How a trainer computes its layers."""

    attention: Attention = "flash2"
    is_fused: bool = False
    """Norms, rotary embedding and activation function are one kernel each."""
    routed_bytes: float = 115.0
    """Bytes read and written for each value of a token that goes to an expert and back, in a pass:
    it is copied, padded, multiplied by its weight and added up."""
    has_float32_head: bool = False
    """The logits are products in float32, and are computed again backward."""


@record
class Pass:
    """What a GPU does for one token of a pass."""

    length: float
    """Tokens of the text that attention covers."""
    micro_batch: float
    """Tokens at once on the GPU."""
    has_backward: bool = True
    trains_all: bool = True
    """False for adapters: whole matrices have no gradients."""
    recomputed: float = 0.0
    """Share of the layers computed again for the backward pass."""
    is_fp8: bool = False
    packed_bytes: float = 0.0
    """Bytes of weights that are quantized: they are unpacked for each pass."""
    adapter_width: float = 0.0
    """Inputs and outputs of all adapted matrices that a token passes."""

    @property
    def forwards(self) -> float:
        """Forward passes, with what is recomputed."""
        return 1.0 + (self.recomputed if self.has_backward else 0.0)


@record
class TokenSeconds:
    """Seconds for one token on one GPU."""

    products: float
    attention: float
    traffic: float
    launches: float
    """The least time, whatever there is to compute."""

    @property
    def total(self) -> float:
        computed = self.products + self.attention + self.traffic
        return named("a token", max(computed, self.launches), "s")


def product_flops(gpu: DeviceFacts) -> float:
    """FLOPs a second of large 16-bit products in training."""
    share = min(gpu.training_share * PRODUCT_SHARE, 0.85)
    return named("operations a second that products reach", gpu.bf16_flops * share, "FLOP/s")


def attention_speed(gpu: DeviceFacts, attention: Attention) -> float:
    """FLOPs a second of attention in training."""
    if attention == "native":
        return max(NATIVE_SHARE * gpu.bf16_flops, attention_speed(gpu, "flash2"))
    flash2 = min(FLASH2_SHARE * gpu.bf16_flops, FLASH2_FLOPS)
    return TRITON_SHARE * flash2 if attention == "triton" else flash2


def token_seconds(
    arch: Architecture, count: ParameterCount, gpu: DeviceFacts, kernels: Kernels, work: Pass
) -> TokenSeconds:
    times, head = _times(work), count.head or count.embedding
    logits = head / arch.hidden_size
    again = work.forwards - 1.0  # the head is not computed again
    products = 2 * (times * (count.decoded - head) + (times - again) * head) / product_flops(gpu)
    passes = work.forwards + (2.0 if work.has_backward else 0.0)
    moved = passes * layers_traffic(arch, kernels)
    moved += passes * ADAPTER_TRAFFIC * work.adapter_width
    moved += logits * LOSS_TRAFFIC[work.has_backward]
    if work.is_fp8:
        products /= FP8_GAIN
        moved += times / 3 * FP8_CASTS * arch.layers * _product_values(arch)
    if kernels.has_float32_head:
        products += 2 * (2 if work.has_backward else 1) * head / gpu.fp32_flops
        moved += logits * LOSS_TRAFFIC[work.has_backward]
    if work.packed_bytes:  # unpacked into 16 bits for each pass
        per_pass = (work.packed_bytes + 2 * count.total) / max(work.micro_batch, 1.0)
        moved += (passes - 1) * per_pass
    covered = work.forwards + (BACKWARD_ATTENTION if work.has_backward else 0.0)
    rounds = work.forwards + (BACKWARD_LAUNCHES if work.has_backward else 0.0)
    launches = LAUNCH_SECONDS[kernels.is_fused] * arch.layers
    if arch.moe is not None:
        launches += EXPERTS_SECONDS * (arch.layers - arch.moe.dense_layers)
    attention = covered * attention_flops(arch, work.length)
    attention /= attention_speed(gpu, kernels.attention)
    moved = named("bytes moved for a token", moved, "B")
    return TokenSeconds(
        products=named("products of a token", products, "s"),
        attention=named("attention of a token", attention, "s"),
        traffic=named("memory traffic of a token", moved / (MEMORY_SHARE * gpu.bandwidth), "s"),
        launches=named("launches of a token", rounds * launches / max(work.micro_batch, 1.0), "s"),
    )


def _times(work: Pass) -> float:
    """How often each matrix is multiplied: forward, again if recomputed, for the gradient of its
    inputs, and for its own."""
    if not work.has_backward:
        return 1.0
    return work.forwards + (2.0 if work.trains_all else 1.0)


def attention_flops(arch: Architecture, length: float) -> float:
    """FLOPs of causal attention forward for a token, mean over a text of `length` tokens."""
    width: float = arch.query_width
    if (latent := arch.latent) is not None:
        width = arch.heads * (latent.plain_dim + latent.rope_dim + latent.value_dim) / 2
    layers = arch.layers if arch.attention_layers is None else arch.attention_layers
    windowed = min(arch.sliding_layers, layers) if arch.sliding_window else 0
    seen = (layers - windowed) * length / 2
    if windowed:
        window = min(float(arch.sliding_window or 0), length)
        seen += windowed * window * (1 - window / (2 * max(length, 1.0)))
    return named("operations of attention forward", 4 * width * seen)


@lru_cache(maxsize=256)
def layers_traffic(arch: Architecture, kernels: Kernels) -> float:
    """Bytes that the layers read and write forward for a token beside their products, in 16 bits.

    Fused: a norm 4h and a residual 6h, twice each, 4 (q + k) for rotary embedding, and 6f for the
    activation function. Modules of transformers: a norm 36h (float32 copies), 20 (q + k) and 10f.
    """
    h, q, k = arch.hidden_size, arch.query_width, arch.kv_width
    norm, rotary, activation = (4, 4, 6) if kernels.is_fused else (36, 20, 10)
    moved: float = arch.norms_per_layer * norm * h + 12 * h + rotary * (q + k)
    moved += activation * _inner(arch)
    if arch.qk_norm:
        moved += norm * (q + k)
    moved *= arch.layers
    if arch.moe is not None:
        sparse = arch.layers - arch.moe.dense_layers
        moved += sparse * kernels.routed_bytes * h * arch.moe.active_experts
    return named("bytes moved by the layers forward", moved, "B")


def _inner(arch: Architecture) -> int:
    if arch.moe is None:
        return arch.ffn
    return arch.moe.ffn * (arch.moe.active_experts + arch.moe.shared_experts)


def _product_values(arch: Architecture) -> float:
    """Values that go into a layer's products forward and backward: inputs, and gradients of outputs
    twice."""
    h, q, k, inner = arch.hidden_size, arch.query_width, arch.kv_width, _inner(arch)
    inputs = 2 * h + q + inner
    outputs = q + 2 * k + 2 * h + 2 * inner
    return inputs + 2 * outputs


def count_tensors(arch: Architecture) -> int:
    """Tensors of a model as it is saved: each expert has its own."""
    moe = arch.moe
    each = 4 + arch.norms_per_layer + (3 if arch.qkv_bias else 0) + (2 if arch.qk_norm else 0)
    if moe is None:
        return arch.layers * (each + 3) + 3
    sparse = arch.layers - moe.dense_layers
    return arch.layers * each + sparse * (3 * (moe.experts + moe.shared_experts) + 1) + 3
