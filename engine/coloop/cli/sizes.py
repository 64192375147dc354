"""`coloop estimate MODEL`: the size of one model, of a folder, a hub id or an architecture."""

from pathlib import Path
from typing import Any

from rich.markup import escape

from coloop.cli.output import complain, console, print_json, table_of
from coloop.errors import PresetNotFound
from coloop.plan.settings.architecture import (
    Architecture,
    UnknownArchitecture,
    architecture_from_config,
    count_parameters,
    kv_bytes_per_token,
)
from coloop.plan.settings.facts import config_in
from coloop.plan.settings.families import refusal_of
from coloop.plan.settings.weights import resting_bytes_per_parameter
from coloop.spec import presets
from coloop.units import gib

PRECISIONS: dict[str, tuple[int, str | None]] = {
    "float32": (4, None),
    "bfloat16": (2, None),
    "fp8": (2, "fp8"),
    "nf4": (2, "nf4"),
}
"""Bytes of a parameter, and its quantization; embeddings and heads stay 16-bit."""
CACHE_BYTES = 2
"""A cache in bfloat16."""


def is_model(name: str) -> bool:
    """Whether what is to be estimated is a model rather than a loop: no loop file or preset has
    this name, and it is a folder, a known model, or has the form of a hub id."""
    if name == "-" or Path(name).is_file() or name in presets.loop_names():
        return False
    if Path(name).suffix in (".yaml", ".yml", ".json"):
        return False
    return Path(name).is_dir() or "/" in name or _config_of(name) is not None


def estimate_model(name: str, *, as_json: bool) -> int:
    """Print the sizes of a model; returns 1 if nothing is known of it."""
    config = config_in(name, Path.cwd()) or _config_of(name)
    try:
        if config is None:
            raise UnknownArchitecture(_unknown(name))
        arch = architecture_from_config(config, name)
    except UnknownArchitecture as unknown:
        if as_json:
            print_json({"model": name, "error": str(unknown)})
        else:
            complain(str(unknown))
        return 1
    sizes = sizes_of(arch) | {"refusal": refusal_of(config)}
    if as_json:
        print_json(sizes)
    else:
        _print(arch, sizes)
    return 0


def sizes_of(arch: Architecture) -> dict[str, Any]:
    """Parameters, and bytes of weights and of the key-value cache."""
    count = count_parameters(arch)
    weights = {
        name: round(count.total * resting_bytes_per_parameter(count, size, quantization))
        for name, (size, quantization) in PRECISIONS.items()
    }
    context = arch.max_positions
    token = kv_bytes_per_token(arch, CACHE_BYTES)
    return {
        "model": arch.name,
        "model_type": arch.model_type,
        "is_exact": arch.is_exact,
        "parameters": {
            name: getattr(count, name)
            for name in ("total", "active", "embedding", "head", "routed")
        },
        "layers": arch.layers,
        "attention_layers": arch.attention_layers,
        "weights_bytes": weights,
        "kv_cache": {
            "bytes_per_token": token,
            "context": context,
            "bytes_of_context": kv_bytes_per_token(arch, CACHE_BYTES, context=context) * context,
        },
    }


def _config_of(name: str) -> dict[str, Any] | None:
    """The config of a preset or of a hub id that a preset stands for."""
    try:
        return presets.architecture(name)
    except PresetNotFound:
        return None


def _unknown(name: str) -> str:
    near = " or ".join(presets.like_models(name))
    hint = f"; did you mean {near}?" if near else ""
    if Path(name).is_dir():
        return f"{name} has no config.json that can be read"
    return (
        f"the model {name} is not known{hint}; nothing is downloaded: save its `config.json` in a "
        "folder and give that folder"
    )


def _print(arch: Architecture, sizes: dict[str, Any]) -> None:
    out, parameters, cache = console(), sizes["parameters"], sizes["kv_cache"]
    table = table_of("", "", right=("",))
    guess = "" if arch.is_exact else ", as of a Llama of this size: the type is not known"
    table.add_row("parameters", f"{parameters['total']:,}{guess}")
    if parameters["active"] < parameters["total"]:
        table.add_row("active for a token", f"{parameters['active']:,}")
    for name, size in sizes["weights_bytes"].items():
        table.add_row(f"weights in {name}", gib(size))
    if cache["bytes_per_token"]:
        context = cache["context"]
        table.add_row("KV cache of a token", gib(cache["bytes_per_token"]))
        table.add_row(f"KV cache of {context:,} tokens", gib(cache["bytes_of_context"]))
    else:
        table.add_row("KV cache", "none: its layers keep a state of constant size")
    out.print(f"[bold]{escape(arch.name)}[/] ({escape(arch.model_type)}, {arch.layers} layers)")
    out.print(table)
    if sizes["refusal"] is not None:
        out.print(f"[yellow]coloop does not run it: {escape(sizes['refusal'])}[/]")
