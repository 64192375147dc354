"""Which model types of transformers run, decided from the config before anything is loaded.

Every type with a causal language model runs, except those in `families.yaml` with a reason:
attention to later tokens, an encoder, or inputs other than text. The installed transformers says
which types have such a model.
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
"""By reason: the `types` that do not run, and the `reason` in words."""

_MAPPING = re.compile(r"^MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = .*?^\)", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r'^\s+\("([\w.-]+)",\s*"', re.MULTILINE)


_AT_RANDOM = ("dropout", "pdrop", "layerdrop", "jitter")
"""Suffixes of config fields for dropout or noise, before `_noise`."""
_OF_HEADS = ("classifier", "summary")
"""Prefixes of fields that a language model does not read."""


def dropout_in(config: Mapping[str, Any]) -> dict[str, float]:
    """Dropout and noise of this config during training, by field."""
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
    """Why a model of this config does not run; None if it does or nobody can tell."""
    kind = config.get("model_type")
    named = config.get("architectures") or ()
    is_scorer = any(str(name).endswith("ForSequenceClassification") for name in named)
    if not isinstance(kind, str) or "auto_map" in config:
        return None
    family = next((name for name, facts in FAMILIES.items() if kind in facts["types"]), None)
    if family == "encoders" and (config.get("is_decoder") or is_scorer):
        family = None
    if family not in ("encoders", "never_causal"):
        is_pair = config.get("is_encoder_decoder", family == "encoder_decoders")
        if is_pair:
            family = "encoder_decoders"
        elif family == "encoder_decoders":
            family = None
    if family is not None:
        types, reason = FAMILIES[family]["types"], str(FAMILIES[family]["reason"])
        return reason.format(kind=kind, reads=types[kind] if isinstance(types, dict) else "")
    known = causal_types()
    if known and kind not in known and not is_scorer:
        return (
            f"the installed transformers {_version()} has no causal language model of type `{kind}`"
        )
    return None


@lru_cache(maxsize=1)
def causal_types() -> frozenset[str]:
    """Types with a causal language model in the installed transformers; empty if it is not
    installed or lists them otherwise. The list is parsed, not imported, which would take
    seconds."""
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
