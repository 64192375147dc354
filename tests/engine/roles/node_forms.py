"""Every kind of node with every way of being it: what the table of proofs has a row for.

A form is told from a node's section and from what comes in at its ports, as a loop's file has them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from coloop.spec.data import Source
from coloop.spec.environment import EnvironmentSource
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.reward import RewardSource

Section = Mapping[str, Any]
Form = tuple[str, str]
"""A kind and a way of being it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One node as it stands in a loop."""

    section: Section
    ports: Collection[str] = frozenset()
    """Ports of it at which something comes in."""

    def get(self, path: str) -> Any:
        """The value at `a.b`, or None."""
        value: Any = self.section
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value


Is = Callable[[Drawn], bool]


def _at(path: str, *values: Any) -> Is:
    return lambda node: node.get(path) in values


def _has(path: str) -> Is:
    return lambda node: node.get(path) is not None


def _method(name: str, also: Is = lambda node: True) -> Is:
    return lambda node: node.get("method") == name and also(node)


def _chats(node: Drawn) -> bool:
    return node.get("rollout.engine") == "chat"


def _ruled(node: Drawn) -> bool:
    return bool(node.get("keep"))


METHOD: Final = {
    "verifier": "method",
    "pairs": "method",
    "buffer": "sample",
    "tool": "type",
    "search": "method",
}
"""By kind, the field that says its method; every value of it has a form."""
SOURCES: Final = {"dataset": Source, "reward": RewardSource, "environment": EnvironmentSource}
"""By kind, the union of what its rows or numbers come from; each has a form."""

FORMS: Final[Mapping[str, Mapping[str, Is]]] = {
    "dataset": {name: _at("source.type", name) for name in ("task", "file", "hub", "inline")},
    "actor": {
        "torch": _at("rollout.engine", None, "torch"),
        "vllm": _at("rollout.engine", "vllm"),
        "remote": _at("rollout.engine", "remote"),
    },
    "critic": {
        "own model": lambda node: node.get("model.type") != "shared",
        "head beside words": _at("model.type", "shared"),
    },
    "reference": {"log-probs": lambda node: True},
    "reward": {
        "builtin": _at("source.type", "builtin"),
        "python": _at("source.type", "python"),
        "python, per gathered row": lambda node: (
            node.get("source.type") == "python" and node.get("per") == "row"
        ),
        "model": _at("source.type", "model"),
        "remote": _at("source.type", "remote"),
        "chat": _at("source.type", "chat"),
    },
    "verifier": {
        "rule": _method("rule", _at("read.granularity", None, "sequence")),
        "rule, by step": _method("rule", _at("read.granularity", "step")),
        "generative": _method(
            "generative", lambda node: _has("rollout")(node) and not _chats(node)
        ),
        "generative, by URL": _method("generative", lambda node: _chats(node)),
        "generative, label probabilities": _method("generative", _at("rollout", None)),
        "implicit_prm": _method("implicit_prm"),
        "discriminative, outcome": _method(
            "discriminative", _at("read.granularity", None, "sequence")
        ),
        "discriminative, process": _method("discriminative", _at("read.granularity", "step")),
        "vote, majority": _method("vote", lambda node: "scores" not in node.ports),
        "vote, weighted": _method("vote", lambda node: "scores" in node.ports),
        "formal": _method("formal"),
    },
    "template": {
        "text": _has("text"),
        "messages": _has("messages"),
        "parse": _has("parse"),
        "each": _has("each"),
        "code": _has("code"),
    },
    "filter": {
        "keep": _ruled,
        "per_group, best of n": _at("per_group.pick", "best"),
        "fill": _has("fill"),
        "resample": _has("resample"),
        "spare": lambda node: "spare" in node.ports,
    },
    "pairs": {
        name: (lambda node, name=name: (node.get("method") or "best_worst") == name)
        for name in ("best_worst", "all", "margin", "direct", "relabel")
    },
    "buffer": {
        name: (lambda node, name=name: (node.get("sample") or "newest") == name)
        for name in ("newest", "uniform", "oldest", "weighted")
    },
    "tool": {
        name: _at("type", name)
        for name in ("python", "calculator", "search", "environment", "model")
    },
    "search": {name: _method(name) for name in ("monte_carlo", "binary_search", "puct", "and_or")},
    "environment": {name: _at("source.type", name) for name in ("python", "entry", "textarena")},
    "evaluate": {
        "other rows": _has("instead_of"),
        "the step's tables": lambda node: not node.get("instead_of") and not node.get("of"),
        "teaching ports": _has("of"),
    },
    "rounds": {
        name: (lambda node, name=name: (node.get("branch") or "one") == name)
        for name in ("one", "all", "lines")
    },
}
"""By kind; `rounds` are edges, and stand here because they make what they connect anew."""


@dataclass(slots=True, kw_only=True)
class Found:
    """Which nodes of a loop have a form, and whether one of them learns."""

    nodes: list[str] = field(default_factory=list)
    learns: bool = False


def all_forms() -> list[Form]:
    return [(kind, name) for kind, forms in FORMS.items() for name in forms]


def methods_of(kind: str) -> frozenset[str]:
    """Methods that the language gives a kind of node."""
    if kind not in SOURCES:
        return frozenset(get_args(NODE_CLASSES[kind].model_fields[METHOD[kind]].annotation))
    types = (one.model_fields["type"].annotation for one in _sections(SOURCES[kind]))
    return frozenset(name for annotation in types for name in get_args(annotation))


def _sections(union: Any) -> Iterator[type[Any]]:
    """Sections of a union, also of unions in it."""
    for one in get_args(union):
        if isinstance(one, type):
            yield one
        else:
            yield from _sections(one)


def forms_in(loop: Mapping[str, Any]) -> dict[Form, Found]:
    """Forms of the nodes of a loop, as its file has it."""
    found: dict[Form, Found] = {}
    for name, node in _drawn(loop):
        for form, holds in FORMS[node.section["kind"]].items():
            if holds(node):
                one = found.setdefault((node.section["kind"], form), Found())
                one.nodes.append(name)
                one.learns |= node.get("algorithm") is not None
    return found


def forms_of(loop: Mapping[str, Any], node: str) -> list[Form]:
    """Forms of one node of a loop."""
    return [form for form, found in forms_in(loop).items() if node in found.nodes]


def _drawn(loop: Mapping[str, Any]) -> Iterator[tuple[str, Drawn]]:
    edges = [_edge(edge) for edge in loop["edges"]]
    for name, section in loop["nodes"].items():
        ports = {
            target.partition(".")[2] for _, target, _ in edges if target.partition(".")[0] == name
        }
        yield name, Drawn(section=section, ports=ports)
    for source, target, options in edges:
        if options.get("rounds"):
            yield f"{source} -> {target}", Drawn(section={"kind": "rounds", **options})


def _edge(edge: Any) -> tuple[str, str, Mapping[str, Any]]:
    if isinstance(edge, str):
        source, _, target = edge.partition(" -> ")
        return source, target, {}
    return edge["from"], edge["to"], edge
