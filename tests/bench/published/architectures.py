"""Models of published rows for which no preset exists, as `config.json` folders.

Models of other families stand in as a Llama or a mixture of experts with the same layers, widths
and number of parameters (`STAND_INS`).
"""

import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any


def _llama(
    width: int, layers: int, heads: int, ffn: int, vocabulary: int, **more: Any
) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": ffn,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "tie_word_embeddings": False,
        "max_position_embeddings": 131_072,
    } | more


def _mpt(width: int, layers: int, heads: int) -> dict[str, Any]:
    """MPT's two feed-forward matrices of 4 x width as three of 8/3 x width, and its tied head."""
    return _llama(width, layers, heads, 8 * width // 3, 50_368, tie_word_embeddings=True)


def _mixture(width: int, layers: int, heads: int, keys: int, **more: Any) -> dict[str, Any]:
    plain = _llama(width, layers, heads, more.pop("intermediate_size"), more.pop("vocab_size"))
    own = {"model_type": "qwen3_moe", "num_key_value_heads": keys, "head_dim": more.pop("head_dim")}
    return plain | own | more


CONFIGS: dict[str, dict[str, Any]] = {
    "mpt-125m": _mpt(768, 12, 12),
    "mpt-350m": _mpt(1024, 24, 16),
    "mpt-760m": _mpt(1536, 24, 12),
    "mpt-1b": _mpt(2048, 24, 16),
    "mpt-3b": _mpt(2560, 32, 20),
    "mpt-7b": _mpt(4096, 32, 32),
    "mpt-13b": _mpt(5120, 40, 40),
    "mpt-30b": _mpt(7168, 48, 56),
    "mpt-70b": _mpt(8192, 80, 64),
    "llama-3.1-405b": _llama(16_384, 126, 128, 53_248, 128_256, num_key_value_heads=8),
    "llama-2-13b": _llama(5120, 40, 40, 13_824, 32_000),
    "llama-2-34b": _llama(8192, 48, 64, 22_016, 32_000, num_key_value_heads=8),
    "phi-1.5": _llama(2048, 24, 32, 5461, 51_200),
    "stablelm-3b": _llama(4096, 16, 32, 11_008, 50_688),
    "gpt-oss-120b": _mixture(
        *(2880, 36, 64, 8),
        head_dim=64,
        intermediate_size=2880,
        vocab_size=201_088,
        moe_intermediate_size=2880,
        num_experts=128,
        num_experts_per_tok=4,
        sliding_window=128,
        layer_types=["sliding_attention", "full_attention"] * 18,
    ),
    "intellect-3": _mixture(
        *(4096, 46, 96, 8),
        head_dim=128,
        intermediate_size=10_944,
        vocab_size=151_552,
        moe_intermediate_size=1408,
        num_experts=128,
        num_experts_per_tok=8,
        n_shared_experts=1,
        first_k_dense_replace=1,
    ),
    "llama-4-scout": _mixture(
        *(5120, 48, 40, 8),
        head_dim=128,
        intermediate_size=8192,
        vocab_size=202_048,
        moe_intermediate_size=8192,
        num_experts=16,
        num_experts_per_tok=1,
        n_shared_experts=1,
    ),
}
STAND_INS = frozenset(
    name
    for name in CONFIGS
    if name.startswith(("mpt", "phi", "stablelm", "gpt-oss", "intellect", "llama-4"))
)


def path_of(name: str) -> str:
    """Path of a model below `folder()`."""
    return f"models/{name}"


@lru_cache(maxsize=1)
def folder() -> Path:
    """A temporary folder with a `config.json` for each model."""
    root = Path(tempfile.mkdtemp(prefix="published-"))
    for name, config in CONFIGS.items():
        place = root / path_of(name)
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return root
