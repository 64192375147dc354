"""Presets as the page shows them."""

import shutil
from dataclasses import asdict
from functools import lru_cache

from coloop import presets
from coloop.errors import PresetNotFound
from coloop.explain.about import About, about, traits
from coloop.spec.graph import LoopSpec
from coloop_server import language
from coloop_server.errors import NotFound
from coloop_server.presets.schemas import (
    HardwareEntry,
    LoopPresetEntry,
    LoopPresetText,
    ModelEntry,
    Sketch,
    SketchEdge,
    SketchNode,
)


def list_loops() -> list[LoopPresetEntry]:
    return [
        LoopPresetEntry(
            name=preset.name,
            title=preset.title,
            description=preset.description,
            runnable_here=is_runnable_here(preset.name, preset.path.stat().st_mtime_ns),
            traits=traits(preset.name),
            sketch=sketch_of(preset.name, preset.path.stat().st_mtime_ns),
        )
        for preset in presets.list_loops()
    ]


def get_loop(name: str) -> LoopPresetText:
    try:
        text = presets.load_loop_text(name)
    except PresetNotFound as error:
        raise NotFound(error.code, str(error)) from error
    return LoopPresetText(name=name, yaml=text, spec=language.document(text))


def about_loop(name: str) -> About:
    try:
        return about(name)
    except PresetNotFound as error:
        raise NotFound(error.code, str(error)) from error


@lru_cache(maxsize=256)
def sketch_of(name: str, stamp: int) -> Sketch:
    """The graph of a preset for its thumbnail; `stamp` renews it."""
    spec = language.require_spec(presets.load_loop_text(name))
    learners, aside = set(spec.graph.learners()), _measuring(spec)
    joined: dict[tuple[str, str], bool] = {}
    for edge in spec.edges:
        if {edge.source.node, edge.target.node} & aside:
            continue
        ends = (edge.source.node, edge.target.node)
        joined[ends] = joined.get(ends, False) or spec.graph.teaches(edge)
    return Sketch(
        nodes=[
            SketchNode(id=node, kind=one.kind, learns=node in learners)
            for node, one in spec.nodes.items()
            if node not in aside
        ],
        edges=[
            SketchEdge(source=source, target=target, teaches=teaches)
            for (source, target), teaches in joined.items()
        ],
    )


def _measuring(spec: LoopSpec) -> set[str]:
    """Nodes that only measure, and those that serve them alone: a thumbnail does without."""
    aside: set[str] = {name for name, node in spec.nodes.items() if node.kind == "evaluate"}
    while True:
        read_by: dict[str, set[str]] = {}
        for edge in spec.edges:
            read_by.setdefault(edge.source.node, set()).add(edge.target.node)
        learners = set(spec.graph.learners())
        more = {name for name, to in read_by.items() if to <= aside} - aside - learners
        if not more:
            return aside
        aside |= more


def list_hardware() -> list[HardwareEntry]:
    found = map(presets.hardware, presets.list_hardware())
    return [HardwareEntry.model_validate(preset) for preset in found]


def list_models() -> list[ModelEntry]:
    found = map(presets.model, presets.list_models())
    return [ModelEntry.model_validate(asdict(preset)) for preset in found]


@lru_cache(maxsize=256)
def is_runnable_here(name: str, stamp: int) -> bool:
    """Whether the plan takes the loop and its GPUs are here; `stamp` renews the answer."""
    text = presets.load_loop_text(name)
    if traits(name).needs_gpus and shutil.which("nvidia-smi") is None:
        return False
    return language.is_runnable(text)
