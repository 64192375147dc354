"""Parameters and key-value caches of decoders, computed from the fields of a Hugging Face config.

One entry of `FAMILIES` for each model type. Formulas follow the modules in `models/<type>/` of
transformers 5.19, and a test compares each with the model that transformers builds. A config that
lacks a field which its formula reads is left to that model (`counted`), which knows the defaults.
Types that are not here too.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from coloop.plan.settings.shapes import (
    Architecture,
    Cache,
    LatentAttention,
    MixtureOfExperts,
    ParameterCount,
)
from coloop.spec.lean import record

Rule = bool | str
"""Whether something is there: always, never, or as a field of the config says."""
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
USED = ("num_experts_per_tok", "moe_topk", "moe_k")


class Fields:
    """Fields of a config under the names that most types use."""

    def __init__(self, config: Mapping[str, Any], family: "Family") -> None:
        self._config, self._family = config, family
        self.hidden = self.number("hidden_size")
        self.layers = self.number("num_hidden_layers")
        self.heads = self.number("num_attention_heads")
        self.head_dim = self.optional("head_dim") or family.head_dim or self.hidden // self.heads
        self.kv_heads = family.kv_heads(self)

    @property
    def queries(self) -> int:
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        return self.kv_heads * self.head_dim

    def number(self, name: str) -> int:
        """Raises `KeyError` if the config does not have it."""
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return int(value)

    def optional(self, name: str) -> int:
        """0 if it is missing or null."""
        return int(self.get(name) or 0)

    def get(self, name: str) -> Any:
        return self._config.get(self._family.names.get(name, name))

    def first(self, names: tuple[str, ...]) -> int:
        return next((int(value) for name in names if (value := self.get(name))), 0)

    def has(self, rule: Rule) -> bool:
        return rule if isinstance(rule, bool) else bool(self.get(rule))

    def kind(self, layer: int) -> str:
        """Of an entry of `layer_types`; empty if there are none."""
        kinds = self.get("layer_types") or ()
        return str(kinds[layer]) if layer < len(kinds) else ""


Amount = Callable[[Fields], int]
Layered = Callable[[Fields, int], int]
"""Parameters of something in the layer with an index."""


@record
class Experts:
    """Blocks of routed experts."""

    used: tuple[str, ...] = USED
    ffn: str = "moe_intermediate_size"
    router: int = 0
    """More parameters per expert, besides one row of the router's matrix."""
    bias: bool = False
    shared: Amount = lambda fields: 0
    """Inner width of the block that every token uses beside them."""
    shared_gate: bool = False
    """Whether that block has a gate of its own."""
    is_sparse: Callable[[Fields, int], bool] = lambda fields, layer: True


@record
class Family:
    """A model type: what its layers consist of."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Names of its fields, where they differ."""
    tied: bool = False
    """Default of `tie_word_embeddings`."""
    head_dim: int | None = None
    """Default of `head_dim`; None: the hidden size over the heads."""
    kv_heads: Amount = lambda fields: fields.number("num_key_value_heads")
    norm: Literal[0, 1, 2] = 1
    """Vectors of a normalization: 2 with a bias, 0 without parameters."""
    norms: Layered = lambda fields, layer: 2
    """Normalizations of a layer over the hidden size."""
    qkv_bias: Rule = False
    out_bias: Rule = False
    mlp_bias: Rule = False
    matrices: Literal[2, 3] = 3
    """Of a feed-forward block: 3 with a gate."""
    inner: Amount = lambda fields: fields.number("intermediate_size")
    dense: Amount | None = None
    """Inner width of blocks without experts, if it differs."""
    qk_norm: Amount = lambda fields: 0
    gates: int = 1
    """Times that queries are computed: 2 with an output gate."""
    more: Layered = lambda fields, layer: 0
    """Other parameters of a layer."""
    whole: Amount = lambda fields: 0
    """Other parameters of the model."""
    tables: Amount = lambda fields: 0
    """Lookup tables besides the embedding."""
    head_bias: Rule = False
    experts: Experts | None = None
    mixer: Callable[[Fields, int], tuple[bool, int | None]] = lambda fields, layer: (True, None)
    """Whether a layer has attention, and parameters of what it has in its place or beside it."""
    latent: bool = False
    feeds: Callable[[Fields, int], bool] = lambda fields, layer: True
    """Whether a layer has a feed-forward block."""
    window: Callable[[Fields, int], int | None] = lambda fields, layer: None


def computed_architecture(config: Mapping[str, Any], name: str) -> Architecture | None:
    """The architecture of a config; None if its type has no formula or a field is missing."""
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None or config.get("text_config") or config.get("auto_map") is not None:
        return None
    try:
        return _architecture(Fields(config, family), family, str(config["model_type"]), name)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def _architecture(fields: Fields, family: Family, model_type: str, name: str) -> Architecture:
    hidden, vocabulary = fields.hidden, fields.number("vocab_size")
    said = fields.get("tie_word_embeddings")
    tied = family.tied if said is None else bool(said)
    mixture = _mixture(fields, family)
    blocks = [_layer(fields, family, layer) for layer in range(fields.layers)]
    embedding, tables = vocabulary * hidden, family.tables(fields)
    head = 0 if tied else embedding
    fixed = embedding + tables + head + family.norm * hidden + family.whole(fields)
    fixed += vocabulary if fields.has(family.head_bias) else 0
    routed = sum(experts for _, experts in blocks)
    total = fixed + sum(own + experts for own, experts in blocks)
    resting = 0
    if mixture is not None and mixture.active_experts:
        resting = routed - routed * min(mixture.active_experts, mixture.experts) // mixture.experts
    return Architecture(
        name=name,
        model_type=model_type,
        vocab_size=vocabulary,
        hidden_size=hidden,
        layers=fields.layers,
        heads=fields.heads,
        kv_heads=fields.kv_heads,
        head_dim=fields.head_dim,
        ffn=(family.dense or family.inner)(fields),
        tied=tied,
        qkv_bias=fields.has(family.qkv_bias),
        output_bias=fields.has(family.out_bias),
        mlp_bias=fields.has(family.mlp_bias),
        qk_norm=family.qk_norm(fields) > 0,
        norms_per_layer=family.norms(fields, 0),
        max_positions=fields.optional("max_position_embeddings") or 2048,
        moe=mixture,
        latent=_latent(fields) if family.latent else None,
        caches=_caches(fields, family),
        counted=ParameterCount(
            total=total,
            active=total - resting,
            embedding=embedding,
            head=head,
            layer=max((own + experts for own, experts in blocks), default=0),
            routed=routed,
            tables=tables,
        ),
        is_exact=True,
    )


def _layer(fields: Fields, family: Family, layer: int) -> tuple[int, int]:
    """Parameters of a layer without its routed experts, and those of the experts."""
    own = family.norm * family.norms(fields, layer) * fields.hidden + family.more(fields, layer)
    attends, other = family.mixer(fields, layer)
    own += (_attention(fields, family) if attends else 0) + (other or 0)
    experts = family.experts
    if experts is not None and fields.first(EXPERTS) and experts.is_sparse(fields, layer):
        number, ffn = fields.first(EXPERTS), fields.number(experts.ffn)
        own += number * (fields.hidden + experts.router)
        if width := experts.shared(fields):
            own += _block(fields, family, width, has_bias=fields.has(family.mlp_bias))
            own += fields.hidden if experts.shared_gate else 0
        return own, number * _block(fields, family, ffn, has_bias=experts.bias)
    if family.feeds(fields, layer):
        ffn = (family.dense or family.inner)(fields)
        own += _block(fields, family, ffn, has_bias=fields.has(family.mlp_bias))
    return own, 0


def _block(fields: Fields, family: Family, ffn: int, *, has_bias: bool) -> int:
    """A feed-forward block."""
    bias = (family.matrices - 1) * ffn + fields.hidden if has_bias else 0
    return family.matrices * fields.hidden * ffn + bias


def _attention(fields: Fields, family: Family) -> int:
    if family.latent:
        return _latent_attention(fields, has_bias=fields.has(family.qkv_bias))
    hidden, keys = fields.hidden, fields.keys
    queries = family.gates * fields.queries
    weights = hidden * (queries + 2 * keys + fields.queries)
    biases = queries + 2 * keys if fields.has(family.qkv_bias) else 0
    biases += hidden if fields.has(family.out_bias) else 0
    return weights + biases + family.qk_norm(fields)


def _latent_attention(fields: Fields, *, has_bias: bool) -> int:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries through `q_lora_rank` or
    straight, one compressed vector with a rotary key, and its expansion to keys and values."""
    latent, hidden, heads = _latent(fields), fields.hidden, fields.heads
    wide = heads * (latent.plain_dim + latent.rope_dim)
    rank = latent.query_rank
    queries = hidden * rank + rank + rank * wide if rank else hidden * wide
    compressed = hidden * (latent.cache_rank + latent.rope_dim) + latent.cache_rank
    expanded = latent.cache_rank * heads * (latent.plain_dim + latent.value_dim)
    biases = rank + latent.cache_rank + latent.rope_dim + hidden if has_bias else 0
    return queries + compressed + expanded + heads * latent.value_dim * hidden + biases


def _latent(fields: Fields) -> LatentAttention:
    return LatentAttention(
        query_rank=fields.optional("q_lora_rank"),
        cache_rank=fields.number("kv_lora_rank"),
        rope_dim=fields.number("qk_rope_head_dim"),
        plain_dim=fields.number("qk_nope_head_dim"),
        value_dim=fields.number("v_head_dim"),
    )


def _mixture(fields: Fields, family: Family) -> MixtureOfExperts | None:
    experts = family.experts
    if experts is None or not (number := fields.first(EXPERTS)):
        return None
    ffn = fields.number(experts.ffn)
    sparse = sum(experts.is_sparse(fields, layer) for layer in range(fields.layers))
    if not sparse:
        return None
    return MixtureOfExperts(
        experts=number,
        active_experts=fields.first(experts.used),
        shared_experts=round(experts.shared(fields) / ffn),
        ffn=ffn,
        dense_layers=fields.layers - sparse,
    )


def _caches(fields: Fields, family: Family) -> tuple[Cache, ...]:
    heads, width = fields.kv_heads, 2 * fields.keys
    if family.latent:
        latent = _latent(fields)
        heads, width = 1, latent.cache_rank + latent.rope_dim
    windows = Counter(
        family.window(fields, layer)
        for layer in range(fields.layers)
        if family.mixer(fields, layer)[0]
    )
    return tuple(
        Cache(layers=layers, heads=heads, width=width, window=window)
        for window, layers in windows.items()
    )


# Sliding windows


def _listed(fields: Fields, layer: int) -> int | None:
    """The window of layers that `layer_types` calls sliding."""
    if "sliding" in fields.kind(layer):
        return fields.optional("sliding_window") or None
    return None


def _chunked(fields: Fields, layer: int) -> int | None:
    chunk = "chunked" in fields.kind(layer)
    return fields.optional("attention_chunk_size") or None if chunk else None


def _everywhere(fields: Fields, layer: int) -> int | None:
    if fields.get("layer_types"):
        return _listed(fields, layer)
    return fields.optional("sliding_window") or None


def _if_used(fields: Fields, layer: int) -> int | None:
    """Qwen2: with `use_sliding_window`, layers from `max_window_layers` on."""
    if not fields.get("use_sliding_window"):
        return None
    if fields.get("layer_types"):
        return _listed(fields, layer)
    is_late = layer >= fields.optional("max_window_layers")
    return fields.optional("sliding_window") or None if is_late else None


def _every(pattern: int) -> Callable[[Fields, int], int | None]:
    """Without `layer_types`: every `pattern`-th layer attends to everything."""

    def window(fields: Fields, layer: int) -> int | None:
        if fields.get("layer_types"):
            return _listed(fields, layer)
        number = fields.optional("sliding_window_pattern") or pattern
        return fields.optional("sliding_window") or None if (layer + 1) % number else None

    return window


# Experts


def _after_first(fields: Fields, layer: int) -> bool:
    kinds = fields.get("mlp_layer_types")
    if kinds:
        return str(kinds[layer]) == "sparse"
    return layer >= fields.number("first_k_dense_replace")


def _steps(fields: Fields, layer: int) -> bool:
    """Qwen: each `decoder_sparse_step`-th layer, except for `mlp_only_layers`."""
    step = fields.optional("decoder_sparse_step") or 1
    return layer not in (fields.get("mlp_only_layers") or ()) and (layer + 1) % step == 0


def _ernie(fields: Fields, layer: int) -> bool:
    first, last = fields.number("moe_layer_start_index"), fields.number("moe_layer_end_index")
    is_inside = first <= layer <= (last if last >= 0 else fields.layers - 1)
    return is_inside and (layer + 1) % fields.number("moe_layer_interval") == 0


def _interleaved(fields: Fields, layer: int) -> bool:
    if (listed := fields.get("moe_layers")) is not None:
        return layer in listed
    return (layer + 1) % fields.number("interleave_moe_layer_step") == 0


def _shared_width(fields: Fields) -> int:
    return fields.number("moe_intermediate_size") * fields.optional("n_shared_experts")


def _shared_by_number(**options: Any) -> Experts:
    """DeepSeek: `n_shared_experts` as wide as the routed ones, in one block."""
    return Experts(shared=_shared_width, is_sparse=_after_first, **options)


def _shared_expert(fields: Fields) -> int:
    return fields.number("shared_expert_intermediate_size")


QWEN_SHARED = Experts(shared=_shared_expert, shared_gate=True, is_sparse=_steps)


# Layers without attention


def _delta_net(fields: Fields, layer: int) -> tuple[bool, int | None]:
    """Gated DeltaNet: queries, keys, values, an output gate, two numbers per head; a convolution
    over queries, keys and values."""
    if fields.kind(layer) == "full_attention":
        return True, None
    if fields.kind(layer) != "linear_attention":
        raise KeyError("layer_types")
    number, values = fields.number("linear_num_value_heads"), fields.number("linear_value_head_dim")
    keyed = fields.number("linear_num_key_heads") * fields.number("linear_key_head_dim")
    valued = number * values
    mixed = 2 * keyed + valued
    projected = fields.hidden * (mixed + valued + 2 * number) + valued * fields.hidden
    convolved = mixed * fields.number("linear_conv_kernel_dim")
    return False, projected + convolved + 2 * number + values


def _mamba(fields: Fields, inner: int, heads: int, *, has_bias: bool, has_norm: bool = True) -> int:
    """Mamba-2 (arXiv 2405.21060): projections, a convolution, three numbers per head, a norm."""
    mixed = inner + 2 * fields.number("mamba_n_groups") * fields.number("mamba_d_state")
    into = inner + mixed + heads
    biases = into + fields.hidden if has_bias else 0
    convolved = mixed * fields.number("mamba_d_conv")
    convolved += mixed if fields.get("mamba_conv_bias") else 0
    weights = fields.hidden * (into + inner)
    return weights + biases + convolved + 3 * heads + (inner if has_norm else 0)


def _mamba_inner(fields: Fields) -> int:
    return fields.optional("mamba_d_ssm") or fields.number("mamba_expand") * fields.hidden


def _falcon_h1(fields: Fields, layer: int) -> tuple[bool, int | None]:
    """Attention and Mamba side by side in each layer."""
    heads, inner = fields.number("mamba_n_heads"), _mamba_inner(fields)
    if fields.get("projectors_bias") or fields.get("mamba_proj_bias"):
        raise KeyError("projectors_bias")
    has_norm = bool(fields.get("mamba_rms_norm"))
    return True, _mamba(fields, inner, heads, has_bias=False, has_norm=has_norm)


def _granite_hybrid(fields: Fields, layer: int) -> tuple[bool, int | None]:
    kinds = fields.get("layer_types") or fields.get("layers_block_type")
    if str(kinds[layer]) in ("attention", "full_attention"):
        return True, None
    has_bias = bool(fields.get("mamba_proj_bias"))
    inner = _mamba_inner(fields)
    return False, _mamba(fields, inner, fields.number("mamba_n_heads"), has_bias=has_bias)


def _bamba(fields: Fields, layer: int) -> tuple[bool, int | None]:
    if layer in (fields.get("attn_layer_indices") or ()):
        return True, None
    has_bias = bool(fields.get("mamba_proj_bias"))
    inner = _mamba_inner(fields)
    return False, _mamba(fields, inner, fields.number("mamba_n_heads"), has_bias=has_bias)


def _lfm2(fields: Fields, layer: int) -> tuple[bool, int | None]:
    """Short convolutions between two gates (LFM2)."""
    kinds, full = fields.get("layer_types"), fields.get("full_attn_idxs")
    if ("attention" in str(kinds[layer])) if kinds else layer in full:
        return True, None
    hidden = fields.hidden
    biases = 5 * hidden if fields.get("conv_bias") else 0
    return False, hidden * fields.number("conv_L_cache") + 4 * hidden * hidden + biases


def _lfm2_inner(fields: Fields) -> int:
    """The inner width, rounded up as in the model."""
    inner = fields.number("intermediate_size")
    if fields.get("block_auto_adjust_ff_dim"):
        inner = int(2 * inner / 3)
        if (times := fields.get("block_ffn_dim_multiplier")) is not None:
            inner = int(times * inner)
        multiple = fields.number("block_multiple_of")
        inner = multiple * ((inner + multiple - 1) // multiple)
    return inner


# Older models


def _every_head(fields: Fields) -> int:
    """Each query head has keys of its own."""
    return fields.heads


def _falcon_keys(fields: Fields) -> int:
    if fields.get("new_decoder_architecture"):
        return fields.number("num_kv_heads")
    return 1 if fields.get("multi_query") else fields.heads


def _falcon_norms(fields: Fields, layer: int) -> int:
    if fields.get("new_decoder_architecture"):
        return 1 if fields.get("num_ln_in_parallel_attn") == 1 else 2
    return 1 if fields.get("parallel_attn") else 2


def _four(fields: Fields) -> int:
    """Four times the hidden size, unless the config has another width."""
    return fields.optional("n_inner") or 4 * fields.hidden


def _opt_whole(fields: Fields) -> int:
    """Projections of a narrower embedding are left to the built model."""
    if fields.optional("word_embed_proj_dim") not in (0, fields.hidden):
        raise KeyError("word_embed_proj_dim")
    if not fields.get("do_layer_norm_before") or fields.get("_remove_final_layer_norm"):
        raise KeyError("do_layer_norm_before")
    return 0


def _heads(fields: Fields) -> int:
    """A normalization of the queries of each head, and one of the keys."""
    return 2 * fields.head_dim


def _widths(fields: Fields) -> int:
    """Normalizations of all queries and all keys."""
    return fields.queries + fields.keys


def _when(rule: str, amount: Amount) -> Amount:
    return lambda fields: amount(fields) if fields.get(rule) else 0


def _positions(fields: Fields) -> int:
    return fields.number("max_position_embeddings") * fields.hidden


def _ernie_shared(fields: Fields) -> int:
    return fields.number("moe_intermediate_size") * fields.optional("moe_num_shared_experts")


GPT2 = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
LLAMA = Family(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
PLAIN = Family()
QWEN2 = Family(qkv_bias=True, window=_if_used)
QWEN3 = Family(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm=_heads,
    head_dim=128,
    window=_if_used,
)
GEMMA = Family(qkv_bias="attention_bias", out_bias="attention_bias", tied=True, head_dim=256)
OLMO2 = Family(
    qkv_bias="attention_bias", out_bias="attention_bias", qk_norm=_widths, window=_listed
)
DEEPSEEK = Family(
    latent=True, kv_heads=_every_head, qkv_bias="attention_bias", experts=_shared_by_number()
)
GPT = Family(
    names=GPT2, tied=True, kv_heads=_every_head, norm=2, matrices=2, inner=_four,
    qkv_bias=True, out_bias=True, mlp_bias=True, tables=_positions,
)  # fmt: skip
QWEN_LINEAR = replace(QWEN3, gates=2, head_dim=256, mixer=_delta_net, window=_listed)
GRANITE_MOE = replace(LLAMA, mlp_bias=False, experts=Experts(ffn="intermediate_size"))


def _granite_shared(fields: Fields) -> int:
    return fields.optional("shared_intermediate_size")


GRANITE_SHARED = replace(
    GRANITE_MOE,
    experts=Experts(ffn="intermediate_size", shared=_granite_shared),
)

FAMILIES: Mapping[str, Family] = {
    "llama": LLAMA,
    "arcee": replace(LLAMA, matrices=2),
    "apertus": replace(
        LLAMA, mlp_bias=False, matrices=2, qk_norm=_heads, more=lambda fields, layer: 2
    ),
    "cwm": replace(PLAIN, mlp_bias="mlp_bias", window=_listed),
    "mistral": replace(PLAIN, window=_everywhere),
    "ministral": replace(PLAIN, window=_everywhere),
    "ministral3": replace(PLAIN, window=_everywhere),
    "mixtral": replace(PLAIN, window=_everywhere, experts=Experts(ffn="intermediate_size")),
    "phi3": replace(PLAIN, window=_everywhere),
    "seed_oss": replace(LLAMA, out_bias="attention_out_bias"),
    "smollm3": replace(LLAMA, tied=True, window=_if_used),
    "helium": replace(LLAMA, out_bias=False),
    "granite": LLAMA,
    "hunyuan_v1_dense": replace(LLAMA, mlp_bias=False, qk_norm=_heads),
    "ernie4_5": Family(
        tied=True, qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias"
    ),
    "exaone4": replace(PLAIN, qk_norm=_heads, window=_listed),
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "gemma": GEMMA,
    "gemma2": replace(GEMMA, norms=lambda fields, layer: 4, window=_every(2)),
    "gemma3_text": replace(
        GEMMA, norms=lambda fields, layer: 4, qk_norm=_heads, window=_every(6)
    ),
    "glm": replace(PLAIN, qkv_bias="attention_bias", head_dim=128),
    "glm4": replace(
        PLAIN, qkv_bias="attention_bias", head_dim=128, norms=lambda fields, layer: 4
    ),
    "cohere": replace(
        LLAMA, mlp_bias=False, tied=True, norms=lambda fields, layer: 1,
        qk_norm=_when("use_qk_norm", _widths),
    ),
    "cohere2": replace(
        LLAMA, mlp_bias=False, tied=True, norms=lambda fields, layer: 1, window=_listed
    ),
    "olmo": replace(LLAMA, mlp_bias=False, norm=0),
    "olmo2": OLMO2,
    "olmo3": OLMO2,
    "nemotron": replace(LLAMA, norm=2, matrices=2),
    "stablelm": replace(
        PLAIN, norm=2, qkv_bias="use_qkv_bias",
        norms=lambda fields, layer: 1 if fields.get("use_parallel_residual") else 2,
        qk_norm=_when("qk_layernorm", _widths),
    ),
    "starcoder2": Family(
        tied=True, norm=2, matrices=2, qkv_bias="use_bias", out_bias="use_bias",
        mlp_bias="use_bias", window=_everywhere,
    ),
    "phi": Family(
        norm=2, norms=lambda fields, layer: 1, matrices=2, qkv_bias=True, out_bias=True,
        mlp_bias=True, head_bias=True,
        qk_norm=_when("qk_layernorm", lambda fields: 4 * fields.head_dim),
    ),
    "lfm2": Family(tied=True, qk_norm=_heads, mixer=_lfm2, inner=_lfm2_inner),
    "qwen3_5_text": QWEN_LINEAR,
    "falcon_h1": replace(LLAMA, mixer=_falcon_h1),
    "bamba": replace(LLAMA, mixer=_bamba),
    # Mixtures of experts
    "qwen2_moe": replace(QWEN2, qkv_bias="qkv_bias", experts=QWEN_SHARED),
    "qwen3_moe": replace(
        QWEN3, head_dim=None, experts=Experts(is_sparse=_steps), window=_if_used
    ),
    "qwen3_next": replace(QWEN_LINEAR, experts=QWEN_SHARED),
    "qwen3_5_moe_text": replace(
        QWEN_LINEAR,
        experts=replace(QWEN_SHARED, is_sparse=lambda fields, layer: True),
        inner=lambda fields: fields.number("moe_intermediate_size"),
    ),
    "deepseek_v2": replace(DEEPSEEK, mlp_bias="mlp_bias"),
    "deepseek_v3": replace(DEEPSEEK, experts=_shared_by_number(router=1)),
    "glm4_moe_lite": DEEPSEEK,
    "glm4_moe": replace(
        PLAIN, qkv_bias="attention_bias", qk_norm=_when("use_qk_norm", _heads),
        experts=_shared_by_number(),
    ),
    "olmoe": replace(
        LLAMA, mlp_bias=False, qk_norm=_widths, experts=Experts(ffn="intermediate_size")
    ),
    "phimoe": replace(
        LLAMA, mlp_bias=False, norm=2, head_bias="lm_head_bias", window=_everywhere,
        experts=Experts(ffn="intermediate_size"),
    ),
    "minimax_m2": replace(PLAIN, qk_norm=_widths, experts=Experts(ffn="intermediate_size")),
    "granitemoe": GRANITE_MOE,
    "granitemoeshared": GRANITE_SHARED,
    "granitemoehybrid": replace(
        GRANITE_SHARED, mixer=_granite_hybrid, inner=_granite_shared
    ),
    "ernie4_5_moe": Family(
        tied=True, qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias",
        head_bias="use_bias", experts=Experts(router=1, shared=_ernie_shared, is_sparse=_ernie),
    ),
    "gpt_oss": Family(
        qkv_bias="attention_bias", out_bias="attention_bias", head_dim=64, window=_listed,
        more=lambda fields, layer: fields.heads,  # a learned sink per head
        experts=Experts(ffn="intermediate_size", router=1, bias=True),
    ),
    "llama4_text": Family(
        qkv_bias="attention_bias", out_bias="attention_bias", head_dim=128, window=_chunked,
        dense=lambda fields: fields.number("intermediate_size_mlp"),
        experts=Experts(
            ffn="intermediate_size",
            shared=lambda fields: fields.number("intermediate_size"),
            is_sparse=_interleaved,
        ),
    ),
    # Before Llama
    "gpt2": GPT,
    "gptj": replace(
        GPT, tied=False, norms=lambda fields, layer: 1, qkv_bias=False, out_bias=False,
        tables=lambda fields: 0, head_bias=True,
    ),
    "gpt_neox": Family(
        kv_heads=_every_head, norm=2, matrices=2, qkv_bias="attention_bias",
        out_bias="attention_bias", mlp_bias=True,
    ),
    "bloom": Family(
        names={"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
        tied=True, kv_heads=_every_head, norm=2, matrices=2, qkv_bias=True, out_bias=True,
        mlp_bias=True, inner=lambda fields: 4 * fields.hidden,
        whole=lambda fields: 2 * fields.hidden,  # a normalization of the embedding
    ),
    "opt": Family(
        tied=True, kv_heads=_every_head, norm=2, matrices=2, qkv_bias="enable_bias",
        out_bias="enable_bias", mlp_bias="enable_bias",
        inner=lambda fields: fields.number("ffn_dim"),
        tables=lambda fields: _positions(fields) + 2 * fields.hidden, whole=_opt_whole,
    ),
    "falcon": Family(
        tied=True, kv_heads=_falcon_keys, norm=2, norms=_falcon_norms, matrices=2, qkv_bias="bias",
        out_bias="bias", mlp_bias="bias",
        inner=lambda fields: fields.optional("ffn_hidden_size") or 4 * fields.hidden,
    ),
}  # fmt: skip
