"""The whole loop: `LoopSpec`, its edges, and look-ups over them.

`Graph` answers who is connected to whom. It knows the port table but checks nothing: unknown
nodes and ports in edges are findings of the validator, so that a half-drawn loop can be held.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema, model_validator

from coloop.spec.algorithm import has_entry, kl_references
from coloop.spec.base import (
    PORT_PATTERN,
    Name,
    NodeId,
    Number,
    PlainValue,
    Section,
    Whole,
    problem,
    setting,
)
from coloop.spec.nodes import Node
from coloop.spec.nodes.kind import ModeName
from coloop.spec.placement import Hardware, Run
from coloop.spec.ports import HANDLES, PORTS, InPort, OutPort
from coloop.spec.schedule import Phase, PhaseGroup, Schedule

_PORT = re.compile(r"^\s*([a-z][a-z0-9_]*)\.([a-z][a-z0-9_]*)\s*$")


@dataclass(frozen=True, slots=True, order=True)
class PortRef:
    """One port of one node, written `node.port`."""

    node: str
    port: str

    def __str__(self) -> str:
        return f"{self.node}.{self.port}"

    @classmethod
    def read(cls, text: Any) -> "PortRef":
        if isinstance(text, PortRef):
            return text
        match = _PORT.match(text) if isinstance(text, str) else None
        if match is None:
            raise problem("bad_edge", "`node.port` is expected", found=text)
        return cls(match[1], match[2])


PortField = Annotated[
    PortRef,
    BeforeValidator(PortRef.read),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": PORT_PATTERN}),
]


class Edge(Section):
    """What flows from one port to another."""

    source: PortField = setting(alias="from", widget="port")
    """The output, `node.port`."""
    target: PortField = setting(alias="to", widget="port")
    """The input, `node.port`."""
    id: NodeId | None = setting(None, short="{}")
    """A name by which paths refer to the edge: `edges.outcome.weight`."""
    weight: Number = setting(1.0, ge=-1.0e6, le=1.0e6, hot=True, short="× {}")
    """Weight of the edge at a teaching port; 0: it has no effect."""
    aggregate: Literal["mean", "min", "max", "sum", "last"] | None = setting(None, short="{}")
    """How scores of descendants are combined into one for their ancestor."""
    rounds: Whole | None = setting(None, ge=1, le=1000, level="advanced", short="{} rounds")
    """This edge closes a cycle that runs this many times."""
    take: Literal["last", "ends", "all"] | None = setting(None, level="advanced", short="{}")
    """What an edge out of a cycle of rounds takes: the last row of each conversation, the last rows
    of all branches, or all rows. Null: depends on the port."""
    branch: Literal["one", "all", "lines"] | None = setting(None, level="advanced", short="{}")
    """How rounds continue: one conversation per row, a tree, or n independent branches. Null:
    `one`."""

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        sides = value.split("->")
        if len(sides) != 2:
            raise problem("bad_edge", "`node.port -> node.port` is expected", found=value)
        return {"from": sides[0].strip(), "to": sides[1].strip()}

    @model_validator(mode="after")
    def _rounds_have_branches(self) -> Self:
        if self.branch is not None and self.rounds is None:
            raise problem("conflict", "belongs only to an edge with `rounds`", field="branch")
        return self

    @property
    def label(self) -> str:
        """`a.x -> b.y`."""
        return f"{self.source} -> {self.target}"

    @property
    def key(self) -> str:
        """The id, or `a.x->b.y`."""
        return self.id or f"{self.source}->{self.target}"


class LoopSpec(Section):
    """A training loop as a graph."""

    coloop: Literal[1] = setting()
    """Version of the language."""
    name: Name = setting()
    """What the loop is called."""
    description: str | None = setting(None, widget="text")
    """A sentence for people."""
    mode: ModeName | None = setting(None)
    """Sets defaults, forbids nothing that the ports allow; null: by what learns from what."""
    nodes: dict[NodeId, Node] = setting()
    """The boxes of the graph."""
    edges: tuple[Edge, ...] = setting(())
    """What flows between them."""
    schedule: Schedule = setting()
    """What is trained when."""
    hardware: Hardware = setting(default_factory=Hardware)
    """On what it runs."""
    run: Run = setting(default_factory=Run)
    """What a run starts from and keeps."""
    layout: dict[str, PlainValue] = setting(
        default_factory=dict, level="expert", key_reference="node"
    )
    """Where the editor draws things; no part of the loop's hash."""

    @cached_property
    def graph(self) -> "Graph":
        return Graph(self)

    def kind_of(self, node: str) -> str | None:
        section = self.nodes.get(node)
        return None if section is None else section.kind


class Graph:
    """Look-ups over the edges of one spec."""

    def __init__(self, spec: LoopSpec) -> None:
        self.spec = spec
        self._into: dict[str, list[Edge]] = {}
        self._out: dict[str, list[Edge]] = {}
        self._walks: dict[tuple[str, frozenset[str]], frozenset[str]] = {}
        self._teaching_ports: dict[str, tuple[str, ...]] = {}
        for edge in spec.edges:
            self._into.setdefault(edge.target.node, []).append(edge)
            self._out.setdefault(edge.source.node, []).append(edge)

    def edges_into(self, node: str, port: str | None = None) -> tuple[Edge, ...]:
        """Edges that end at a node (at one port), in the order they are written."""
        return tuple(e for e in self._into.get(node, ()) if port is None or e.target.port == port)

    def edges_out_of(self, node: str, port: str | None = None) -> tuple[Edge, ...]:
        """Edges that start at a node (at one port), in the order they are written."""
        return tuple(e for e in self._out.get(node, ()) if port is None or e.source.port == port)

    def in_port(self, target: PortRef) -> InPort | None:
        kind = self.spec.kind_of(target.node)
        return PORTS[kind].inputs.get(target.port) if kind else None

    def out_port(self, source: PortRef) -> OutPort | None:
        kind = self.spec.kind_of(source.node)
        return PORTS[kind].outputs.get(source.port) if kind else None

    def teaches(self, edge: Edge) -> bool:
        """Whether the target learns from what the edge brings. A node that `kl.reference` names is
        no teacher."""
        target = edge.target
        if not self.is_taught_at(target.node, target.port):
            return False
        return target.port != "reference" or edge.source.node not in kl_references(
            self.spec.nodes[target.node]
        )

    def teaching_edges_into(self, node: str, port: str) -> tuple[Edge, ...]:
        return tuple(edge for edge in self.edges_into(node, port) if self.teaches(edge))

    def is_taught_at(self, node: str, port: str) -> bool:
        """Whether a port of a node is one at which it learns, connected or not."""
        kind = self.spec.kind_of(node)
        section = PORTS[kind].inputs.get(port) if kind else None
        if section is None or not section.teaching:
            return False
        return not section.is_optional or has_entry(self.spec.nodes[node], port)

    def is_handle(self, edge: Edge) -> bool:
        """Whether one node calls the other through this edge."""
        port = self.out_port(edge.source)
        return port is not None and port.type in HANDLES

    def teaching_edges(self) -> tuple[Edge, ...]:
        return tuple(edge for edge in self.spec.edges if self.teaches(edge))

    def teaching_ports(self, node: str) -> tuple[str, ...]:
        """Connected teaching ports of a node, in the order of the port table."""
        if node not in self._teaching_ports:
            kind = self.spec.kind_of(node)
            used = {edge.target.port for edge in self.edges_into(node) if self.teaches(edge)}
            ports = PORTS[kind].teaching if kind else ()
            self._teaching_ports[node] = tuple(port for port in ports if port in used)
        return self._teaching_ports[node]

    def learners(self) -> tuple[str, ...]:
        """Nodes with a connected teaching port, in the order they are written."""
        return tuple(node for node in self.spec.nodes if self.teaching_ports(node))

    def edge(self, key: str) -> Edge | None:
        """The edge of an id, of `a.x->b.y`, or of `a.x -> b.y`."""
        return self._named.get(key)

    def is_dead(self, edge: Edge, overrides: Mapping[str, Any] | None = None) -> bool:
        """Whether the edge has weight 0 in the spec or in these overrides, and nothing moves it."""
        weight = edge.weight
        paths = self.weight_paths(edge)
        for path, value in (overrides or {}).items():
            if _one_spelling(path) in paths:
                weight = value
        return weight == 0 and not self.is_moved(edge)

    def is_dead_throughout(self, edge: Edge) -> bool:
        """Whether the edge is dead in every phase."""
        return all(self.is_dead(edge, overrides) for overrides in self._phases)

    def dead_edges(self, overrides: Mapping[str, Any] | None = None) -> frozenset[str]:
        """Keys of the edges that are dead in the spec, or under these overrides."""
        return frozenset(edge.key for edge in self.spec.edges if self.is_dead(edge, overrides))

    @cached_property
    def _phases(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(_overrides_of(self.spec.schedule.phases, {})) or ({},)

    def weight_paths(self, edge: Edge) -> frozenset[str]:
        """The paths that name this edge's weight: by place, by id and by its ends."""
        index = self._places.get(id(edge))
        if index is None:
            index = next((i for i, other in enumerate(self.spec.edges) if other == edge), None)
        if index is None:
            return frozenset()
        names = [str(index), f"{edge.source}->{edge.target}", *([edge.id] if edge.id else [])]
        return frozenset(f"edges.{name}.weight" for name in names)

    def is_moved(self, edge: Edge) -> bool:
        """Whether an anneal or a trigger names the weight of this edge."""
        paths = self.weight_paths(edge)
        return any(_one_spelling(path) in paths for path in self.moved_paths)

    def place_of(self, edge: Edge) -> int:
        """Index of an edge in the spec."""
        return self._places[id(edge)]

    @cached_property
    def _named(self) -> dict[str, Edge]:
        """Edges by each of their names; the first wins."""
        edges: dict[str, Edge] = {}
        for edge in self.spec.edges:
            for name in (edge.id, edge.key, edge.label):
                if name is not None:
                    edges.setdefault(name, edge)
        return edges

    @cached_property
    def _places(self) -> dict[int, int]:
        """Indices by object identity; the spec keeps its edges alive."""
        return {id(edge): index for index, edge in enumerate(self.spec.edges)}

    @cached_property
    def moved_paths(self) -> frozenset[str]:
        schedule = self.spec.schedule
        paths: list[str] = []
        for item in schedule.anneal:
            paths += [path for path in (item.path, item.complement) if path]
        for trigger in schedule.triggers:
            paths += trigger.do.set
        return frozenset(paths)

    def upstream(self, nodes: Iterable[str]) -> frozenset[str]:
        """These nodes and all from which an edge leads to them."""
        return self._reached("up", frozenset(nodes))

    def downstream(self, nodes: Iterable[str]) -> frozenset[str]:
        """These nodes and all to which an edge leads from them."""
        return self._reached("down", frozenset(nodes))

    def _reached(self, way: Literal["up", "down"], start: frozenset[str]) -> frozenset[str]:
        """Cached, because walks from the same nodes are requested repeatedly."""
        known = self._walks.get((way, start))
        if known is None:
            known = self._walks[way, start] = frozenset(reached(start, self._neighbours[way]))
        return known

    @cached_property
    def _neighbours(self) -> dict[str, dict[str, set[str]]]:
        """Nodes one edge away, against its direction (`up`) and along it (`down`)."""
        return {
            "up": {node: {e.source.node for e in edges} for node, edges in self._into.items()},
            "down": {node: {e.target.node for e in edges} for node, edges in self._out.items()},
        }


def reach(starts: Iterable[str], onward: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """These nodes and all that are reached from them, in the order of discovery."""
    reached = dict.fromkeys(starts)
    waiting = list(reached)
    while waiting:
        for node in onward(waiting.pop()):
            if node not in reached:
                reached[node] = None
                waiting.append(node)
    return reached


def reached(starts: Iterable[str], links: Mapping[str, Iterable[str]]) -> set[str]:
    """The starts and all to which links lead."""
    return set(reach(starts, lambda name: links.get(name, ())))


def _one_spelling(path: str) -> str:
    """A path with the ends of an edge written without spaces around the arrow."""
    return re.sub(r"\s*->\s*", "->", path)


def _overrides_of(
    items: Iterable[Phase | PhaseGroup], outer: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    for item in items:
        values = {**outer, **item.set}
        if isinstance(item, PhaseGroup):
            yield from _overrides_of(item.phases, values)
        else:
            yield values
