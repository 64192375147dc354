"""Which model types of transformers can run, decided from the config before a model is loaded.

Every type with a causal language model runs, except those in `families.yaml` with a reason:
attention to later tokens, an encoder, or inputs other than text. Which types have such a model is
read from the installed transformers.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from coloop.spec.base import load_yaml

FAMILIES: dict[str, dict[str, Any]] = load_yaml(Path(__file__).with_suffix(".yaml"))
"""By family: the `types` that do not run, and the `reason` for users."""

_MAPPING = re.compile(r"^MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = .*?^\)", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r'^\s+\("([\w.-]+)",\s*"', re.MULTILINE)

_NOISE_SUFFIXES = ("dropout", "pdrop", "layerdrop", "jitter")
"""Ends of the names of config fields for dropout or noise, apart from `_noise`."""
_HEAD_PREFIXES = ("classifier", "summary")
"""Beginnings of the names of fields for heads, which a language model does not use."""


def dropout_in(config: Mapping[str, Any]) -> dict[str, float]:
    """Config fields that turn on dropout or noise in training, with their values."""
    text_config = config.get("text_config")
    fields = text_config if isinstance(text_config, Mapping) else config
    return {
        name: float(value)
        for name, value in fields.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and value > 0
        and name.removesuffix("_noise").endswith(_NOISE_SUFFIXES)
        and not name.startswith(_HEAD_PREFIXES)
    }


def refusal_of(config: Mapping[str, Any]) -> str | None:
    """Why a model of this config cannot run; None if it can, or if its config does not say."""
    model_type = config.get("model_type")
    architectures = config.get("architectures") or ()
    is_scorer = any(str(name).endswith("ForSequenceClassification") for name in architectures)
    if not isinstance(model_type, str) or "auto_map" in config:
        return None
    family = next((name for name, entry in FAMILIES.items() if model_type in entry["types"]), None)
    if family == "encoders" and (config.get("is_decoder") or is_scorer):
        family = None
    if family not in ("encoders", "never_causal"):
        if config.get("is_encoder_decoder", family == "encoder_decoders"):
            family = "encoder_decoders"
        elif family == "encoder_decoders":
            family = None
    if family is not None:
        types, reason = FAMILIES[family]["types"], str(FAMILIES[family]["reason"])
        reads = types[model_type] if isinstance(types, dict) else ""
        return reason.format(kind=model_type, reads=reads)
    known = causal_types()
    if known and model_type not in known and not is_scorer:
        return (
            f"the installed transformers {_version()} has no causal language model of type "
            f"`{model_type}`"
        )
    return None


@lru_cache(maxsize=1)
def causal_types() -> frozenset[str]:
    """Types with a causal language model in the installed transformers; empty if it is not
    installed, or its list cannot be found. Its source is parsed, as an import takes seconds."""
    spec = find_spec("transformers")
    if spec is None or spec.origin is None:
        return frozenset()
    file = Path(spec.origin).parent / "models" / "auto" / "modeling_auto.py"
    try:
        mapping = _MAPPING.search(file.read_text(encoding="utf-8"))
    except OSError:
        return frozenset()
    return frozenset(_TYPE.findall(mapping.group())) if mapping is not None else frozenset()


def _version() -> str:
    try:
        return version("transformers")
    except PackageNotFoundError:
        return ""
