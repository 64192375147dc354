"""What a preset teaches, what its nodes do, which curves to expect, how long it takes and what it
costs.

What it teaches is written beside the loops (`presets/about.yaml`); what a node does and what the
loop costs are said from the loop itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from coloop.errors import PresetNotFound
from coloop.explain.nodes import describe_node
from coloop.plan.cost import Explanation
from coloop.plan.cost import explain as explain_estimate
from coloop.spec import presets
from coloop.spec.algorithm import node_algorithms
from coloop.spec.algorithms.registry import title_of
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.modes import ModeName
from coloop.spec.purpose import mode_of
from coloop.spec.text.reader import data_of

Number = TypeVar("Number", int, float)


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class AboutNode(Value):
    node: str
    kind: str
    does: str


class AboutCurve(Value):
    metric: str
    """`node.metric`."""
    expect: str


class Cost(Value):
    """What the estimator says; the loop's own hardware counts."""

    hardware: str
    gpus: int
    step_seconds: float | None
    """Of the phase that the run spends most time in; None: not known."""
    phase: str | None
    """Its name, where there are others beside it."""
    seconds: float
    """Of all phases whose steps are known."""
    is_whole: bool
    """Whether these are all phases; else the run takes longer."""
    gpu_hours: float
    """0 where there are no GPUs."""
    memory_bytes: int | None
    """Of the fullest GPU, or of the machine where there is none; None: not known."""


class About(Value):
    name: str
    title: str
    lesson: str
    """What one learns from it, in a few words."""
    teaches: str
    nodes: list[AboutNode]
    curves: list[AboutCurve]
    experiment: str
    """A change that shows something."""
    cost: Cost
    source: str | None
    """The paper that it follows."""


class Traits(Value):
    """What the gallery sorts and filters by."""

    lesson: str
    tags: list[str]
    mode: ModeName
    learners: list[str]
    """Nodes that learn."""
    algorithms: list[str]
    """Titles, of whatever learns beside imitating."""
    needs_gpus: bool
    gpus: int
    hardware: str
    seconds: float
    is_whole: bool


@cache
def _written() -> dict[str, dict[str, Any]]:
    """What is written of each preset, with what it takes from another."""
    path = presets.presets_root() / "about.yaml"
    if not path.exists():
        return {}
    loaded: dict[str, dict[str, Any]] = data_of(path.read_text("utf-8"))
    return {name: {**loaded.get(own.get("like", ""), {}), **own} for name, own in loaded.items()}


def tags_of(name: str) -> tuple[str, ...]:
    """Words by which a preset is found; none of a loop of which nothing is written."""
    return tuple(_written().get(name, {}).get("tags", ()))


def _own(name: str) -> dict[str, Any]:
    if name not in _written():
        raise PresetNotFound(f"no description of a preset {name!r}")
    return _written()[name]


@cache
def about(name: str) -> About:
    """All that is said of a preset; raises `PresetNotFound`."""
    preset = presets.load_loop(name)
    own, spec = _own(preset.name), _spec_of(preset.name)
    said = own.get("nodes", {})
    return About(
        name=preset.name,
        title=preset.title,
        lesson=own["lesson"],
        teaches=own["teaches"],
        nodes=[
            AboutNode(node=node, kind=one.kind, does=said.get(node) or describe_node(spec, node))
            for node, one in spec.nodes.items()
        ],
        curves=[AboutCurve(metric=metric, expect=text) for metric, text in own["curves"]],
        experiment=own["try"],
        cost=cost_of(spec),
        source=_paper(preset.name),
    )


@cache
def traits(name: str) -> Traits:
    """What the gallery says of a preset beside its title."""
    preset = presets.load_loop(name)
    spec = _spec_of(preset.name)
    return traits_of(preset.name, spec, explain_estimate(spec))


def traits_of(name: str, spec: LoopSpec, found: Explanation) -> Traits:
    """The same of a preset that was read and sized already."""
    own, cost = _own(name), _cost(spec, found)
    return Traits(
        lesson=own["lesson"],
        tags=list(own["tags"]),
        mode=mode_of(spec),
        learners=list(spec.graph.learners()),
        algorithms=_algorithms(spec),
        needs_gpus=cost.gpus > 0,
        gpus=cost.gpus,
        hardware=cost.hardware,
        seconds=cost.seconds,
        is_whole=cost.is_whole,
    )


def _spec_of(name: str) -> LoopSpec:
    spec = parse(presets.load_loop_text(name)).spec
    assert spec is not None, name
    return spec


def _algorithms(spec: LoopSpec) -> list[str]:
    """Of all learners; imitation alone where there is nothing else."""
    names = [
        entry.name
        for node in spec.graph.learners()
        for entries in node_algorithms(spec, node).values()
        for entry in entries
    ]
    telling = [name for name in names if name not in ("sft", "value")] or names
    return list(dict.fromkeys(title_of(name) for name in telling))


def cost_of(spec: LoopSpec) -> Cost:
    """Time and memory of a loop on the hardware that it names."""
    return _cost(spec, explain_estimate(spec))


def _cost(spec: LoopSpec, found: Explanation) -> Cost:
    hardware = presets.hardware_of(spec.hardware)
    known = [phase.seconds for phase in found.phases if phase.seconds is not None]
    seconds = found.total_seconds if found.total_seconds is not None else sum(known)
    main = next((phase for phase in found.phases if phase.name == found.main), None)
    peaks = [gpu.peak_bytes for gpu in found.estimate.gpus]
    return Cost(
        hardware=hardware.name,
        gpus=hardware.gpus,
        step_seconds=main.step_seconds if main else None,
        phase=main.name if main and len(found.phases) > 1 else None,
        seconds=seconds,
        is_whole=found.total_seconds is not None,
        gpu_hours=seconds * hardware.gpus / 3600,
        memory_bytes=_most(peaks, 0),
    )


def _most(values: Sequence[Number | None], empty: Number) -> Number | None:
    """The greatest; None where one of them is not known."""
    known = [value for value in values if value is not None]
    return max(known, default=empty) if len(known) == len(values) else None


def _paper(name: str) -> str | None:
    """The first paper that the head of the preset names."""
    head = presets.load_loop_text(name).partition("coloop:")[0]
    found = re.search(r"arXiv (\d{4}\.\d{5})", head)
    return f"https://arxiv.org/abs/{found[1]}" if found else None
