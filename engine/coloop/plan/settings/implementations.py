"""How trainers differ: what each does with memory and time, with the source of each fact.

An estimate describes the trainer that `training.implementation` names. A fact is a field of
`Implementation`, and a key of `sources` in each row: where it was read or measured.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from coloop.plan.settings.passes import Attention
from coloop.spec.lean import record
from coloop.spec.training import Backend
from coloop.spec.training import Implementation as Name

Kernels = Literal["eager", "fused"]
"""What a layer keeps: modules of Hugging Face one by one, or fused norms and native grouped
attention."""
Root = Literal["whole", "parts"]
"""Sharded weights outside of the layers. `whole`: embedding, last norm and head are one group,
gathered from the forward pass to the end of the backward pass, and their gradients are whole until
then. `parts`: embedding and head are groups of their own, if they are not tied."""
Selective = Literal["layers", "products"]
"""Selective checkpointing: of every second layer everything, or of each layer attention and every
second matrix product."""
Allocator = Literal["blocks", "segments"]
"""PyTorch's caching allocator with blocks of fixed size, or with `expandable_segments`."""


Eager = Literal["never", "adapters", "always"]
"""Generation without CUDA graphs."""


@record
class Implementation:
    """Facts of one trainer."""

    loss_bytes: Mapping[int, float]
    """Peak bytes per token and vocabulary entry of loss and gradient, by bytes of the compute
    dtype."""
    chunk_loss_bytes: Mapping[int, float]
    """The same while the loss goes over chunks of the logits (`loss_chunk`)."""
    loss_parts: int | None
    """Parts in which the loss goes over the tokens unless `loss_chunk` says more; None: as many as
    keep the logits small."""
    has_frozen_head_gradient: bool
    """A loss in chunks makes the gradient of a head that does not learn, too."""
    kernels: Kernels
    routed_bytes: float
    """Kept for each expert of a token, per element of its state: copies on the way in and out, and
    a float32 one where its weight is applied in that type."""
    root: Root
    selective: Selective
    has_sequence_parallel: bool
    """Tensor-parallel ranks divide norms, residuals and kept inputs too."""
    has_fused_step: bool
    """AdamW steps without temporary copies (`fused`); else `foreach` holds one more copy of the
    trained weights."""
    adapter_residual: Mapping[Literal["sharded", "quantized"], int]
    """Bytes of a residual stream that is wider than the compute dtype while adapters train: on
    sharded weights, or on one GPU over quantized weights."""
    reduces_wide: bool
    """Sharded gradients are summed in float32 whatever the weights are held in; else in the type
    of the weights that the optimizer updates."""
    nf4_bytes: float
    """Bytes of a weight in nf4 with its scales."""
    sums_whole: bool
    """Gradients of earlier micro-batches are whole on each GPU, because sharded ones are reduced
    only with the last micro-batch (`no_sync`)."""
    shares_reference: bool
    """The reference of an adapter is the learner's own frozen weights with the adapter off,
    whatever the backend. coloop shares them where both are whole, or spread by FSDP2."""
    allocator: Allocator
    reads_whole_prompts: bool
    """Its own generation reads a prompt in one pass, however long it is."""
    attention: Attention
    """Kernels of attention in training."""
    is_compiled: bool
    """Norms, rotary embedding and activation function are one kernel each in training."""
    routing_traffic: float
    """Bytes read and written for each value of a token that goes to an expert and back, in a
    pass."""
    has_float32_head: bool
    """The logits are products in float32, and are computed again for the backward pass."""
    pads_to_maximum: bool
    """Rows that are not packed are padded to the longest that the loop allows; else to the longest
    among those of similar length."""
    is_eager: Eager
    """Its engine launches kernels one by one."""
    quantized_cache_bytes: int | None
    """Bytes of an element of the key-value cache where weights are quantized; None: as computed
    with."""
    fp4_gain: float
    """Speed-up of products with 4-bit weights over bfloat16 in its engine; 1: they are unpacked."""
    rescores_stale: bool
    """Log-probs of texts that were generated while it learned are measured again before several
    optimizer steps; else those of the engine are used."""
    sources: Mapping[str, str]
    """By fact."""


HF_LOSS: Final = {2: 12.0, 4: 12.0}
"""Hugging Face's causal loss, all copies: 16-bit logits and gradient, float32 logits, log-softmax
and gradient less what is freed meanwhile. Older versions than 4.45 shift a copy: 14.7."""
IN_PLACE: Final = {2: 8.0, 4: 8.0}
"""Cross entropy whose backward pass writes the gradient over the logits: 16-bit logits, one float32
copy, 16-bit gradient."""
COMPILED: Final = {2: 6.0, 4: 8.0}
"""Compiled cross entropy: 16-bit logits, their gradient, and one 16-bit temporary."""

_FSDP1 = "torch FullyShardedDataParallel: the root is not freed after its forward pass"
_TRACKER = "torch's FSDPMemTracker on Hugging Face models, tests/engine/estimate"
_FOREACH = "torch.optim.AdamW: `foreach` is its default on a GPU"
_FMS = "fms-acceleration, scripts/benchmarks/refs/a100_80gb_liger.csv"
_ACCELERATE = "accelerate, GradientAccumulationPlugin: `sync_each_batch` is false by default"

NF4, NF4_TWICE = 0.5 + 4 / 64, 0.5 + 1 / 64 + 4 / (64 * 256)
"""4 bits and a float32 scale for each 64 weights; or an 8-bit scale, and a float32 one for each 256
of these (double quantization, arXiv 2305.14314)."""
_PRIME_MOE = "prime-rl, benchmarks: Qwen3-30B-A3B and INTELLECT-3 beside dense models"

COLOOP: Final = Implementation(
    loss_bytes={2: 14.0, 4: 12.0},
    chunk_loss_bytes={2: 14.0, 4: 12.0},
    loss_parts=None,
    has_frozen_head_gradient=False,
    kernels="eager",
    routed_bytes=4.0,
    root="whole",
    selective="layers",
    has_sequence_parallel=False,
    has_fused_step=True,
    adapter_residual={},
    reduces_wide=True,
    nf4_bytes=NF4,
    sums_whole=False,
    shares_reference=False,
    allocator="blocks",
    reads_whole_prompts=False,
    attention="flash2",
    is_compiled=False,
    routing_traffic=115.0,
    has_float32_head=False,
    pads_to_maximum=False,
    is_eager="never",
    quantized_cache_bytes=None,
    fp4_gain=1.0,
    rescores_stale=True,
    sources={
        "loss_bytes": "workers/training: logits, float32 copy, gradients of log-sum and token",
        "chunk_loss_bytes": "workers/training: each chunk is recomputed",
        "loss_parts": "plan/settings/learning.py",
        "has_frozen_head_gradient": "workers/training/fused.py",
        "kernels": _TRACKER,
        "routed_bytes": "transformers, models/mixtral: 16-bit copies in and out",
        "root": "workers/training/shards.py: `fully_shard` of the model with torch's default",
        "selective": "spec/training.py",
        "has_sequence_parallel": "workers/training/tensor.py cuts matrices only",
        "has_fused_step": "workers/training/optimizers.py",
        "adapter_residual": "workers/training/forward.py: activations in the compute dtype",
        "reduces_wide": "workers/training/shards.py: `reduce_dtype`",
        "nf4_bytes": "bitsandbytes, without double quantization",
        "sums_whole": "workers/training/states.py reduces each micro-batch",
        "shares_reference": "workers/initial_weights.py",
        "allocator": "torch's default; vLLM's sleep needs it",
        "reads_whole_prompts": "plan/settings/serving.py",
        "attention": "workers/training: torch's scaled_dot_product_attention, FlashAttention-2",
        "is_compiled": "workers/training: modules of transformers",
        "routing_traffic": _PRIME_MOE,
        "has_float32_head": "workers/training/fused.py: products in the compute dtype",
        "pads_to_maximum": "workers/training: rows of similar length are padded to each other",
        "is_eager": "workers/rollout: CUDA graphs in both engines",
        "quantized_cache_bytes": "vLLM, kv_cache_dtype: `auto`",
        "fp4_gain": "vLLM: 4-bit weights are unpacked (Marlin)",
        "rescores_stale": "workers/training/learner.py: old log-probs of every update",
    },
)

_HUGGING_FACE: Final = Implementation(
    loss_bytes=HF_LOSS,
    chunk_loss_bytes={2: 8.0, 4: 8.0},
    loss_parts=1,
    has_frozen_head_gradient=False,
    kernels="eager",
    routed_bytes=4.0,
    root="parts",
    selective="layers",
    has_sequence_parallel=False,
    has_fused_step=False,
    adapter_residual={"sharded": 4, "quantized": 4},
    reduces_wide=False,
    nf4_bytes=NF4,
    sums_whole=True,
    shares_reference=True,
    allocator="blocks",
    reads_whole_prompts=True,
    attention="flash2",
    is_compiled=False,
    routing_traffic=115.0,
    has_float32_head=False,
    pads_to_maximum=False,
    is_eager="always",
    quantized_cache_bytes=None,
    fp4_gain=1.0,
    rescores_stale=True,
    sources={
        "loss_bytes": "transformers, loss/loss_utils.py ForCausalLMLoss; the memory tracker",
        "chunk_loss_bytes": "Liger-Kernel, ops/fused_linear_cross_entropy.py: in place, float32",
        "loss_parts": "transformers, ForCausalLMLoss: all tokens at once",
        "has_frozen_head_gradient": "Liger-Kernel: only if the weight requires a gradient",
        "kernels": _TRACKER,
        "routed_bytes": "transformers, models/mixtral: 16-bit copies in and out",
        "root": _FMS,
        "selective": "transformers has none of its own",
        "has_sequence_parallel": "transformers, tp_plan: norms are replicated",
        "has_fused_step": _FOREACH + "; transformers takes `adamw_torch_fused` from torch 2.8 on",
        "adapter_residual": _FMS + "; peft, prepare_model_for_kbit_training",
        "reduces_wide": "torch FullyShardedDataParallel: in the type of the parameters",
        "nf4_bytes": "transformers, BitsAndBytesConfig: `bnb_4bit_use_double_quant` is false",
        "sums_whole": _ACCELERATE,
        "shares_reference": "trl, GRPOTrainer: `disable_adapter` in place of a reference model",
        "allocator": "torch's default",
        "reads_whole_prompts": "transformers, GenerationMixin without `prefill_chunk_size`",
        "attention": "flash-attn 2, or torch's scaled_dot_product_attention",
        "is_compiled": "transformers: modules run one by one",
        "routing_traffic": "transformers, integrations/moe.py: torch's grouped products",
        "has_float32_head": "transformers, loss/loss_utils.py: logits are cast after the product",
        "pads_to_maximum": "transformers, DataCollatorWithPadding: longest of the batch",
        "is_eager": "QwenLM/Qwen3, speed_benchmark: 0.9 ms a layer for a single token",
        "quantized_cache_bytes": "transformers: DynamicCache in the dtype of the states",
        "fp4_gain": "bitsandbytes: 4-bit weights are unpacked",
        "rescores_stale": "trl, GRPOTrainer: old log-probs of every batch that is used again",
    },
)


def _like(other: Implementation, **facts: tuple[Any, str]) -> Implementation:
    """Another trainer's facts with some of its own, `(value, source)` each."""
    own = {name: value for name, (value, _) in facts.items()}
    sources = {name: source for name, (_, source) in facts.items()}
    return replace(other, **own, sources={**other.sources, **sources})


IMPLEMENTATIONS: Final[Mapping[Name, Implementation]] = {
    "coloop": COLOOP,
    "trl": _HUGGING_FACE,
    "fms": _like(
        _HUGGING_FACE,
        loss_bytes=(IN_PLACE, _FMS + ", fused cross entropy"),
        adapter_residual=({"sharded": 4}, _FMS),
    ),
    "ms-swift": _like(
        _HUGGING_FACE,
        shares_reference=(True, "ms-swift, RLHF trainers: `disable_adapter`"),
    ),
    "torchtune": _like(
        COLOOP,
        loss_bytes=(HF_LOSS, "torchtune, CEWithChunkedOutputLoss upcasts each chunk"),
        chunk_loss_bytes=(HF_LOSS, "torchtune, CEWithChunkedOutputLoss upcasts each chunk"),
        loss_parts=(8, "torchtune, CEWithChunkedOutputLoss: `num_output_chunks`"),
        root=("parts", "torchtune, recipes/configs: custom_sharded_layers"),
        has_fused_step=(True, "torchtune, recipes/configs: `optimizer.fused`"),
        reduces_wide=(False, "torchtune, training.shard_model: no mixed precision policy"),
        nf4_bytes=(NF4_TWICE, "torchao, nf4tensor.py: 8-bit scales of blocks of 64"),
        shares_reference=(True, "torchtune, lora_dpo_distributed: `disable_adapter`"),
        is_compiled=(True, "torchtune, recipes: `compile`, as in its published tables"),
    ),
    "litgpt": _like(
        COLOOP,
        loss_bytes=(IN_PLACE, "litgpt, utils.chunked_cross_entropy in the dtype of the logits"),
        chunk_loss_bytes=(IN_PLACE, "litgpt, utils.chunked_cross_entropy"),
        loss_parts=(1, "litgpt: chunks of the loss keep all logits"),
        kernels=("eager", "litgpt, model.py: plain modules, norms in float32"),
        root=("parts", "as with accelerate: FullyShardedDataParallel"),
        has_fused_step=(False, _FOREACH),
        reduces_wide=(False, "litgpt: `bf16-true`"),
        sums_whole=(True, "litgpt, finetune: `fabric.no_backward_sync` while accumulating"),
        shares_reference=(False, "litgpt has none"),
        reads_whole_prompts=(True, "litgpt, generate/base.py"),
        is_eager=("always", "litgpt, generate/base.py: a Python loop without `compile`"),
    ),
    "torchtitan": _like(
        COLOOP,
        loss_bytes=(COMPILED, "torchtitan, components/loss.py: compiled cross entropy"),
        chunk_loss_bytes=(COMPILED, "torchtitan, components/loss.py"),
        loss_parts=(1, "torchtitan, components/loss.py"),
        kernels=("fused", "torchtitan, models/llama3: layers are compiled, keys are not repeated"),
        root=("parts", "torchtitan, parallelize.py: embedding, and norm with output"),
        routed_bytes=(8.0, "torchtitan, models/moe: scores are applied in float32"),
        selective=("products", "torchtitan, distributed/activation_checkpoint.py"),
        has_sequence_parallel=(True, "torchtitan, parallelize.py: SequenceParallel norms"),
        has_fused_step=(True, "torchtitan, components/optimizer.py: implementation `fused`"),
        allocator=("segments", "torchtitan, run_train.sh: expandable_segments"),
        shares_reference=(False, "torchtitan has none"),
        is_compiled=(True, "torchtitan, parallelize.py apply_compile"),
    ),
    "prime-rl": _like(
        COLOOP,
        loss_bytes=({2: 16.0, 4: 16.0}, "prime-rl, models/layers/lm_head.py: float32 logits"),
        chunk_loss_bytes=(
            {2: 10.0, 4: 10.0},
            "prime-rl, models/layers/lm_head.py: float32 logits and gradient, 16-bit gradient",
        ),
        loss_parts=(1, "prime-rl, trainer config: `fused_lm_head_chunk_size` is off by default"),
        has_frozen_head_gradient=(True, "prime-rl, models/layers/lm_head.py: `grad_weight`"),
        routed_bytes=(8.0, "prime-rl, models/layers/moe.py: scores are applied in float32"),
        root=("parts", "prime-rl, trainer/model.py setup_fsdp"),
        has_fused_step=(False, _FOREACH),
        shares_reference=(False, "prime-rl has none"),
        attention=("native", "prime-rl, benchmarks: flash_attention_3 on H100, 4 on B200"),
        is_compiled=(True, "prime-rl, trainer/model.py: layers are compiled"),
        has_float32_head=(True, "prime-rl, models/layers/lm_head.py: `hidden.float() @ w.float()`"),
    ),
    "verl": _like(
        COLOOP,
        loss_bytes=(IN_PLACE, "verl, utils/torch_functional.py: flash-attn's loss, in place"),
        chunk_loss_bytes=(IN_PLACE, "verl, utils/kernel: `use_fused_kernels`"),
        loss_parts=(1, "verl, actor config: `use_fused_kernels` is off by default"),
        root=("whole", "verl, utils/fsdp_utils.py apply_fsdp2: head and norm in the root"),
        has_fused_step=(False, _FOREACH),
        shares_reference=(True, "verl, fsdp_workers.py: `disable_adapter` of the actor"),
        pads_to_maximum=(True, "verl: prompts and responses are padded to their limits"),
        is_eager=("adapters", "verl, examples with LoRA: `enforce_eager`"),
        rescores_stale=(False, "verl, docs/advance/fully_async.md: use_rollout_log_probs"),
    ),
    "megatron": _like(
        COLOOP,
        loss_bytes=(IN_PLACE, "Megatron-LM, tensor_parallel/cross_entropy.py: softmax in place"),
        chunk_loss_bytes=(IN_PLACE, "Megatron-LM, tensor_parallel/cross_entropy.py"),
        loss_parts=(1, "Megatron-LM, tensor_parallel/cross_entropy.py"),
        kernels=("fused", "Megatron-LM, training/theoretical_memory_usage.py: 18 + 4 ffn / hidden"),
        has_sequence_parallel=(True, "arXiv 2205.05198"),
        has_fused_step=(True, "Megatron-LM: Apex or Transformer Engine FusedAdam"),
        shares_reference=(False, "Megatron-LM has none"),
        attention=("native", "Transformer Engine: attention of cuDNN"),
        is_compiled=(True, "Transformer Engine: fused norms, rotary embedding and SwiGLU"),
        routing_traffic=(16.0, "Transformer Engine: fused permutation; Megatron-Bridge's table"),
    ),
    "llm-foundry": _like(
        COLOOP,
        root=("whole", _FSDP1),
        kernels=("fused", "llm-foundry, layers/norm.py: low_precision_layernorm"),
        attention=("triton", "llm-foundry, scripts/train/benchmarking: attn_impl triton"),
        is_compiled=(True, "llm-foundry: fused norms, no rotary embedding"),
        shares_reference=(False, "llm-foundry has none"),
    ),
    "tensorrt-llm": _like(
        COLOOP,
        quantized_cache_bytes=(1, "TensorRT-LLM, perf-overview.md: FP8 checkpoints and cache"),
        fp4_gain=(3.0, "Blackwell's 4-bit products; TensorRT-LLM, perf-overview.md: NVFP4"),
    ),
}
"""By the name that a loop gives."""


def implementation_of(name: Name, backend: Backend) -> Implementation:
    """Facts of the trainer that an estimate describes; coloop has no `megatron` backend, so a loop
    that names only this means Megatron-LM's own."""
    if name == "coloop" and backend == "megatron":
        return IMPLEMENTATIONS["megatron"]
    return IMPLEMENTATIONS[name]
