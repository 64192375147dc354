"""The presets that ship with coloop: loops, what a new loop begins as, building blocks, hardware
and models.

They are in the installed wheel (`coloop/_presets`) or in the repository (`presets/`), and are named
by their file; letter case does not matter. Names are looked up in an index and never joined to a
path, so nothing outside the folder is opened.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from coloop.errors import PresetNotFound
from coloop.spec.diagnostics import Change
from coloop.spec.lean import record
from coloop.spec.placement import GpuFigures, Hardware
from coloop.spec.text.patch import patch
from coloop.spec.text.reader import data_of

GIB = 2**30
GPU_TABLE = "gpus"
NEEDED_FIGURES = ("memory_gib", "bf16_tflops", "bandwidth")
UNKNOWN_GPU = {"link": 31, "training_share": 0.4}
"""Facts of a GPU that is not known, beside the figures that a loop gives: a link of PCIe 4, and the
share of its speed that training reaches on most GPUs."""
PAPER = re.compile(r"\s*\(arXiv [\d.]+\)")
"""An arXiv id in the first line of a loop, which is not part of the title."""


@record
class LoopPreset:
    """A loop that ships with coloop, as the gallery lists it."""

    name: str
    title: str
    description: str
    path: Path


@record
class DeviceFacts:
    """What is known of an accelerator, or of a machine's processor and memory."""

    name: str
    capacity_bytes: int
    """Memory of one GPU, or of the whole machine where there is none."""
    usable_bytes: int
    bandwidth: float
    """Bytes of that memory read or written per second."""
    bf16_flops: float
    """Dense floating-point operations per second of one GPU; in fp32 and of one core where there
    is none."""
    fp32_flops: float
    """The same for products in float32, outside of tensor cores."""
    link_bandwidth: float
    """Bytes per second to a neighbour in the same machine, one way."""
    training_share: float
    """Share of `bf16_flops` that dense training reaches, in model flops."""
    supports_bf16: bool
    unverified: tuple[str, ...]
    """Facts for which no measurement or data sheet was at hand."""


@record
class HardwarePreset(DeviceFacts):
    """Machines of one kind, with the facts of one of their GPUs."""

    title: str
    description: str
    nodes: int
    gpus_per_node: int
    gpu: str | None
    workers: int
    """Worker processes that pools may ask for where there are no GPUs; 0 otherwise."""

    @property
    def verified(self) -> bool:
        return not self.unverified

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node


@record
class ModelPackage:
    """A file of weights in a Python package."""

    name: str  # of the distribution
    file: str  # within its site-packages


@record
class ModelPreset:
    """Architecture facts of a model, as its Hugging Face config has them."""

    name: str
    title: str
    description: str
    aliases: tuple[str, ...]
    architecture: Mapping[str, Any]
    tokenizer: str
    """Tokens of a model made from scratch: `characters` or `bytes`."""
    package: ModelPackage | None
    """What `coloop models add` makes its folder of; None: it cannot."""


def presets_root() -> Path:
    """The folder with `loops`, `about`, `new`, `blocks`, `hardware` and `models`: in the wheel,
    else of the repository."""
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "_presets", package.parents[1] / "presets")
    return next((folder for folder in candidates if folder.is_dir()), candidates[-1])


def list_loops() -> tuple[LoopPreset, ...]:
    return tuple(_read_loop(name, path) for name, path in sorted(_index("loops").items()))


def loop_names() -> tuple[str, ...]:
    """Names of all loop presets; no file is read."""
    return tuple(sorted(_index("loops")))


def load_loop(name: str) -> LoopPreset:
    path = _find("loops", name, "loop")
    return _read_loop(path.stem, path)


def load_loop_text(name: str) -> str:
    """The YAML of a loop preset as it was written, comments included."""
    return _find("loops", name, "loop").read_text(encoding="utf-8")


def about_names() -> tuple[str, ...]:
    """Names of the presets that have texts."""
    return tuple(_index("about"))


def load_about(name: str) -> dict[str, Any]:
    """The texts about a loop preset, as its file in `about` has them."""
    return _load_yaml(_find("about", name, "description of a preset"))


def load_new_text(mode: str) -> str:
    """The YAML of the small loop with which one of a mode begins."""
    return _find("new", mode, "mode").read_text(encoding="utf-8")


def block_names() -> tuple[str, ...]:
    """Names of all building blocks (`spec.blocks`)."""
    return tuple(sorted(_index("blocks")))


def load_block_text(name: str) -> str:
    """The YAML of a building block."""
    return _find("blocks", name, "building block").read_text(encoding="utf-8")


def _read_loop(name: str, path: Path) -> LoopPreset:
    text = path.read_text(encoding="utf-8")
    comment = _leading_comment(text)
    head, *rest = re.split(r": |\.(?:\s|$)", " ".join(comment), maxsplit=1)
    title = PAPER.sub("", head) or name.replace("-", " ").capitalize()
    description = _description_field(text) or "".join(rest)
    return LoopPreset(name=name, title=title, description=description, path=path)


def _leading_comment(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if stripped := line.lstrip("#").strip():
            lines.append(stripped)
    return lines


def _description_field(text: str) -> str:
    """The top-level `description` when it stands on one line; a gallery needs no full parse."""
    match = re.search(
        r"^description:\s*(?P<quote>[\"']?)(?P<text>[^\n]*?)(?P=quote)\s*$", text, re.M
    )
    return match["text"] if match and match["text"] not in (">", "|", ">-", "|-") else ""


def patched(text: str, changes: Sequence[Change | Mapping[str, Any]]) -> str:
    """A loop's text after these changes (`spec.text.patch`).

    The comment at the head of a preset is removed if the hardware or a model changed, because it
    describes the preset as it ships. A comment of the user's own stays.
    """
    new = patch(text, changes)
    comment = tuple(_leading_comment(new))
    if comment not in _shipped_comments() or _is_told_of_both(data_of(text), data_of(new)):
        return new
    lines = new.splitlines(keepends=True)
    head = next(at for at, line in enumerate(lines) if not line.startswith("#"))
    while head < len(lines) and not lines[head].strip():
        head += 1
    return "".join(lines[head:])


@lru_cache(maxsize=1)
def _shipped_comments() -> frozenset[tuple[str, ...]]:
    paths = [*_index("loops").values(), *_index("new").values()]
    found = (tuple(_leading_comment(path.read_text(encoding="utf-8"))) for path in paths)
    return frozenset(comment for comment in found if comment)


def _is_told_of_both(before: Any, after: Any) -> bool:
    """Whether two states of a loop have the same hardware, and both every model of the first."""
    machine, models = _machine_and_models(before)
    other, found = _machine_and_models(after)
    return machine == other and all(found.get(name) == model for name, model in models.items())


def _machine_and_models(document: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    hardware, nodes = document.get("hardware"), document.get("nodes")
    machine = dict(hardware) if isinstance(hardware, Mapping) else {}
    machine.pop("memory_budget", None)
    models = {
        name: node["model"]
        for name, node in (nodes.items() if isinstance(nodes, Mapping) else ())
        if isinstance(node, Mapping) and "model" in node
    }
    return machine, models


def list_hardware() -> tuple[str, ...]:
    """Names of all hardware presets: without GPU first, then by GPU and count."""
    names = [name for name in _index("hardware") if name != GPU_TABLE]
    return tuple(sorted(names, key=_hardware_order))


def _hardware_order(name: str) -> tuple[str, int]:
    count, _, gpu = name.partition("x")
    return (gpu, int(count)) if count.isdigit() else ("", 0)


def list_gpus() -> tuple[str, ...]:
    """Names that `hardware: {gpu: NAME}` accepts."""
    return tuple(sorted(_gpu_table()))


def gpu_facts(name: str) -> DeviceFacts:
    table = _gpu_table()
    if (found := _lookup(table, name)) is None:
        raise PresetNotFound(_unknown("GPU", name, table))
    return DeviceFacts(name=found, **_device_facts(table[found]))


def _device_facts(raw: Mapping[str, Any]) -> dict[str, Any]:
    flops = raw["bf16_tflops"] * 1e12 if "bf16_tflops" in raw else raw["gflops_per_core"] * 1e9
    return {
        "capacity_bytes": round(raw["memory_gib"] * GIB),
        "usable_bytes": round(raw["usable_gib"] * GIB),
        "bandwidth": raw["bandwidth"] * 1e9,
        "bf16_flops": flops,
        "fp32_flops": raw["fp32_tflops"] * 1e12 if "fp32_tflops" in raw else flops / 16,
        "link_bandwidth": raw.get("link", raw["bandwidth"]) * 1e9,
        "training_share": raw.get("training_share", 1.0),
        "supports_bf16": raw.get("supports_bf16", True),
        "unverified": tuple(raw.get("unverified", ())),
    }


@lru_cache(maxsize=256)
def hardware(name: str) -> HardwarePreset:
    """A hardware preset by its name, such as `8xH100`."""
    path = _find("hardware", name, "hardware preset", exclude=(GPU_TABLE,))
    raw = _load_yaml(path)
    texts: dict[str, Any] = {
        "name": path.stem,
        **{key: raw[key] for key in ("title", "description")},
    }
    if "cpu" in raw:
        facts = {**_device_facts(raw["cpu"]), "workers": raw["cpu"]["workers"]}
        return HardwarePreset(**texts, **facts, nodes=raw["nodes"], gpus_per_node=0, gpu=None)
    counts = {key: raw[key] for key in ("nodes", "gpus_per_node", "gpu")}
    return custom_hardware(**counts, **texts)


def hardware_of(section: Hardware) -> HardwarePreset:
    """The machine that a loop's `hardware` describes; raises `PresetNotFound` for unknown names,
    and for a GPU that needs figures and lacks some."""
    if section.gpu is not None:
        nodes, each = section.nodes or 1, section.gpus_per_node or 1
        return custom_hardware(
            nodes=nodes, gpus_per_node=each, gpu=section.gpu, figures=section.figures
        )
    found = hardware(section.preset or "cpu")
    if section.figures is None or found.gpu is None:
        return found
    return replace(
        found, **asdict(_with_figures(found.gpu, section.figures)) | {"name": found.name}
    )


def custom_hardware(
    *, nodes: int, gpus_per_node: int, gpu: str, figures: GpuFigures | None = None, **texts: str
) -> HardwarePreset:
    """Machines with GPUs, from the facts of one GPU; `texts`: those of a preset."""
    name = f"{nodes * gpus_per_node}x{gpu}"
    description = f"{gpus_per_node} {gpu} in each of {nodes}"
    facts = asdict(gpu_facts(gpu) if figures is None else _with_figures(gpu, figures))
    own = {"title": name, "description": description, "gpu": facts["name"]}
    values = {**facts, **own, "name": name, **texts}
    return HardwarePreset(**values, nodes=nodes, gpus_per_node=gpus_per_node, workers=0)


def _with_figures(name: str, figures: GpuFigures) -> DeviceFacts:
    """Facts of a GPU of which a loop has figures of its own."""
    own = figures.model_dump(exclude_none=True)
    memory = {} if "memory_gib" not in own else {"usable_gib": own["memory_gib"]}
    if (known := _lookup(_gpu_table(), name)) is not None:
        raw = {**_gpu_table()[known], **own, **memory}
        given = {*own, *memory}
        raw["unverified"] = [fact for fact in raw.get("unverified", ()) if fact not in given]
        return DeviceFacts(name=known, **_device_facts(raw))
    lacking = [field for field in NEEDED_FIGURES if field not in own]
    if lacking:
        raise PresetNotFound(
            f"no GPU is named {name!r}, and `hardware.figures` lacks {' and '.join(lacking)}"
        )
    return DeviceFacts(name=name, **_device_facts({**UNKNOWN_GPU, **own, **memory}))


def list_models() -> tuple[str, ...]:
    return tuple(sorted(_index("models")))


def packaged_models() -> tuple[ModelPreset, ...]:
    """Models of which `coloop models add` makes a folder."""
    return tuple(known for known in map(model, list_models()) if known.package is not None)


def packaged_model(name: str) -> ModelPreset:
    """One of them; raises `PresetNotFound` with the nearest names."""
    known = {preset.name: preset for preset in packaged_models()}
    if (found := _lookup(known, name)) is None:
        raise PresetNotFound(_unknown("model that can be added", name, known))
    return known[found]


@lru_cache(maxsize=1)
def known_models() -> tuple[str, ...]:
    """Every name of a model: hub ids first, then the presets' own."""
    ids = [alias for name in _index("models") for alias in model(name).aliases]
    return (*sorted(ids, key=str.lower), *list_models())


def like_models(name: str, limit: int = 3) -> tuple[str, ...]:
    """Known models with similar names, the nearest first: by full name, then without the owner."""
    known = known_models()
    whole = {model.lower(): model for model in reversed(known)}
    tails = {model.rpartition("/")[2].lower(): model for model in reversed(known)}
    asked, tail = name[:120].lower(), name[:120].lower().rstrip("/").rpartition("/")[2]
    alike = [
        *(whole[key] for key in difflib.get_close_matches(asked, whole, n=limit, cutoff=0.72)),
        *(tails[key] for key in difflib.get_close_matches(tail, tails, n=limit, cutoff=0.6)),
    ]
    return tuple(dict.fromkeys(alike))[:limit]


@lru_cache(maxsize=256)
def model(name: str) -> ModelPreset:
    """An architecture preset by its name or by a hub id that it stands for."""
    path, overrides = _find_model(name)
    raw = _load_yaml(path)
    aliases = raw.get("aliases", {})
    chosen = _lookup(aliases, name) if overrides else None
    return ModelPreset(
        name=path.stem,
        title=raw["title"],
        description=raw["description"],
        aliases=tuple(aliases),
        architecture=raw["architecture"] | (aliases[chosen] if chosen else {}),
        tokenizer=raw.get("tokenizer", "characters"),
        package=ModelPackage(**raw["package"]) if "package" in raw else None,
    )


def architecture(name: str) -> dict[str, Any]:
    """The facts of an architecture as a Hugging Face config has them."""
    return dict(model(name).architecture)


def _find_model(name: str) -> tuple[Path, bool]:
    """The file that describes a model, and whether `name` is one of its hub ids."""
    index = _index("models")
    if found := _lookup(index, name):
        return index[found], False
    pattern = re.compile(rf"^  {re.escape(name)}:", re.M | re.I)
    for path in index.values():
        if "/" in name and pattern.search(path.read_text(encoding="utf-8")):
            return path, True
    raise PresetNotFound(_unknown("architecture", name.rpartition("/")[2], index))


@lru_cache(maxsize=8)
def _index(kind: str) -> Mapping[str, Path]:
    return {path.stem: path for path in sorted((presets_root() / kind).rglob("*.yaml"))}


@lru_cache(maxsize=1)
def _gpu_table() -> Mapping[str, Mapping[str, Any]]:
    return _load_yaml(_index("hardware")[GPU_TABLE])


def _load_yaml(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = data_of(path.read_text(encoding="utf-8"))
    return loaded


def _find(kind: str, name: str, title: str, exclude: Iterable[str] = ()) -> Path:
    index = {key: path for key, path in _index(kind).items() if key not in exclude}
    if (found := _lookup(index, name)) is None:
        raise PresetNotFound(_unknown(title, name, index))
    return index[found]


def _lookup(index: Mapping[str, Any], name: str) -> str | None:
    if name in index:
        return name
    return next((key for key in index if key.lower() == name.lower()), None)


def _unknown(title: str, name: str, known: Iterable[str]) -> str:
    lower = {key.lower(): key for key in known}
    close = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)
    hint = " or ".join(lower[key] for key in close)
    return f"no {title} is named {name!r}" + (f"; did you mean {hint}?" if hint else "")
