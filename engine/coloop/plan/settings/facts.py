"""From a `model` section to its architecture.

A name is looked up in this order: a local folder with a `config.json`, one in the folder of models
(`coloop.spec.model_folders`), a hub id of a preset, a preset's name. A node whose weights come from
another node has that node's architecture. If it is unknown here (a folder of another machine, an
earlier run), there is no architecture and a note says why; nothing raises. Local folders are read
only below a given `root`; without it no file is opened. For an earlier run that is not found here,
a preset loop of its name gives the architecture.
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from coloop.errors import PresetNotFound
from coloop.plan.settings.architecture import (
    Architecture,
    UnknownArchitecture,
    architecture_from_config,
)
from coloop.plan.settings.settings import Note
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.model import (
    CopyModel,
    Lora,
    PretrainedModel,
    RunModel,
    ScratchModel,
    SharedModel,
    SnapshotModel,
)
from coloop.spec.model_folders import folder_of
from coloop.spec.nodes import model_of

CONFIG_LIMIT_BYTES = 2**20


def architecture_of(model: Any, root: Path | None = None) -> Architecture:
    """The architecture that a `model` section names by itself; raises `UnknownArchitecture`."""
    match model:
        case ScratchModel():
            try:
                return _preset_architecture(model.architecture)
            except PresetNotFound as missing:
                raise UnknownArchitecture(str(missing)) from missing
        case PretrainedModel():
            try:
                return _from_folder(model.path, root) or _preset_architecture(model.path)
            except PresetNotFound as missing:
                raise UnknownArchitecture(
                    f"{model.path!r} is not known: there is no such folder with a config.json, and "
                    "no known model with this id"
                ) from missing
        case RunModel():
            known = _from_preset_loop(model.run, model.node)
            if known is None:
                raise UnknownArchitecture(
                    f"the weights come from the run {model.run!r}, whose model is not known here"
                )
            return known
    raise UnknownArchitecture("the weights come from another node")


def resolve_architecture(
    spec: LoopSpec, node: str, root: Path | None = None
) -> tuple[Architecture | None, Note | None]:
    """The architecture of a node, through the nodes that its weights come from."""
    origin = origin_of(spec, node)
    if origin is None:
        return None, Note(
            message="its weights come from a node that has none",
            node=node,
            field="model",
            is_gap=True,
        )
    model = model_of(spec.nodes[origin])
    try:
        return architecture_of(model, root), None
    except UnknownArchitecture as unknown:
        field, named = named_by(model)
        near = presets.like_models(named) if field == "model.path" else ()
        return None, Note(
            message=str(unknown), node=node, field=field, is_gap=True, found=named, near=near
        )


def named_by(model: Any) -> tuple[str, str]:
    match model:
        case ScratchModel():
            return "model.architecture", model.architecture
        case PretrainedModel():
            return "model.path", model.path
        case RunModel():
            return "model.run", model.run
    return "model", ""


@lru_cache(maxsize=64)
def _from_preset_loop(name: str, node: str) -> Architecture | None:
    """The architecture of a preset loop's node; None if no preset has that name."""
    try:
        spec = parse(presets.load_loop_text(name)).spec
    except PresetNotFound:
        return None
    return resolve_architecture(spec, node)[0] if spec is not None else None


def origin_of(spec: LoopSpec, node: str) -> str | None:
    """The node whose section names the weights, through `with` and `of`."""
    seen: set[str] = set()
    while node in spec.nodes and node not in seen:
        seen.add(node)
        match model_of(spec.nodes[node]):
            case SharedModel() as shared:
                node = shared.with_
            case CopyModel() | SnapshotModel() as derived:
                node = derived.of
            case None:
                return None
            case _:
                return node
    return None


def adapter_parameters(arch: Architecture, lora: Lora) -> int:
    """Parameters of an adapter: rank * (inputs + outputs) of each adapted matrix."""
    blocks = 1 if arch.moe is None else arch.moe.experts + arch.moe.shared_experts
    shapes = _adapted_shapes(arch, lora)
    times = {name: blocks if name in IN_EXPERTS else 1 for name in shapes}
    return lora.rank * arch.layers * sum(times[name] * sum(shape) for name, shape in shapes.items())


def adapted_widths(arch: Architecture, lora: Lora) -> dict[str, int]:
    return {name: min(shape) for name, shape in _adapted_shapes(arch, lora).items()}


IN_EXPERTS = ("gate_proj", "up_proj", "down_proj")


def _adapted_shapes(arch: Architecture, lora: Lora) -> dict[str, tuple[int, int]]:
    """(inputs, outputs) of each adapted matrix of a layer."""
    h, q, k = arch.hidden_size, arch.query_width, arch.kv_width
    inner = arch.ffn if arch.moe is None else arch.moe.ffn
    shapes = {
        "q_proj": (h, q),
        "k_proj": (h, k),
        "v_proj": (h, k),
        "o_proj": (q, h),
        "gate_proj": (h, inner),
        "up_proj": (h, inner),
        "down_proj": (inner, h),
    }
    asked = set(lora.targets) or set(shapes)
    if "all-linear" in asked:
        asked = set(shapes)
    return {
        name: shape
        for name, shape in shapes.items()
        if any(name == target or target.endswith(name) for target in asked)
    }


@lru_cache(maxsize=256)
def _preset_architecture(name: str) -> Architecture:
    return architecture_from_config(presets.architecture(name), name)


def _from_folder(name: str, root: Path | None) -> Architecture | None:
    config = _read_config(name, root)
    if config is None:
        return None
    if config.get("model_type") is None:
        raise UnknownArchitecture(f"{name}/config.json has no `model_type`")
    return architecture_from_config(config, name)


def config_in(name: str, root: Path | None) -> dict[str, Any] | None:
    try:
        return _read_config(name, root)
    except UnknownArchitecture:
        return None


def _read_config(name: str, root: Path | None) -> dict[str, Any] | None:
    if root is None:
        return None
    try:
        file = folder_of(name, root) / "config.json"
        if not file.is_file() or file.stat().st_size > CONFIG_LIMIT_BYTES:
            return None
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        return None
    except (ValueError, RecursionError) as error:
        raise UnknownArchitecture(f"{name}/config.json cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise UnknownArchitecture(f"{name}/config.json is not a mapping")
    return config
