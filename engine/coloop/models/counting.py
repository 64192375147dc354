"""Counts the parameters of a model: reads a Hugging Face config as JSON from standard input, builds
it on `meta`, and writes its sizes as one line of JSON.

Runs as a program of its own, because it loads torch and transformers. It downloads nothing and runs
no code of a model folder.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

FUSED = ("query_key_value", "qkv_proj", "c_attn", "Wqkv", "qkv")
"""Names of matrices that compute queries, keys and values together."""
KEYS = ("k_proj", "key", "Wk")
VALUES = ("v_proj", "value", "Wv")
LATENT = "kv_a_proj_with_mqa"
"""The matrix that makes the latent vector and the rotary key of multi-head latent attention."""
RECURRENT = re.compile("linear|mamba|delta|lightning|lstm|conv|recurrent|rwkv|cross", re.IGNORECASE)
"""Class names of layers that keep a state of constant size, or no keys of their own tokens."""
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
USED = ("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts", "moe_top_k")


def count(config: Mapping[str, Any]) -> dict[str, Any]:
    """Parameter counts and sizes of the model of a config; of a composite one, its text model."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    own = {key: value for key, value in config.items() if key not in ("auto_map", "model_type")}
    whole = AutoConfig.for_model(str(config["model_type"]), **own)
    text = whole.get_text_config(decoder=True)
    if text is not whole and "tie_word_embeddings" not in (config.get("text_config") or {}):
        text.tie_word_embeddings = bool(whole.tie_word_embeddings)
    with torch.device("meta"):
        build: Any = AutoModelForCausalLM.from_config
        model = build(text, trust_remote_code=False)
    return facts_of(model, text)


def facts_of(model: Any, config: Any) -> dict[str, Any]:
    """Sizes of a causal language model that is built, on any device."""
    parameters = dict(model.named_parameters())
    total = sum(one.numel() for one in parameters.values())
    embedding = model.get_input_embeddings().weight
    output = model.get_output_embeddings()
    is_tied = output is None or output.weight is embedding
    hidden = int(_first(config, "hidden_size", "n_embd") or embedding.shape[1])
    layers = _layers(model, _first(config, "num_hidden_layers"))
    caches = _caches(layers, config, hidden)
    heads = _first(config, "num_attention_heads", "num_heads") or max(hidden // 64, 1)
    widest = max(caches, key=lambda cache: cache["layers"] * cache["width"], default=None)
    head_dim = _first(config, "head_dim") or hidden // heads
    kv_heads = _first(config, "num_key_value_heads") or heads
    if widest is not None and not widest["is_latent"]:
        kv_heads = widest["heads"]
        head_dim = round(widest["width"] / kv_heads / 2)
    experts = _experts(parameters, config, hidden)
    return {
        "model_type": config.model_type,
        "total": total,
        "active": total - round(experts["resting"]) if experts else total,
        "embedding": embedding.numel(),
        "head": 0 if is_tied else output.weight.numel(),
        "tables": _tables(model, embedding),
        "layer": max((sum(p.numel() for p in one.parameters()) for one in layers), default=0),
        "vocab_size": int(embedding.shape[0]),
        "hidden_size": hidden,
        "layers": len(layers),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "ffn": _inner_width(config, hidden),
        "qkv_bias": any(name.endswith(("q_proj.bias", "c_attn.bias")) for name in parameters),
        "qk_norm": any("q_norm" in name for name in parameters),
        "norms": max(map(_norms, layers), default=2),
        "max_positions": _first(config, "max_position_embeddings") or 2048,
        "experts": experts,
        "caches": [
            {key: cache[key] for key in ("layers", "heads", "width", "window")} for cache in caches
        ],
    }


def _layers(model: Any, number: int) -> list[Any]:
    lists = [m for m in model.modules() if type(m).__name__ == "ModuleList"]
    fitting = [layers for layers in lists if len(layers) == number]
    return list(max(fitting or lists, key=len, default=[]))


# What a token leaves in the cache: for each attention of a layer, the elements of its keys and
# values. Layers with a state of constant size, and those that use keys of others, leave nothing.


def _caches(layers: list[Any], config: Any, hidden: int) -> list[dict[str, Any]]:
    """Layers with equal caches in one entry."""
    found: Counter[tuple[int, float, int | None, bool]] = Counter()
    kinds = _get(config, "layer_types") or _get(config, "layers_block_type") or []
    for at, layer in enumerate(layers):
        kind = str(kinds[at]) if at < len(kinds) else ""
        for attention in _attentions(layer, kind):
            for heads, width, window in _kept(attention, config, kind, hidden):
                found[heads, width, window, hasattr(attention, LATENT)] += 1
    repeated = _first(config, "num_hidden_layers") // max(len(layers), 1)
    times = repeated if hasattr(config, "num_layers_per_stack") else 1
    return [
        {"layers": n * times, "heads": heads, "width": width, "window": window, "is_latent": latent}
        for (heads, width, window, latent), n in found.items()
    ]


def _attentions(layer: Any, kind: str) -> Iterator[Any]:
    """Modules of a layer that compute keys of their own."""
    if RECURRENT.search(kind):
        return
    inside: list[str] = []
    for name, module in layer.named_modules():
        if any(name.startswith(f"{outer}.") for outer in inside):
            continue
        path = f"{name} {type(module).__name__}"
        if name and RECURRENT.search(path):
            inside.append(name)
        elif name and _names(module) & {*KEYS, *FUSED, LATENT, "kv_proj"}:
            yield module
            inside.append(name)


def _names(module: Any) -> set[str]:
    return {name for name, _ in module.named_children()}


def _kept(
    attention: Any, config: Any, kind: str, hidden: int
) -> Iterator[tuple[int, float, int | None]]:
    """(heads, elements a token, window) of what an attention caches."""
    children = dict(attention.named_children())
    window = _window(attention, config, kind)
    head_dim = _get(attention, "head_dim") or _first(config, "head_dim") or 0
    head_dim = head_dim or hidden // max(_first(config, "num_attention_heads"), 1)
    if LATENT in children:
        yield 1, _width(children[LATENT], hidden), window
    elif "kv_proj" in children:
        width = _width(children["kv_proj"], hidden)
        is_one = "compressor" in children  # keys are values, of one head
        yield 1 if is_one else max(round(width / 2 / head_dim), 1), width, window
    elif fused := next((children[name] for name in FUSED if name in children), None):
        queries = _first(config, "num_attention_heads") * head_dim
        width = _width(fused, hidden) - queries if _width(fused, hidden) else _nested(fused)
        yield max(round(width / 2 / head_dim), 1), width, window
    else:
        keys = sum(_width(one, hidden) for name, one in children.items() if name in KEYS)
        named = [one for name, one in children.items() if name.startswith(VALUES)]
        values = sum(_width(one, hidden) for one in named) or keys
        yield max(round(keys / head_dim), 1), keys + values, window
    if (indexer := children.get("indexer")) is not None and hasattr(indexer, "wk"):
        yield 1, _width(indexer.wk, hidden), None
    if (compressor := children.get("compressor")) is not None:
        rate = (_get(config, "compress_rates") or {}).get(kind) or 1
        norms = [m.weight.numel() for n, m in compressor.named_modules() if n.endswith("kv_norm")]
        yield 1, sum(norms) / rate, None


def _nested(fused: Any) -> int:
    """Key and value elements of a module that has a matrix for each."""
    inner = dict(fused.named_children())
    return sum(
        int(m.out_features) for name, m in inner.items() if name.startswith((*KEYS, *VALUES))
    )


def _width(projection: Any, hidden: int) -> int:
    """Outputs of a projection from the hidden state."""
    if width := getattr(projection, "out_features", None) or getattr(projection, "nf", None):
        return int(width)
    weight = getattr(projection, "weight", None)
    return weight.numel() // hidden if weight is not None else 0


def _window(attention: Any, config: Any, kind: str) -> int | None:
    """Tokens after which the cache of an attention no longer grows."""
    if "chunk" in kind:
        return _first(config, "attention_chunk_size") or None
    size = _first(config, "sliding_window", "sliding_window_size", "attention_window_size")
    if kind:
        is_sliding = "sliding" in kind or bool(_get(attention, "compressor"))
        return size or None if is_sliding else None
    if hasattr(attention, "sliding_window"):
        return int(attention.sliding_window) if attention.sliding_window else None
    return None if _get(config, "use_sliding_window") is False else size or None


def _tables(model: Any, embedding: Any) -> int:
    """Parameters of other lookup tables, such as positions: a token reads one row of each."""
    return sum(
        module.weight.numel()
        for module in model.modules()
        if "Embedding" in type(module).__name__
        and getattr(module, "weight", None) is not None
        and module.weight is not embedding
    )


def _inner_width(config: Any, hidden: int) -> int:
    for name in ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "dff"):
        value = _get(config, name)
        if isinstance(value, list | tuple) and value:
            value = max(value)
        if value:
            return int(value)
    return 4 * hidden


def _norms(layer: Any) -> int:
    return sum("norm" in type(module).__name__.lower() for module in layer.children()) or 2


def _experts(parameters: Mapping[str, Any], config: Any, hidden: int) -> dict[str, float] | None:
    number, used = _first(config, *EXPERTS), _first(config, *USED, "num_experts_per_token")
    routed = {
        name: weight
        for name, weight in parameters.items()
        if "shared" not in name
        and (".experts." in name or (weight.dim() == 3 and weight.shape[0] == number > 1))
    }
    if not routed or not number or not used:
        return None
    whole = sum(weight.numel() for weight in routed.values())
    blocks = {_block(name) for name in routed}
    down = sum(
        weight.numel()
        for name, weight in routed.items()
        if any(part in name for part in ("down", "w2", "output_linear")) and "bias" not in name
    )
    inner = down / max(len(blocks) * number * hidden, 1)
    shared = sum(
        weight.numel()
        for name, weight in parameters.items()
        if "shared_expert" in name or "shared_mlp" in name
    )
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


def _block(name: str) -> str:
    """The layer of a parameter: its name up to the index."""
    found = re.match(r".*?\.\d+\.", name)
    return found.group() if found else ""


def _get(section: Any, name: str) -> Any:
    """A field; None if it is missing, or differs by layer."""
    try:
        return getattr(section, name, None)
    except Exception:  # configs raise errors of their own for fields that differ by layer
        return None


def _first(config: Any, *names: str) -> int:
    for name in names:
        value = _get(config, name)
        if isinstance(value, int) and value > 0:
            return value
    return 0


def _answers() -> Iterator[dict[str, Any]]:
    try:
        yield count(json.load(sys.stdin))
    except ModuleNotFoundError as missing:
        yield {"missing": missing.name}
    except Exception as error:  # a config may be anything: the error is reported
        words = str(error).splitlines() or [""]
        yield {"error": f"{type(error).__name__}: {words[0][:300]}"}


if __name__ == "__main__":
    for answer in _answers():
        sys.stdout.write(json.dumps(answer) + "\n")
