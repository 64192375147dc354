"""What the gallery says of each preset: its graph, what it costs, whether this machine can run it.

To work that out, a loop is read, sized, checked and planned. The answer holds for these texts, this
version of coloop and this machine, and is kept in the data folder under a hash of the three.

    list --hash of a preset--> in memory? --> in presets.json? --> worked out, once
"""

import hashlib
import json
import logging
import os
import shutil
import threading
from functools import cache
from pathlib import Path

from pydantic import ValidationError

import coloop
from coloop.explain.about import traits_of
from coloop.plan.cost import explain
from coloop.plan.settings.processor import processor_here
from coloop.plan.unrolled import Unrolled
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop_server import language
from coloop_server.presets.schemas import LoopPresetEntry, Sketch, SketchEdge, SketchNode
from coloop_server.private import write_private

logger = logging.getLogger(__name__)

KEPT = "presets.json"


class Gallery:
    """Entries of all presets. Thread-safe; each entry is computed once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / KEPT
        self.lock = threading.Lock()
        self.entries: dict[str, LoopPresetEntry] | None = None
        """By hash of what they depend on."""

    def list(self) -> list[LoopPresetEntry]:
        with self.lock:
            known = self.read() if self.entries is None else self.entries
            rest = ground()
            by_digest = {
                digest(rest, preset.name, preset.path.read_text(encoding="utf-8")): preset
                for preset in presets.list_loops()
            }
            entries = {key: known.get(key) or work_out(preset) for key, preset in by_digest.items()}
            if entries.keys() != known.keys():
                self.write(entries)
            self.entries = entries
            return list(entries.values())

    def read(self) -> dict[str, LoopPresetEntry]:
        """Entries cached by an earlier server; empty if unreadable."""
        try:
            kept = json.loads(self.path.read_bytes())
            return {key: LoopPresetEntry.model_validate(entry) for key, entry in kept.items()}
        except (OSError, ValueError, AttributeError, ValidationError):
            return {}

    def write(self, entries: dict[str, LoopPresetEntry]) -> None:
        told = {key: entry.model_dump(mode="json") for key, entry in entries.items()}
        try:
            write_private(self.path, json.dumps(told))
        except OSError as error:
            logger.warning("what the gallery shows could not be kept: %s", error)


def ground() -> str:
    """What entries depend on besides their presets: source files and this machine."""
    own = {name: value for name, value in os.environ.items() if name.startswith("COLOOP_")}
    return digest(
        sources(), repr(processor_here()), repr(has_gpus()), json.dumps(own, sort_keys=True)
    )


@cache
def sources() -> str:
    """The files of coloop and its presets, as of the first call."""
    folders = (Path(coloop.__file__).parent, Path(__file__).parents[1], presets.presets_root())
    stamps = []
    for folder in folders:
        for path in sorted(folder.rglob("*.*")):
            if path.suffix in (".py", ".yaml"):
                status = path.stat()
                stamps.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return digest(*stamps)


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def has_gpus() -> bool:
    return shutil.which("nvidia-smi") is not None


def work_out(preset: presets.LoopPreset) -> LoopPresetEntry:
    """The entry of a preset; its loop is parsed and unrolled once."""
    spec = language.require_spec(preset.path.read_text(encoding="utf-8"))
    unrolled = Unrolled(spec)
    explanation = explain(spec, unrolled)
    traits = traits_of(preset.name, spec, explanation)
    is_equipped = has_gpus() or not traits.needs_gpus
    return LoopPresetEntry(
        name=preset.name,
        title=preset.title,
        description=preset.description,
        runnable_here=is_equipped and language.is_runnable(spec, unrolled, explanation.estimate),
        traits=traits,
        sketch=sketch_of(spec),
    )


def sketch_of(spec: LoopSpec) -> Sketch:
    learners, aside = set(spec.graph.learners()), measuring(spec)
    joined: dict[tuple[str, str], bool] = {}
    for edge in spec.edges:
        if {edge.source.node, edge.target.node} & aside:
            continue
        ends = (edge.source.node, edge.target.node)
        joined[ends] = joined.get(ends, False) or spec.graph.teaches(edge)
    return Sketch(
        nodes=[
            SketchNode(id=node, kind=section.kind, learns=node in learners)
            for node, section in spec.nodes.items()
            if node not in aside
        ],
        edges=[
            SketchEdge(source=source, target=target, teaches=teaches)
            for (source, target), teaches in joined.items()
        ],
    )


def measuring(spec: LoopSpec) -> set[str]:
    """Nodes used only for measuring, which a thumbnail omits."""
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
