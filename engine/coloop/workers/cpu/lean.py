"""Which blocks of a model learn by `run_block`, and when.

On a CPU, the `forward` of blocks of known families is replaced; modules and weights stay. Blocks
that are not plain (adapters, dropout, a mask, a cache) compute as their family wrote them and read
no slabs.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from coloop.workers.cpu.lean_attention import ATTENTION
from coloop.workers.cpu.lean_block import BlockShape, BlockWeights, run_block
from coloop.workers.cpu.slabs import Slab
from coloop.workers.training.ranks import TENSOR

FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3"})
KINDS = ("sdpa", ATTENTION)  # attention that is causal where no mask is given
TYPES = (torch.float32, torch.bfloat16)
"""Of hidden states; the families compute norms in float32, so float64 is left to them."""
MATRICES = (
    *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
)
_matrices_of = attrgetter(*MATRICES)
OTHERS = {
    "self_attn",
    *("self_attn.q_norm", "self_attn.k_norm", "mlp", "mlp.act_fn"),
    *("input_layernorm", "post_attention_layernorm"),
}


def learn_lean(model: nn.Module) -> "list[Lean]":
    """Let the blocks of a model on a CPU compute by `run_block`, in place; they, if all can."""
    config: Any = getattr(model, "config", None)
    if getattr(config, "model_type", None) not in FAMILIES:
        return []
    names = set(getattr(model, "_no_split_modules", None) or ())
    leans = []
    for block in model.modules():
        if type(block).__name__ in names and _is_plain(block, config):
            lean = Lean(block, config)
            block.forward = lean
            leans.append(lean)
    return leans if len(leans) == config.num_hidden_layers else []


class Lean:
    def __init__(self, block: nn.Module, config: Any) -> None:
        self.block = block
        self._config = config
        self._plain: Callable[..., Tensor] = type(block).forward
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
        attention: Any = block.self_attn
        self._shape = BlockShape(
            heads=heads,
            kv_heads=kv_heads,
            head_width=attention.head_dim,
            epsilon=config.rms_norm_eps,
            scale=attention.scaling,
        )

    def takes(self, tokens: int) -> bool:
        """Whether the block, as it is now, reads slabs of texts of up to so many tokens."""
        window = getattr(self._config, "sliding_window", None)
        norm: Any = self.block.input_layernorm
        return bool(
            _has_matrices(self.block)
            and norm.weight.dtype in TYPES
            and self._config._attn_implementation in KINDS
            and (window is None or tokens <= window)
        )

    def __call__(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        position_embeddings: tuple[Tensor, Tensor] | None = None,
        slabs: tuple[Slab, ...] | None = None,
        **rest: Any,
    ) -> Tensor:
        """`slabs`: of one row; None: rows of texts, as the family reads them."""
        rows, tokens, _ = hidden_states.shape
        is_plain = slabs is not None or (
            attention_mask is None and past_key_values is None and self.takes(tokens)
        )
        if not (is_plain and position_embeddings is not None and hidden_states.dtype in TYPES):
            assert slabs is None, "a row of slabs is only for blocks that take it"
            return self._plain(
                self.block,
                hidden_states,
                attention_mask=attention_mask,
                past_key_values=past_key_values,
                position_embeddings=position_embeddings,
                **rest,
            )
        assert position_embeddings is not None
        weights = _weights_of(self.block)
        compute = weights.query.dtype
        if torch.is_autocast_enabled("cpu"):
            compute = torch.get_autocast_dtype("cpu")
        slabs = slabs or (Slab(runs=rows, tokens=tokens),)
        half = self._shape.head_width // 2
        turns = torch.complex(*(part[..., :half].float() for part in position_embeddings))
        return run_block(hidden_states, turns, slabs, weights, self._shape, compute)


def _is_plain(block: nn.Module, config: Any) -> bool:
    """Whether a block is what its family wrote, and `run_block` knows all of it."""
    modules = set(dict(block.named_modules())) - {"", *MATRICES}
    return bool(
        type(block).__module__.startswith("transformers.models.")
        and modules <= OTHERS
        and _has_matrices(block)
        and config.hidden_act == "silu"
        and not getattr(config, "mlp_bias", False)
        and not getattr(config, "attention_dropout", 0.0)
        and block.self_attn.head_dim % 2 == 0  # type: ignore[union-attr, operator]
    )


def _has_matrices(block: Any) -> bool:
    """Whether its matrices are plain and whole, without an adapter or a cut over ranks."""
    return all(
        type(layer) is nn.Linear and not _is_cut(layer.weight) for layer in _matrices_of(block)
    )


def _is_cut(weight: Tensor) -> bool:
    if not isinstance(weight, DTensor):
        return False
    return TENSOR in (weight.device_mesh.mesh_dim_names or ())


def _weights_of(block: Any) -> BlockWeights:
    attention, mlp = block.self_attn, block.mlp
    return BlockWeights(
        norm_in=block.input_layernorm.weight,
        query=attention.q_proj.weight,
        key=attention.k_proj.weight,
        value=attention.v_proj.weight,
        output=attention.o_proj.weight,
        norm_out=block.post_attention_layernorm.weight,
        gate=mlp.gate_proj.weight,
        up=mlp.up_proj.weight,
        down=mlp.down_proj.weight,
        query_norm=attention.q_norm.weight if hasattr(attention, "q_norm") else None,
        key_norm=attention.k_norm.weight if hasattr(attention, "k_norm") else None,
        query_bias=attention.q_proj.bias,
        key_bias=attention.k_proj.bias,
        value_bias=attention.v_proj.bias,
        output_bias=attention.o_proj.bias,
    )
