"""Which of transformers' model types run: told from a config alone, before anything is loaded.

Every type that has a causal language model runs, but for those that are named here with the reason:
its tokens see those behind them, it writes to what an encoder has read, or it wants more than text.
Which types have one is what the installed transformers says itself.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

READ_BOTH_WAYS = frozenset(
    {
        *("bert", "bert-generation", "big_bird", "camembert", "data2vec-text", "electra", "ernie"),
        *("megatron-bert", "reformer", "rembert", "roberta", "roberta-prelayernorm", "roc_bert"),
        *("roformer", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    }
)
"""A token sees those behind it, unless the config says `is_decoder`."""
NEVER_CAUSAL = frozenset({"cpmant", "xlm", "xlnet"})
"""A token sees those behind it, whatever the config says."""
ENCODER_DECODERS = frozenset(
    {
        *("bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "marian", "mbart", "mvp"),
        *("pegasus", "plbart", "prophetnet", "trocr", "whisper"),
    }
)
INDEXED = frozenset({"axk2", "deepseek_v32", "glm_moe_dsa"})
"""A token attends to those that an index chooses, which with a cache are others than without."""
UNPROVEN = frozenset(
    {
        *("cohere_compass_text", "dbrx", "dots1", "kimi_linear", "qwen4_exp", "qwen4_exp_text"),
        *("zamba", "zamba2"),
    }
)
"""Types of which no small model has been run."""
MORE_THAN_TEXT = {
    "blt": "bytes in its own patches",
    "emu3": "images as tokens; its text part has no auto class to load it again",
    "fuyu": "pictures",
    "gemma3n": "images and audio",
    "gemma4_assistant": "the states of the model that it assists",
    "gemma4_unified_assistant": "the states of the model that it assists",
    "git": "pictures",
    "got_ocr2": "pictures",
    "mllama": "images; its text part has no auto class to load it again",
    "moshi": "sound",
    "musicgen": "sound",
    "musicgen_melody": "sound",
    "phi4_multimodal": "images and audio",
}
"""What a type reads besides text, without which it is not known to run."""

_MAPPING = re.compile(r"^MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = .*?^\)", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r'^\s+\("([\w.-]+)",\s*"', re.MULTILINE)


_AT_RANDOM = ("dropout", "pdrop", "layerdrop", "jitter")
"""Ends of the names of shares that are dropped or disturbed at random, before `_noise`."""
_OF_HEADS = ("classifier", "summary")
"""Beginnings of those that a language model does not read."""


def dropout_in(config: Mapping[str, Any]) -> dict[str, float]:
    """What a model of this config drops at random while it learns, by the names of the config."""
    text = config.get("text_config")
    facts = text if isinstance(text, Mapping) else config
    return {
        name: float(value)
        for name, value in facts.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and value > 0
        and name.removesuffix("_noise").endswith(_AT_RANDOM)
        and not name.startswith(_OF_HEADS)
    }


def refusal_of(config: Mapping[str, Any]) -> str | None:
    """Why a model of this config does not run; None where it does, or nobody can tell."""
    kind = config.get("model_type")
    named = config.get("architectures") or ()
    is_scorer = any(str(name).endswith("ForSequenceClassification") for name in named)
    if not isinstance(kind, str) or "auto_map" in config:
        return None
    if kind in READ_BOTH_WAYS and not config.get("is_decoder") and not is_scorer:
        return (
            f"models of type `{kind}` are encoders: each token attends to later ones, so they can "
            "neither generate nor give log-probs"
        )
    if kind in NEVER_CAUSAL:
        return (
            f"in models of type `{kind}` each token attends to later ones, so they cannot generate"
        )
    if config.get("is_encoder_decoder", kind in ENCODER_DECODERS):
        return f"a model of type `{kind}` is an encoder-decoder; a policy must be decoder-only"
    if kind in MORE_THAN_TEXT:
        return f"a model of type `{kind}` reads {MORE_THAN_TEXT[kind]}"
    if kind in INDEXED:
        return (
            f"a model of type `{kind}` uses sparse attention with an index: its log-probs of a "
            "text differ from those it had while generating it"
        )
    if kind in UNPROVEN:
        return f"models of type `{kind}` have not been tested with coloop"
    known = causal_types()
    if known and kind not in known and not is_scorer:
        return (
            f"the installed transformers {_version()} has no causal language model of type `{kind}`"
        )
    return None


@lru_cache(maxsize=1)
def causal_types() -> frozenset[str]:
    """Types for which the installed transformers has a causal language model; none where it is not
    installed, or lists them otherwise. It is read, not imported, which would take seconds."""
    spec = find_spec("transformers")
    if spec is None or spec.origin is None:
        return frozenset()
    file = Path(spec.origin).parent / "models" / "auto" / "modeling_auto.py"
    try:
        found = _MAPPING.search(file.read_text(encoding="utf-8"))
    except OSError:
        return frozenset()
    return frozenset(_TYPE.findall(found.group())) if found is not None else frozenset()


def _version() -> str:
    try:
        return version("transformers")
    except PackageNotFoundError:
        return ""
