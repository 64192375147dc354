"""Architectures that no formula covers, counted on the model that transformers builds.

This loads torch and transformers, so a separate process does it (`coloop.models.counting`). Results
are cached in this process, and by the config's content below `XDG_CACHE_HOME` or `~/.cache`.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coloop.plan.settings.families import refusal_of
from coloop.plan.settings.shapes import (
    Architecture,
    Cache,
    LatentAttention,
    MixtureOfExperts,
    ParameterCount,
    UnknownArchitecture,
)

USUAL_WIDTHS = {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
"""Usual widths of latent attention, for configs without them."""
COUNTED = (
    *("model_type", "vocab_size", "hidden_size", "layers", "heads", "kv_heads", "head_dim", "ffn"),
    *("qkv_bias", "qk_norm", "max_positions"),
)
"""Architecture fields taken from the built model."""
PARAMETERS = ("total", "active", "embedding", "head", "layer", "tables")
MOST_SECONDS = 300
"""Time limit for building a model, including loading transformers."""


class _NotBuilt(Exception):
    """The process gave no answer; a retry may succeed."""


def counted_architecture(config: Mapping[str, Any], name: str) -> Architecture:
    """The architecture of a config with counted parameters. Raises `UnknownArchitecture` if
    transformers cannot build it here."""
    try:
        facts = json.loads(_counted(json.dumps(config, sort_keys=True)))
    except _NotBuilt as failed:
        raise UnknownArchitecture(f"the model of {name!r} is not built here: {failed}") from failed
    if "missing" in facts:
        raise UnknownArchitecture(
            f"models of type `{config['model_type']}` are counted with transformers, and "
            f"`{facts['missing']}` is not installed: pip install 'coloop[engine]'"
        )
    if "error" in facts:
        why = refusal_of(config) or f"transformers says {facts['error']!r}"
        raise UnknownArchitecture(f"the model of {name!r} cannot be built: {why}")
    return from_facts(facts, config, name)


def from_facts(facts: Mapping[str, Any], config: Mapping[str, Any], name: str) -> Architecture:
    """The architecture with the sizes of a built model (`coloop.models.counting`)."""
    written = {k: v for k, v in (config.get("text_config") or config).items() if v}
    return Architecture(
        **{field: facts[field] for field in COUNTED},
        name=name,
        tied=not facts["head"],
        output_bias=False,
        mlp_bias=False,
        norms_per_layer=facts["norms"],
        moe=_mixture(facts),
        latent=_latent({**USUAL_WIDTHS, **written}),
        caches=tuple(Cache(**cache) for cache in facts["caches"]),
        is_exact=True,
        is_built=True,
        counted=ParameterCount(
            **{field: facts[field] for field in PARAMETERS},
            routed=int(facts["experts"]["parameters"]) if facts["experts"] else 0,
        ),
    )


def _latent(fields: Mapping[str, Any]) -> LatentAttention | None:
    if not fields.get("kv_lora_rank"):
        return None
    return LatentAttention(
        query_rank=int(fields.get("q_lora_rank") or 0),
        cache_rank=int(fields["kv_lora_rank"]),
        rope_dim=int(fields["qk_rope_head_dim"]),
        plain_dim=int(fields["qk_nope_head_dim"]),
        value_dim=int(fields["v_head_dim"]),
    )


def _mixture(facts: Mapping[str, Any]) -> MixtureOfExperts | None:
    experts = facts["experts"]
    if experts is None:
        return None
    return MixtureOfExperts(
        experts=int(experts["experts"]),
        active_experts=int(experts["active"]),
        shared_experts=int(experts["shared"]),
        ffn=int(experts["ffn"]),
        dense_layers=int(facts["layers"] - experts["layers"]),
    )


@lru_cache(maxsize=128)
def _counted(config: str) -> str:
    kept = _kept_at(config)
    try:
        return kept.read_text(encoding="utf-8") if kept is not None else _built(config)
    except OSError:
        pass
    text = _built(config)
    if kept is not None and not {"error", "missing"} & json.loads(text).keys():
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            aside = kept.with_suffix(f".{os.getpid()}")
            aside.write_text(text, encoding="utf-8")
            aside.replace(kept)
        except OSError:
            pass
    return text


def _kept_at(config: str) -> Path | None:
    """Cache file for a config and this version of transformers."""
    try:
        build = version("transformers")
    except PackageNotFoundError:
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(home):
        return None
    key = hashlib.sha256(f"2\0{build}\0{config}".encode()).hexdigest()
    return Path(home) / "coloop" / "models" / f"{key}.json"


def _built(config: str) -> str:
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "coloop.models.counting"],
            input=config,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            env={**os.environ, **quiet},
            check=False,
        )
    except subprocess.TimeoutExpired as slow:
        raise _NotBuilt(f"it took more than {MOST_SECONDS} s") from slow
    except OSError as error:
        raise _NotBuilt(str(error)) from error
    lines = done.stdout.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        raise _NotBuilt(f"the process that builds it ended with exit code {done.returncode}")
    return lines[-1]
