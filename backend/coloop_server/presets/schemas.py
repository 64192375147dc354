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
    """Whether any edge between the two nodes leads to a teaching port."""


class Sketch(Output):
    """The graph of a loop for a thumbnail, without nodes that only measure."""

    nodes: list[SketchNode]
    edges: list[SketchEdge]
    """At most one between two nodes in each direction."""


class LoopPresetEntry(Output):
    name: str
    title: str
    description: str
    runnable_here: bool
    """Whether this version can run it and this machine has the GPUs that it needs."""
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
    """Name of the GPU; null on hardware without GPUs."""
    capacity_bytes: int
    """Memory of one GPU, or of the machine without GPUs."""
    usable_bytes: int
    """Part of it that processes can use."""
    bandwidth: float
    """Bytes of that memory that one GPU reads or writes per second."""
    bf16_flops: float
    """Dense bfloat16 operations per second of one GPU; without GPUs float32 ones of one core."""
    link_bandwidth: float
    """Bytes per second to another GPU of the same machine, one way."""
    workers: int
    """Number of worker processes on hardware without GPUs; otherwise 0."""


class ModelEntry(Output):
    name: str
    title: str
    description: str
    aliases: list[str]
    """Hugging Face model ids that it stands for."""
    architecture: dict[str, Any]
    """Fields of the model's Hugging Face config."""
