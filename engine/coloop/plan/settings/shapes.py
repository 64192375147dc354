"""What determines the size and the work of a decoder. Plain data; knows nothing of configs."""

from coloop.spec.lean import record


class UnknownArchitecture(ValueError):
    """A config lacks a required fact."""


@record
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
    """Layers without experts."""


@record
class LatentAttention:
    """Multi-head latent attention: keys and values are kept as one compressed vector."""

    query_rank: int
    cache_rank: int
    rope_dim: int
    plain_dim: int
    value_dim: int


@record
class Cache:
    """Keys and values that layers of one kind keep of a token."""

    layers: int
    heads: int
    """Heads over which tensor-parallel ranks share it."""
    width: float
    """Elements per token and layer, keys and values together."""
    window: int | None = None
    """Tokens after which it no longer grows; None: it holds all."""


@record
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
    """The largest layer."""
    routed: int = 0
    """Parameters of routed experts."""
    tables: int = 0
    """Other lookup tables, such as positions: a token reads one row of each."""

    @property
    def decoded(self) -> int:
        """Parameters read to generate one token: all active ones except lookup tables."""
        return self.active - self.tables - (self.embedding if self.head else 0)


@record
class Architecture:
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
    caches: tuple[Cache, ...]
    """Of layers with a key-value cache; others keep a state of constant size."""
    counted: ParameterCount
    """Of the language model."""
    is_exact: bool
    """Whether the count equals that of the model that transformers builds."""
    is_built: bool = False
    """Whether the count comes from such a model; otherwise from formulas."""

    @property
    def query_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def attention_layers(self) -> int:
        """Layers with a key-value cache."""
        return sum(cache.layers for cache in self.caches)

    @property
    def sliding_window(self) -> int | None:
        return max((cache.window for cache in self.caches if cache.window), default=None)

    @property
    def sliding_layers(self) -> int:
        """Layers whose cache ends at a window."""
        return sum(cache.layers for cache in self.caches if cache.window)
