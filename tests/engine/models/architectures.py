"""Tiny models of many architectures, from what transformers knows of each type."""

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from coloop.models.tokenizer import byte_tokenizer

_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_LATENT = {
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "num_key_value_heads": 4,
}
_ROUTED = {
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
OWN: dict[str, dict[str, Any]] = {
    "deepseek_v3": {**_ROUTED, **_LATENT},
    "ernie4_5_moe": {
        "moe_num_experts": 4,
        "moe_k": 2,
        "moe_intermediate_size": 32,
        "moe_layer_start_index": 1,
        "moe_num_shared_experts": 1,
    },
    "glm4_moe": {**_ROUTED, "head_dim": 16},
    "gpt_oss": {"head_dim": 16, "num_local_experts": 4, "sliding_window": 8},
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": {**_EXPERTS, "head_dim": 16, "decoder_sparse_step": 1, "mlp_only_layers": []},
}
"""What a type needs besides the sizes of all."""


def sizes() -> dict[str, Any]:
    """What all types are told; each takes what it knows."""
    tokenizer = byte_tokenizer()
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def make_model(kind: str, *, seed: int = 0, **changes: Any) -> PreTrainedModel:
    """A model of a type with weights wide enough to tell texts apart."""
    config = AutoConfig.for_model(kind, **{**sizes(), **OWN.get(kind, {}), **changes})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() > 1:
                    weight.normal_(0.0, 0.15)
    return model.eval()
