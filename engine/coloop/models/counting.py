"""Counts the parameters of a model: reads a Hugging Face config as JSON from standard input, builds
it on `meta`, and writes its sizes as one line of JSON.

Runs as a program of its own, because it loads torch and transformers. It downloads nothing and runs
no code of a model folder.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

FUSED = ("query_key_value", "qkv_proj", "c_attn", "Wqkv", "qkv")
"""Names of matrices that compute queries, keys and values together."""


def count(config: Mapping[str, Any]) -> dict[str, Any]:
    """Parameter counts and sizes of the model of a config; of a composite one, its text model."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    own = {key: value for key, value in config.items() if key not in ("auto_map", "model_type")}
    whole = AutoConfig.for_model(str(config["model_type"]), **own)
    text = whole.get_text_config()
    with torch.device("meta"):
        build: Any = AutoModelForCausalLM.from_config
        model = build(text, trust_remote_code=False)
    return _facts(model, text)


def _facts(model: Any, config: Any) -> dict[str, Any]:
    parameters = dict(model.named_parameters())
    total = sum(one.numel() for one in parameters.values())
    embedding = model.get_input_embeddings().weight
    output = model.get_output_embeddings()
    is_tied = output is None or output.weight is embedding
    layers = _layers(model, int(config.num_hidden_layers))
    heads = int(config.num_attention_heads)
    hidden = int(config.hidden_size)
    head_dim = int(getattr(config, "head_dim", None) or hidden // heads)
    attention = [one for one in map(_attention, layers) if one is not None]
    keys = getattr(config, "num_key_value_heads", None) or heads
    if attention and (width := _key_width(attention[0], heads * head_dim, hidden)):
        keys = max(round(width / head_dim), 1)
    experts = _experts(parameters, config, hidden)
    return {
        "model_type": config.model_type,
        "total": total,
        "active": total - round(experts["resting"]) if experts else total,
        "embedding": embedding.numel(),
        "head": 0 if is_tied else output.weight.numel(),
        "layer": max((sum(p.numel() for p in one.parameters()) for one in layers), default=0),
        "vocab_size": int(embedding.shape[0]),
        "hidden_size": hidden,
        "layers": len(layers),
        "attention_layers": len(attention),
        "heads": heads,
        "kv_heads": int(keys),
        "head_dim": head_dim,
        "ffn": _inner_width(config, hidden),
        "qkv_bias": any(name.endswith(("q_proj.bias", "c_attn.bias")) for name in parameters),
        "qk_norm": any("q_norm" in name for name in parameters),
        "norms": max(map(_norms, layers), default=2),
        "max_positions": int(getattr(config, "max_position_embeddings", None) or 2048),
        "experts": experts,
        "window": _window(config),
    }


def _layers(model: Any, number: int) -> list[Any]:
    lists = [m for m in model.modules() if type(m).__name__ == "ModuleList"]
    fitting = [layers for layers in lists if len(layers) == number]
    return list(max(fitting or lists, key=len, default=[]))


def _attention(layer: Any) -> Any | None:
    """The attention module of a layer; None if it has none, such as in a state-space model."""
    for name, module in layer.named_modules():
        if name and "attention" in type(module).__name__.lower() and _has_keys(module):
            return module
    return None


def _has_keys(module: Any) -> bool:
    names = {name for name, _ in module.named_children()}
    return bool(names & {"k_proj", "kv_a_proj_with_mqa", *FUSED})


def _key_width(attention: Any, queries: int, hidden: int) -> float:
    for name, module in attention.named_children():
        weight = getattr(module, "weight", None)
        if name == "k_proj" and weight is not None:
            return float(weight.shape[0])
        if name in FUSED and weight is not None:
            return float((weight.numel() / hidden - queries) / 2)
    return 0.0


def _inner_width(config: Any, hidden: int) -> int:
    for name in ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim"):
        value = getattr(config, name, None)
        if isinstance(value, list | tuple) and value:
            value = max(value)
        if value:
            return int(value)
    return 4 * hidden


def _norms(layer: Any) -> int:
    return sum("norm" in type(module).__name__.lower() for module in layer.children()) or 2


def _experts(parameters: Mapping[str, Any], config: Any, hidden: int) -> dict[str, float] | None:
    number = _first(
        config, "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"
    )
    used = _first(config, "num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts", "moe_top_k")
    routed = {
        n: weight for n, weight in parameters.items() if ".experts." in n and "shared" not in n
    }
    if not routed or not number or not used:
        return None
    whole = sum(weight.numel() for weight in routed.values())
    blocks = {name.partition("experts")[0] for name in routed}
    down = sum(weight.numel() for name, weight in routed.items() if "down" in name or "w2" in name)
    down -= sum(
        weight.numel()
        for name, weight in routed.items()
        if name.endswith("bias") and "down" in name
    )
    inner = down / max(len(blocks) * number * hidden, 1)
    shared = sum(weight.numel() for name, weight in parameters.items() if "shared_expert" in name)
    each = whole / (len(blocks) * number)
    return {
        "experts": number,
        "active": used,
        "shared": round(shared / len(blocks) / each) if each else 0,
        "ffn": round(inner) or _inner_width(config, hidden),
        "layers": len(blocks),
        "parameters": whole,
        "resting": whole * (1 - min(used / number, 1.0)),
    }


def _first(config: Any, *names: str) -> int:
    for name in names:
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return 0


def _window(config: Any) -> tuple[int, int] | None:
    window, kinds = getattr(config, "sliding_window", None), getattr(config, "layer_types", None)
    if not window or not kinds:
        return None
    return int(window), sum(kind == "sliding_attention" for kind in kinds)


def _answers() -> Iterator[dict[str, Any]]:
    try:
        yield count(json.load(sys.stdin))
    except Exception as error:  # a config may be anything: the error is reported
        yield {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"}


if __name__ == "__main__":
    for answer in _answers():
        sys.stdout.write(json.dumps(answer) + "\n")
