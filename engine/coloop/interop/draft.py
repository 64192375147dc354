"""A loop that is being built from settings: values by path, and the graph that follows from its
nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from coloop.spec import presets
from coloop.spec.algorithm import PORTS_OF
from coloop.spec.algorithms.registry import (
    DISTILLATION_BASE,
    PREFERENCE_BASE,
    PRESETS,
    REWARDS_BASE,
)
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.text.emit import to_yaml

ASSUMED_GPU: Final = "H100-80GB"
MISSING: Final[Any] = object()
TEACHING: Final = {section.__name__: ports for section, ports in PORTS_OF.items()}
COLUMN: Final = 320
ROW: Final = 200
PLACES: Final[Mapping[str, tuple[int, int]]] = {
    "prompts": (0, 0),
    "preferences": (0, 0),
    "demonstrations": (0, 0),
    "held_out": (0, 2),
    "actor": (1, 0),
    "reward": (2, 0),
    "overlong": (2, 1),
    "informative": (3, 0),
    "reference": (3, 1),
    "critic": (3, 2),
    "teacher": (3, 1),
    "probe": (4, 0),
    "fit": (3, 2),
}
"""Column and row of each node in the editor."""


class Draft:
    """Nodes with their values, and the edges between them."""

    def __init__(self, name: str, title: str) -> None:
        self.name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "imported"
        self.title = title
        self.nodes: dict[str, dict[str, Any]] = {}
        self.sections: dict[str, dict[str, Any]] = {"schedule": {}, "hardware": {}, "run": {}}
        self.edges: list[str | dict[str, Any]] = []
        self.mode = "online"
        self.assumptions: list[str] = []

    def node(self, name: str, **values: Any) -> None:
        self.nodes[name] = {**self.nodes.get(name, {}), **values}

    def edge(self, source: str, target: str, weight: float = 1.0) -> None:
        if weight == 1.0:
            self.edges.append(f"{source} -> {target}")
        else:
            self.edges.append({"from": source, "to": target, "weight": weight})

    def assume(self, what: str) -> None:
        self.assumptions.append(what)

    def holds(self, path: str) -> bool:
        """Whether the node of a path is there."""
        first, _, rest = path.partition(".")
        return first != "nodes" or rest.partition(".")[0] in self.nodes

    def put(self, path: str, value: Any) -> None:
        """Set a value; a path of a node that is not there is ignored."""
        if not self.holds(path):
            return
        first, *words = path.split(".")
        here = self.nodes if first == "nodes" else self.sections[first]
        for word in words[:-1]:
            here = here.setdefault(word, {})
        here[words[-1]] = value

    def get(self, path: str) -> Any:
        first, *words = path.split(".")
        here: Any = self.nodes if first == "nodes" else self.sections[first]
        for word in words:
            if not isinstance(here, Mapping) or word not in here:
                return None
            here = here[word]
        return here

    def remove(self, path: str) -> bool:
        """Take a value out, or the nearest that holds it; whether something was there."""
        first, *words = path.split(".")
        here: Any = self.nodes if first == "nodes" else self.sections.get(first)
        for word in words[:-1]:
            if not isinstance(here, Mapping) or word not in here:
                return False
            here = here[word]
        if not words or not isinstance(here, dict) or words[-1] not in here:
            return False
        del here[words[-1]]
        return True

    def is_default(self, path: str, value: Any) -> bool:
        """Whether a loop has this value where it says nothing."""
        default = self.default_of(path, MISSING)
        return bool(default == value) and type(default) is type(value)

    def default_of(self, path: str, otherwise: Any = None) -> Any:
        """What a loop has at a path where it says nothing."""
        first, *words = path.split(".")
        section: Any = LoopSpec.model_fields[first].annotation
        here: Any = self.sections.get(first)
        if first == "nodes":
            if words[0] not in self.nodes:
                return otherwise
            here = self.nodes[words[0]]
            section = NODE_CLASSES[here["kind"]]
            words = words[1:]
        for word in words[:-1]:
            here = here.get(word) if isinstance(here, Mapping) else None
            section = section_at(section, word, here)
            if section is None:
                return otherwise
        info = section.model_fields.get(words[-1])
        if info is None or info.is_required():
            return otherwise
        return info.get_default(call_default_factory=True)

    def algorithm(self, node: str, name: str, fields: Mapping[str, Any]) -> None:
        """A preset and what differs from it."""
        base = {**REWARDS_BASE, **PREFERENCE_BASE} if name not in PRESETS else base_of(name)
        differs = {
            key: value
            for key, value in fields.items()
            if key in ("kl", "correction") or base.get(key, ...) != value
        }
        if differs.get("kl", ...) is None and base.get("kl") is None:
            del differs["kl"]
        self.nodes[node]["algorithm"] = {"name": name, **differs}

    def machines(self, nodes: int, gpus: int, gpu: str | None) -> None:
        """Hardware, by preset where one is the same."""
        if gpu is None:
            gpu = ASSUMED_GPU
            self.assume(f"the kind of the GPUs is not given: {gpu} assumed")
        self.sections["hardware"].update(hardware_section(nodes, gpus, gpu))

    def connect(self, rewards: Mapping[str, float]) -> None:
        """The edges of a loop that learns from rewards; `rewards` are scorers with weights."""
        self.edge("prompts.rows", "actor.prompts")
        is_filtered = "informative" in self.nodes
        source = "informative.rollouts" if is_filtered else "actor.rollouts"
        first = next(iter(rewards), None)
        for name, weight in rewards.items():
            if name == first:
                self.edge("actor.rollouts", f"{name}.rollouts")
                if is_filtered:
                    self.edge("actor.rollouts", "informative.rollouts")
                    self.edge(f"{name}.scores", "informative.scores")
                    self.edge("informative.scores", "actor.rewards", weight)
                else:
                    self.edge(f"{name}.scores", "actor.rewards", weight)
            else:
                self.edge(source, f"{name}.rollouts")
                self.edge(f"{name}.scores", "actor.rewards", weight)
        if "critic" in self.nodes:
            self.edge(source, "critic.rollouts")
            self.edge("critic.values", "actor.values")
            self.edge("actor.returns", "critic.returns")
        for name in ("reference", "teacher"):
            if name in self.nodes:
                self.edge(source, f"{name}.rollouts")
                self.edge(f"{name}.log_probs", "actor.reference")
        if "probe" in self.nodes:
            self.edge("held_out.rows", "probe.rows")
            if first is not None:
                self.edge(f"{first}.scores", "probe.scores")

    def connect_pairs(self, learner: str) -> None:
        """The edges of a loop that learns from the pairs of a dataset."""
        self.edge("preferences.pairs", f"{learner}.pairs")
        if "reference" in self.nodes:
            self.edge("preferences.pairs", "reference.pairs")
            self.edge("reference.log_probs", f"{learner}.reference")
        if "fit" in self.nodes:
            self.edge("held_out.pairs", "fit.pairs")
            if "reference" in self.nodes:
                self.edge("held_out.pairs", "reference.pairs")

    def connect_demonstrations(self) -> None:
        """The edges of a loop that imitates the rows of a dataset."""
        self.edge("demonstrations.rows", "actor.demonstrations")
        if "fit" in self.nodes:
            self.edge("held_out.rows", "fit.rows")

    def document(self) -> dict[str, Any]:
        return {
            "coloop": 1,
            "name": self.name,
            "description": self.title,
            "mode": self.mode,
            "nodes": self.nodes,
            "edges": self.edges,
            **{key: section for key, section in self.sections.items() if section},
            "layout": dict(self._layout()),
        }

    def _layout(self) -> Iterable[tuple[str, list[int]]]:
        others = 0
        for name in self.nodes:
            column, row = PLACES.get(name, (2, 2 + others))
            others += name not in PLACES
            yield name, [column * COLUMN, row * ROW]

    def text(self, comment: str) -> str:
        return f"# {comment}\n{to_yaml(self.document())}"


def base_of(name: str) -> dict[str, Any]:
    """Every field of a preset of rewards, pairs or distillation."""
    preset = PRESETS[name]
    for base in (REWARDS_BASE, PREFERENCE_BASE, DISTILLATION_BASE):
        if preset.keys() <= base.keys() and name in _names_of(base):
            return {**base, **preset}
    return dict(preset)


def _names_of(base: Mapping[str, Any]) -> tuple[str, ...]:
    from coloop.spec.algorithms.registry import names_with

    if base is REWARDS_BASE:
        return names_with("rewards")
    return names_with("preference" if base is PREFERENCE_BASE else "distillation")


def section_at(section: Any, word: str, written: Any) -> type[BaseModel] | None:
    """The section that a field holds, told by what is written where there is a choice of several;
    None if that does not tell it."""
    info = section.model_fields.get(word)
    if info is None:
        return None
    found = list(_sections_in(info.annotation))
    if len(found) > 1 and isinstance(written, Mapping):
        found = [arg for arg in found if _fits(arg, written)]
    return found[0] if len(found) == 1 else None


def _sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _sections_in(part)


def _fits(section: type[BaseModel], written: Mapping[str, Any]) -> bool:
    """Whether a section is of the written type or name."""
    for word in ("type", "name"):
        info = section.model_fields.get(word)
        if info is not None:
            return written.get(word) in getattr(info.annotation, "__args__", ())
    return False


def hardware_section(nodes: int, gpus: int, gpu: str) -> dict[str, Any]:
    for name in presets.list_hardware():
        preset = presets.hardware(name)
        if (preset.nodes, preset.gpus_per_node, preset.gpu) == (nodes, gpus, gpu):
            return {"preset": name}
    return {"nodes": nodes, "gpus_per_node": gpus, "gpu": gpu}
