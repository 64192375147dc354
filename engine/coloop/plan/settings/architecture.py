"""Architectures of transformers, and what follows from them: parameters and key-value cache.

Reads the fields of Hugging Face configs. Knows nothing of files, memory schemes or hardware.
Invariant: for the model types in `MODEL_TYPES` the count equals the number of elements of the model
that transformers builds from the same config.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

MODEL_TYPES = frozenset(
    {
        "deepseek_v3",
        "gemma",
        "gemma2",
        "gemma3_text",
        "llama",
        "mistral",
        "mixtral",
        "qwen2",
        "qwen3",
        "qwen3_moe",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    experts: int
    """Routed experts per layer."""
    active_experts: int
    """Routed experts used per token."""
    shared_experts: int
    """Experts used by every token."""
    ffn: int
    """Inner width of one expert."""
    dense_layers: int
    """Leading layers with an ordinary feed-forward block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values are kept as one compressed vector."""

    query_rank: int
    cache_rank: int
    rope_dim: int
    plain_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What determines the size and the work of a decoder."""

    name: str
    model_type: str
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    tied: bool
    """Whether the output matrix is the embedding."""
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    qk_norm: bool
    norms_per_layer: int
    max_positions: int
    moe: MixtureOfExperts | None
    latent: LatentAttention | None
    sliding_window: int | None
    sliding_layers: int
    """Layers with a sliding window, whose cache ends at it."""
    is_exact: bool
    """Whether the count equals that of the model transformers builds."""
    attention_layers: int | None = None
    """Layers with a key-value cache, if others keep a state; None: all."""
    counted: "ParameterCount | None" = None
    """Parameters counted on a built model."""

    @property
    def query_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim


class UnknownArchitecture(ValueError):
    """A config lacks a required fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """Parameters of a model, in elements."""

    total: int
    active: int
    """Parameters used per token, including the output matrix."""
    embedding: int
    """One vocabulary matrix."""
    head: int
    """A separate output matrix; 0 if tied."""
    layer: int
    routed: int = 0
    """Parameters of routed experts."""

    @property
    def decoded(self) -> int:
        """Parameters read to generate one token: all active ones except the input embedding."""
        return self.active - (self.embedding if self.head else 0)


def architecture_from_config(config: Mapping[str, Any], name: str = "") -> Architecture:
    """Reads a Hugging Face config; a composite one is read through its `text_config`."""
    facts = config.get("text_config") or config
    model_type = str(facts.get("model_type") or "llama")
    try:
        heads, hidden = int(facts["num_attention_heads"]), int(facts["hidden_size"])
        layers = int(facts["num_hidden_layers"])
        window, sliding_layers = _sliding(facts, model_type, layers)
        attention_bias = bool(facts.get("attention_bias", False))
        return Architecture(
            name=name or str(facts.get("_name_or_path") or model_type),
            model_type=model_type,
            vocab_size=int(facts["vocab_size"]),
            hidden_size=hidden,
            layers=layers,
            heads=heads,
            kv_heads=int(facts.get("num_key_value_heads") or heads),
            head_dim=int(facts.get("head_dim") or hidden // heads),
            ffn=int(facts["intermediate_size"]),
            tied=bool(facts.get("tie_word_embeddings", model_type.startswith("gemma"))),
            qkv_bias=attention_bias or model_type in ("qwen2", "qwen2_moe"),
            output_bias=attention_bias and model_type != "qwen2",
            mlp_bias=bool(facts.get("mlp_bias", False)),
            qk_norm=model_type in ("qwen3", "qwen3_moe", "gemma3_text"),
            norms_per_layer=4 if model_type in ("gemma2", "gemma3_text") else 2,
            max_positions=int(facts.get("max_position_embeddings") or 2048),
            moe=_experts(facts, model_type),
            latent=latent_attention(facts),
            sliding_window=window,
            sliding_layers=sliding_layers,
            is_exact=model_type in MODEL_TYPES,
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise UnknownArchitecture(f"the config of {name or model_type} lacks {error}") from error


def is_computed(config: Mapping[str, Any]) -> bool:
    """Whether the formulas here give the exact count: a known type, no number left to a default,
    and equal layers."""
    if config.get("text_config") or str(config.get("model_type")) not in MODEL_TYPES:
        return False
    needed = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    if any(config.get(name) is None for name in (*needed, "intermediate_size")):
        return False
    return not config.get("mlp_only_layers") and config.get("decoder_sparse_step") in (None, 1)


def is_plain_decoder(config: Mapping[str, Any]) -> bool:
    """Whether the config mentions no experts and only attention layers, so that a Llama of the same
    size is a fair guess."""
    words = ("expert", "moe", "mamba", "ssm", "linear_", "conv", "kv_lora", "per_layer")
    return not config.get("text_config") and not any(
        word in str(key).lower() for key, value in config.items() if value for word in words
    )


@lru_cache(maxsize=256)
def count_parameters(arch: Architecture, head: str = "language_model") -> ParameterCount:
    """Parameters of a model; `head` is `language_model`, or `score` for one number per position."""
    if arch.counted is not None:
        if head == "language_model":
            return arch.counted
        total, active, own = arch.counted.total, arch.counted.active, arch.counted.head
        more = arch.hidden_size - own
        return replace(
            arch.counted, total=total + more, active=active + more, head=arch.hidden_size
        )
    h, ffn, experts = arch.hidden_size, arch.ffn, arch.moe
    embedding = arch.vocab_size * h
    own_head = 0 if arch.tied else embedding
    output = own_head if head == "language_model" else h
    fixed = _attention_parameters(arch) + arch.norms_per_layer * h
    dense = fixed + 3 * h * ffn + (2 * ffn + h if arch.mlp_bias else 0)
    sparse = sparse_active = dense_layers = 0
    if experts is None:
        dense_layers, sparse_layers = arch.layers, 0
    else:
        dense_layers, sparse_layers = experts.dense_layers, arch.layers - experts.dense_layers
        router = h * experts.experts
        if arch.model_type == "deepseek_v3":
            router += experts.experts  # the bias that balances the load
        width = 3 * h * experts.ffn
        sparse = fixed + width * (experts.experts + experts.shared_experts) + router
        sparse_active = fixed + width * (experts.active_experts + experts.shared_experts) + router
    total = embedding + output + h + dense_layers * dense + sparse_layers * sparse
    active = embedding + output + h + dense_layers * dense + sparse_layers * sparse_active
    return ParameterCount(
        total=total,
        active=active,
        embedding=embedding,
        head=output if head == "score" else own_head,
        layer=max(dense if dense_layers else 0, sparse),
        routed=0 if experts is None else sparse_layers * 3 * h * experts.ffn * experts.experts,
    )


def kv_bytes_per_token(
    arch: Architecture, dtype_bytes: int = 2, tensor_parallel: int = 1, context: int = 0
) -> float:
    """Bytes of key-value cache per token on one GPU. With a `context` beyond the sliding window,
    the mean over the context, as windowed layers stop growing there."""
    if arch.latent is not None:
        return float(
            arch.layers * (arch.latent.cache_rank + arch.latent.rope_dim) * dtype_bytes
        )  # every rank of a tensor group keeps the whole vector
    width = max(arch.kv_heads / tensor_parallel, 1) * arch.head_dim
    layers, windowed = arch.layers, 0.0
    if arch.attention_layers is not None:
        layers = arch.attention_layers
    if arch.sliding_window and context > arch.sliding_window:
        windowed = arch.sliding_layers * (1 - arch.sliding_window / context)
    return 2 * max(layers - windowed, 0.0) * width * dtype_bytes


def _attention_parameters(arch: Architecture) -> int:
    h, q, k = arch.hidden_size, arch.query_width, arch.kv_width
    if (latent := arch.latent) is not None:
        n, rope, plain = arch.heads, latent.rope_dim, latent.plain_dim
        query = h * latent.query_rank + latent.query_rank
        query += latent.query_rank * n * (plain + rope)
        if not latent.query_rank:
            query = h * n * (plain + rope)
        cache = h * (latent.cache_rank + rope) + latent.cache_rank
        expand = latent.cache_rank * n * (plain + latent.value_dim)
        return query + cache + expand + n * latent.value_dim * h
    weights = h * q + 2 * h * k + q * h
    biases = (q + 2 * k if arch.qkv_bias else 0) + (h if arch.output_bias else 0)
    return weights + biases + (2 * arch.head_dim if arch.qk_norm else 0)


def _experts(facts: Mapping[str, Any], model_type: str) -> MixtureOfExperts | None:
    count = (
        facts.get("num_experts") or facts.get("num_local_experts") or facts.get("n_routed_experts")
    )
    if not count:
        return None
    return MixtureOfExperts(
        experts=int(count),
        active_experts=int(facts["num_experts_per_tok"]),
        shared_experts=int(facts.get("n_shared_experts") or 0),
        ffn=int(facts.get("moe_intermediate_size") or facts["intermediate_size"]),
        dense_layers=int(facts.get("first_k_dense_replace") or 0),
    )


def latent_attention(facts: Mapping[str, Any]) -> LatentAttention | None:
    """From a config that has it; raises `KeyError` for a missing width."""
    if not facts.get("kv_lora_rank"):
        return None
    return LatentAttention(
        query_rank=int(facts.get("q_lora_rank") or 0),
        cache_rank=int(facts["kv_lora_rank"]),
        rope_dim=int(facts["qk_rope_head_dim"]),
        plain_dim=int(facts["qk_nope_head_dim"]),
        value_dim=int(facts["v_head_dim"]),
    )


def _sliding(facts: Mapping[str, Any], model_type: str, layers: int) -> tuple[int | None, int]:
    """The window, and how many layers have it; every pattern-th layer has full attention."""
    window = facts.get("sliding_window")
    if not window or facts.get("use_sliding_window") is False:
        return None, 0
    if kinds := facts.get("layer_types"):
        return int(window), sum(kind == "sliding_attention" for kind in kinds)
    default = {"gemma2": 2, "gemma3_text": 6}.get(model_type)
    pattern = facts.get("sliding_window_pattern") or default
    return int(window), layers - layers // int(pattern) if pattern else layers
