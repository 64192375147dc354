"""Weights of a Llama-like decoder (qwen2, qwen3, llama), laid out for few large products.

Query, key and value lie in one matrix, gate and up in another, the halves of rotary pairs side by
side. Each Hugging Face name maps to a view, so loading is a copy.

H heads, K key-value heads, D head width, W model width, F inner width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PretrainedConfig

from coloop.errors import WeightsNotUpdated

FAMILIES = frozenset({"qwen2", "qwen3", "llama"})
STATIC_ROPES = frozenset({"default", "linear", "llama3", "yarn"})
"""Rotary variants whose angles do not depend on the length of the text."""
OUTPUT = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    epsilon: float
    is_tied: bool
    has_qkv_bias: bool
    has_output_bias: bool
    has_qk_norm: bool
    max_positions: int

    @property
    def cached_numbers(self) -> int:
        """Numbers that a cache keeps of one token."""
        return 2 * self.layers * self.kv_heads * self.head_width


def shape_of(config: PretrainedConfig) -> Shape | None:
    """The shape of a model that this layout holds exactly, else None."""
    family = config.model_type
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = set(getattr(config, "layer_types", None) or ("full_attention",))
    is_plain = (
        family in FAMILIES
        and config.hidden_act == "silu"
        and not getattr(config, "use_sliding_window", False)
        and not getattr(config, "mlp_bias", False)
        and kinds == {"full_attention"}
        and rope.get("rope_type", "default") in STATIC_ROPES
        and rope.get("partial_rotary_factor", 1.0) == 1.0
    )
    if not is_plain:
        return None
    attention_bias = bool(getattr(config, "attention_bias", False))
    head_width = getattr(config, "head_dim", None)
    return Shape(
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        inner=config.intermediate_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_width=head_width or config.hidden_size // config.num_attention_heads,
        vocabulary=config.vocab_size,
        epsilon=config.rms_norm_eps,
        is_tied=bool(config.tie_word_embeddings),
        has_qkv_bias=attention_bias or family == "qwen2",
        has_output_bias=attention_bias and family != "qwen2",
        has_qk_norm=family == "qwen3",
        max_positions=config.max_position_embeddings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One block. Matrices are (out, in)."""

    norm_in: Tensor  # (W,)
    qkv: Tensor  # ((H + 2K) D, W)
    qkv_bias: Tensor | None  # ((H + 2K) D,)
    qk_norm: Tensor | None  # (H + K, D): the weight of the norm of each query and key head
    output: Tensor  # (W, H D)
    output_bias: Tensor | None  # (W,)
    norm_out: Tensor  # (W,)
    gate_up: Tensor  # (2 F, W)
    down: Tensor  # (W, F)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a weight of the Hugging Face model lies in the layout."""

    shape: tuple[int, ...]  # as the Hugging Face model has it
    views: tuple[Tensor, ...]  # the places it is written to, each with as many elements


class LeanWeights:
    def __init__(self, shape: Shape, device: torch.device, dtype: torch.dtype) -> None:
        self.shape = shape
        self._options: dict[str, Any] = {"device": device, "dtype": dtype}
        self._places: dict[str, Place] = {}
        self.embedding = self._plain(EMBEDDING, shape.vocabulary, shape.width)
        self.layers = [self._build_layer(f"model.layers.{i}.") for i in range(shape.layers)]
        self.norm = self._plain("model.norm.weight", shape.width)
        self.head = (
            self.embedding if shape.is_tied else self._plain(OUTPUT, shape.vocabulary, shape.width)
        )

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Copies every weight; see `checked`."""
        shapes = {name: place.shape for name, place in self._places.items()}
        for name, weight in checked(weights, shapes, {OUTPUT} if self.shape.is_tied else ()):
            for view in self._places[name].views:
                view.copy_(weight.reshape(view.shape))

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight under its Hugging Face name, in that model's shape."""
        for name, place in self._places.items():
            yield name, place.views[0].reshape(place.shape)

    def held(self) -> Iterator[Tensor]:
        """The same as it lies in memory: views of all of it."""
        for place in self._places.values():
            yield from place.views

    def _new(self, *size: int) -> Tensor:
        return torch.zeros(*size, **self._options)

    def _plain(self, name: str, *size: int) -> Tensor:
        weight = self._new(*size)
        self._places[name] = Place(size, (weight,))
        return weight

    def _parts(self, whole: Tensor, names: dict[str, int], paired: set[str]) -> Tensor:
        """Stacked weights as one; rows of those `paired` in rotary pairs."""
        for (name, rows), part in zip(
            names.items(), whole.split_with_sizes(list(names.values())), strict=True
        ):
            shape = (rows, *whole.shape[1:])
            view = _in_halves(part, self.shape.head_width) if name in paired else part
            self._places[name] = Place(shape, (view,))
        return whole

    def _build_layer(self, prefix: str) -> Layer:
        s = self.shape
        attention = f"{prefix}self_attn."
        query, key = s.heads * s.head_width, s.kv_heads * s.head_width

        def joined(kind: str, *width: int) -> Tensor:
            q, k, v = (f"{attention}{part}_proj.{kind}" for part in "qkv")
            whole = self._new(query + 2 * key, *width)
            return self._parts(whole, {q: query, k: key, v: key}, {q, k})

        gate, up = f"{prefix}mlp.gate_proj.weight", f"{prefix}mlp.up_proj.weight"
        gate_up = self._new(2 * s.inner, s.width)
        return Layer(
            norm_in=self._plain(f"{prefix}input_layernorm.weight", s.width),
            qkv=joined("weight", s.width),
            qkv_bias=joined("bias") if s.has_qkv_bias else None,
            qk_norm=self._head_norms(attention) if s.has_qk_norm else None,
            output=self._plain(f"{attention}o_proj.weight", s.width, query),
            output_bias=(
                self._plain(f"{attention}o_proj.bias", s.width) if s.has_output_bias else None
            ),
            norm_out=self._plain(f"{prefix}post_attention_layernorm.weight", s.width),
            gate_up=self._parts(gate_up, {gate: s.inner, up: s.inner}, set()),
            down=self._plain(f"{prefix}mlp.down_proj.weight", s.width, s.inner),
        )

    def _head_norms(self, attention: str) -> Tensor:
        """The norms of query and key heads as one weight a head, so that all are done at once."""
        s = self.shape
        whole = self._new(s.heads + s.kv_heads, s.head_width)
        heads = whole.view(-1, s.head_width // 2, 2).transpose(1, 2)  # (H + K, 2, D / 2)
        shape = (s.head_width,)
        self._places[f"{attention}q_norm.weight"] = Place(shape, tuple(heads[: s.heads]))
        self._places[f"{attention}k_norm.weight"] = Place(shape, tuple(heads[s.heads :]))
        return whole


def checked(
    weights: Iterable[tuple[str, Tensor]],
    shapes: Mapping[str, tuple[int, ...]],
    ignored: Container[str],
) -> Iterator[tuple[str, Tensor]]:
    """The weights of an engine's model as they come.

    Args:
        shapes: of all weights that are wanted, by name.
        ignored: other names, which may come as well.

    Raises `WeightsNotUpdated` for another shape; at the end for missing or unknown names.
    """
    missing, unknown = set(shapes), []
    for name, weight in weights:
        if name in ignored:
            continue
        if name not in shapes:
            unknown.append(name)
            continue
        if tuple(weight.shape) != shapes[name]:
            raise WeightsNotUpdated(
                f"{name} has shape {tuple(weight.shape)}, but the engine's model has {shapes[name]}"
            )
        missing.discard(name)
        yield name, weight.detach()

    def listed(names: Collection[str]) -> str:
        return f"{len(names)} ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''})"

    parts = []
    if missing:
        parts.append(f"did not receive {listed(missing)} of its model's weights")
    if unknown:
        parts.append(f"received {listed(unknown)} that its model does not have")
    if parts:
        raise WeightsNotUpdated(f"the rollout engine {' and '.join(parts)}")


def _in_halves(rows: Tensor, head_width: int) -> Tensor:
    """Rows in rotary pairs, in the order of the Hugging Face model."""
    pairs = rows.view(-1, head_width // 2, 2, *rows.shape[1:])  # (heads, D / 2, 2, ...)
    return pairs.transpose(1, 2)  # (heads, 2, D / 2, ...)


# Matrices in the order in which the processor's products read them, for those with few rows. In
# bfloat16 numbers stay the same, in float32 they are rounded otherwise.

WORTH_TOKENS = 32
"""Texts of so many new tokens are worth it: it takes as long as what ten of them gain."""
MOST_BYTES = 2**28  # of weights whose matrices are held twice for it


@dataclass(frozen=True, slots=True)
class Matrices:
    layers: list[Layer]
    head: Tensor  # (V, W)


def plain(weights: LeanWeights) -> Matrices:
    return Matrices(weights.layers, weights.head)


def can_pack(weights: LeanWeights) -> bool:
    """Whether this processor has such an order for them, and there is room for it."""
    head = weights.head
    if head.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    has_order = head.dtype == torch.float32 or (
        head.dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
    return has_order and sum(weight.nbytes for weight in weights.held()) <= MOST_BYTES


def packed(weights: LeanWeights) -> Matrices:
    return Matrices(
        [
            replace(
                layer,
                qkv=_packed(layer.qkv),
                output=_packed(layer.output),
                gate_up=_packed(layer.gate_up),
                down=_packed(layer.down),
            )
            for layer in weights.layers
        ],
        _packed(weights.head),
    )


def product(x: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (M, in), matrix (out, in), packed or not -> (M, out)"""
    if matrix.is_mkldnn:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, matrix, bias, "none", [], "")
        return result
    return F.linear(x, matrix, bias)


def added(y: Tensor, x: Tensor, matrix: Tensor) -> Tensor:
    """y (M, out) and the product of x (M, in) with a matrix (out, in), packed or not."""
    if matrix.is_mkldnn:
        result: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, y, matrix, None, "add")
        return result
    return torch.addmm(y, x, matrix.t())


def _packed(matrix: Tensor) -> Tensor:
    reordered: Tensor = torch.ops.mkldnn._reorder_linear_weight(matrix, None)
    return reordered
