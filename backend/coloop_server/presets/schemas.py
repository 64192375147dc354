"""Responses of the preset routes."""

from typing import Any

from coloop.explain.about import Traits
from coloop_server.schemas import Output


class SketchNode(Output):
    id: str
    kind: str
    learns: bool


class SketchEdge(Output):
    source: str
    target: str
    teaches: bool


class Sketch(Output):
    """The graph, as much of it as a thumbnail draws."""

    nodes: list[SketchNode]
    edges: list[SketchEdge]
    """One for each two nodes that are joined, and whether any edge between them teaches."""


class LoopPresetEntry(Output):
    name: str
    title: str
    description: str
    runnable_here: bool
    """Whether this machine can run it: the plan takes it, and the hardware is here."""
    traits: Traits
    sketch: Sketch


class LoopPresetText(Output):
    name: str
    yaml: str
    spec: dict[str, Any] | None


class HardwareEntry(Output):
    name: str
    title: str
    description: str
    nodes: int
    gpus_per_node: int
    gpu: str | None
    capacity_bytes: int
    """Memory of one GPU, or of the machine where there is none."""
    usable_bytes: int
    workers: int
    """Worker processes on hardware without GPUs."""


class ModelEntry(Output):
    name: str
    title: str
    description: str
    aliases: list[str]
    """Hub ids that it stands for."""
    architecture: dict[str, Any]
