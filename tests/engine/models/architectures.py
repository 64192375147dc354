"""Tiny models of the architectures of transformers that have a causal language model.

Each is built from its type's own defaults, with sizes made small where the type has a size of that
name; what a type needs besides stands in `OWN`.
"""

from collections.abc import Mapping
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from coloop.models.tokenizer import byte_tokenizer

_WIDTH = ("hidden_size", "d_model", "n_embd", "dim", "hidden_dim", "embedding_size")
_WIDTH += ("word_embed_proj_dim", "embed_dim")
_INNER = ("intermediate_size", "ffn_dim", "n_inner", "decoder_ffn_dim", "ffn_hidden_size", "dff")
_INNER += ("intermediate_size_mlp", "dim_ff")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads")
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "attention_heads")
_LENGTHS = ("max_position_embeddings", "n_positions", "max_target_positions")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_ACTIVE = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k")
_EXPERT_INNER = ("moe_intermediate_size", "shared_expert_intermediate_size")
SIZES: dict[str, int] = {
    **dict.fromkeys(_WIDTH, 64),
    **dict.fromkeys(_INNER, 96),
    **dict.fromkeys(_LAYERS, 2),
    **dict.fromkeys(_HEADS, 4),
    **dict.fromkeys(_KEY_HEADS, 2),
    **dict.fromkeys(_LENGTHS, 256),
    **dict.fromkeys(_EXPERTS, 4),
    **dict.fromkeys(_ACTIVE, 2),
    **dict.fromkeys(_EXPERT_INNER, 32),
    "n_ctx": 256,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "head_dim": 16,
    "sliding_window": 8,
}
_LATENT = {
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "head_dim": 8,
    "num_key_value_heads": 4,
}
_INDEXED = {**_LATENT, "index_n_heads": 2, "index_head_dim": 16, "index_topk": 8}
_LINEAR = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
}
_MAMBA = {"mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_chunk_size": 16}
_EXTRA_TEXT = {"vocab_size_per_layer_input": 300, "hidden_size_per_layer_input": 8}
OWN: dict[str, dict[str, Any]] = {
    "axk1": _LATENT,
    "axk2": _INDEXED,
    "bamba": {**_MAMBA, "mamba_n_heads": 8, "attn_layer_indices": [1]},
    "codegen": {"rotary_dim": 8},
    "deepseek_v2": {**_LATENT, "topk_method": "greedy", "num_experts_per_tok": 2},
    "deepseek_v3": _LATENT,
    "deepseek_v32": _INDEXED,
    "dots1": {"n_shared_experts": 1},
    "ernie4_5_moe": {"moe_layer_start_index": 1, "moe_num_shared_experts": 1},
    "falcon_h1": {**_MAMBA, "mamba_d_ssm": 64, "mamba_n_heads": 4},
    "gemma3": {
        "vision_config": {"hidden_size": 48, "intermediate_size": 64, "image_size": 28},
        "mm_tokens_per_image": 4,
    },
    "gemma3n_text": {**_EXTRA_TEXT, "num_kv_shared_layers": 0, "laurel_rank": 8},
    "gemma4_text": _EXTRA_TEXT,
    "glm4_moe_lite": _LATENT,
    "glm_moe_dsa": _INDEXED,
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 8},
    "gptj": {"rotary_dim": 8},
    "granitemoehybrid": {
        **_MAMBA,
        "mamba_n_heads": 8,
        "layer_types": ["mamba", "attention"],
        "shared_intermediate_size": 64,
    },
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16, "moe_topk": 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "longcat_flash": {
        **_LATENT,
        "ffn_hidden_size": 96,
        "expert_ffn_hidden_size": 32,
        "zero_expert_num": 2,
    },
    "mamba2": {"num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 1, "chunk_size": 16},
    "minicpm3": _LATENT,
    "ministral": {"num_key_value_heads": 2, "head_dim": 16},
    "nemotron": {"num_key_value_heads": 2, "head_dim": 16},
    "nemotron_h": {
        "layer_types": ["mamba", "attention"],
        "mamba_num_heads": 8,
        "mamba_head_dim": 16,
        "ssm_state_size": 16,
        "n_groups": 1,
        "chunk_size": 16,
    },
    "qwen3_5_moe_text": _LINEAR,
    "qwen3_5_text": _LINEAR,
    "qwen3_moe": {"decoder_sparse_step": 1, "mlp_only_layers": []},
    "qwen3_next": _LINEAR,
    "youtu": _LATENT,
    "zaya": {"num_experts_per_tok": 1},
}
"""What a type needs besides small sizes."""


def small_config(kind: str, **changes: Any) -> PretrainedConfig:
    """A config of a type with small sizes; of a composite one those of its text."""
    made: Any = CONFIG_MAPPING[kind]
    if "text_config" in (getattr(made, "sub_configs", None) or {}):
        text = made().text_config
        own = {**_sizes(text.to_dict()), **OWN.get(text.model_type, {}), **changes}
        config: PretrainedConfig = made(text_config=own, **OWN.get(kind, {}))
        return config
    config = made(**{**_sizes(made().to_dict()), **OWN.get(kind, {}), **changes})
    return config


def _sizes(defaults: Mapping[str, Any]) -> dict[str, Any]:
    tokenizer = byte_tokenizer()
    small: dict[str, Any] = {
        name: size for name, size in SIZES.items() if defaults.get(name) is not None
    }
    if kinds := [*dict.fromkeys(defaults.get("layer_types") or ())]:
        small["layer_types"] = (kinds * 2)[: max(2, len(kinds))]
        small["num_hidden_layers"] = len(small["layer_types"])
    return small | {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def make_model(kind: str, *, seed: int = 0, **changes: Any) -> PreTrainedModel:
    """A model of a type with weights wide enough to tell texts apart."""
    config = small_config(kind, **changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config).float()
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() > 1:
                    weight.normal_(0.0, 0.15)
    return model.eval()
