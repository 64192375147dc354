"""Which stages run: those that a step's goals need, directly or indirectly.

If a node concatenates its inputs, only inputs whose rows can reach a goal run. Works on drafts:
edges with unknown ends deliver nothing, cycles end at their start, and long chains need no deep
recursion.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from coloop.spec.algorithm import off_policy_of, reference_edges
from coloop.spec.graph import Edge, LoopSpec, reach
from coloop.spec.groups import is_generation_read
from coloop.spec.lean import record
from coloop.spec.lineage import Level, Levels, Lineage, Relation
from coloop.spec.nodes import NODE_CLASSES

# The ports that each stage reads and fills, from the node kinds (`spec/nodes`).
#
# The stages of a phase are the closure of this table from the phase's goals, and their order is a
# topological sort of it. Handles (`policy`, `check`, `tool`) are not in it: they let one node call
# another and deliver no rows, so a called node gets no stage.

READS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    kind: {verb: stage.reads for verb, stage in node.about.stages.items()}
    for kind, node in NODE_CLASSES.items()
}
"""By kind and verb, the ports that the stage reads."""

GIVES: Final[Mapping[str, Mapping[str, str]]] = {
    kind: {port: verb for verb, stage in node.about.stages.items() for port in stage.gives}
    for kind, node in NODE_CLASSES.items()
}
"""By kind and output port, the verb of the stage that fills it. Outputs of tools are filled by the
stages that call them (`Givers`)."""

WRITES: Final[Mapping[str, str]] = {
    kind: verb
    for kind, node in NODE_CLASSES.items()
    for verb, stage in node.about.stages.items()
    if stage.calls
}
"""By kind, the verb of the stage that calls its handles."""

CREDITED: Final = frozenset({"rewards"})
"""Teaching ports whose scores are turned into advantages by a credit stage."""

SERVING: Final = frozenset({"reference", "values", "prior"})
"""Ports of learners that are used where an algorithm of another port needs them."""

USES_WEIGHTS: Final = frozenset({"generate", "score"})
"""Verbs that use a group's weights without changing them."""

CONCAT_PORTS: Final = frozenset(
    (kind, port) for kind, node in NODE_CLASSES.items() for port in node.about.concat
)
"""Ports whose tables are concatenated, whatever the node's `join`."""


# The stages that fill the source of an edge, and the nodes that a stage calls.
#
#     problems.load ── solver.generate ── judge.score        an edge of rows: one giver
#                        │ tool: condense ── reader.policy   handles: `reader` writes inside of
#                        └── reader.rollouts                 `solver.generate`, which gives its rows
#
# Over the edges of one lineage, without dead edges and edges with unknown ends.

StageKey = tuple[str, str]
"""(node, verb); for learn stages the node is the weights group's."""


class Givers:
    """Givers and callees of one lineage, each looked up once."""

    def __init__(self, lineage: Lineage) -> None:
        self._walk = lineage.walk
        self._graph = lineage.spec.graph
        self.of_port = cache(self._of_port)
        """Stages that fill an output (node, port)."""
        self.calls = cache(self._calls)
        """Nodes that a node calls by handles, directly or indirectly."""

    def of(self, edge: Edge) -> tuple[StageKey, ...]:
        """Stages that fill the source of an edge; none for a handle."""
        return self.of_port(edge.source.node, edge.source.port)

    def nodes_of(self, edge: Edge) -> tuple[str, ...]:
        return tuple(node for node, _ in self.of(edge))

    def _calls(self, node: str) -> tuple[str, ...]:
        def callees(name: str) -> list[str]:
            edges = self._walk.into(name)
            return [edge.source.node for edge in edges if self._graph.is_handle(edge)]

        return tuple(name for name in reach([node], callees) if name != node)

    def _of_port(self, node: str, port: str) -> tuple[StageKey, ...]:
        kind = self._walk.kinds.get(node, "")
        verb = GIVES.get(kind, {}).get(port)
        is_callee = port == "rollouts" and kind in ("actor", "tool")
        inside = self._walk.callers_of(node) if is_callee else ()
        own = verb is not None and (not inside or self._walk.into(node, *READS[kind][verb]))
        stages = [(node, verb)] if verb is not None and own else []
        return (*stages, *((caller, WRITES[self._walk.kinds[caller]]) for caller in inside))


Serves = Callable[[str, str], frozenset[str]]
"""Maps a teaching port (node, port) to the serving ports that its algorithm reads."""


@record
class Goals:
    """What a phase must produce."""

    teaching: frozenset[tuple[str, str]] = frozenset()
    """Live teaching ports (node, port)."""
    fills: frozenset[str] = frozenset()
    wanted: frozenset[tuple[str, str]] = frozenset()
    """Outputs (node, port) that are read outside the step, e.g. by a probe."""


@dataclass(slots=True)
class Found:
    edges: dict[str, Edge] = field(default_factory=dict)
    """Edges that deliver to the stage, by key."""
    demand: set[Level] | None = field(default_factory=set)
    """Levels whose rows are needed; None for all."""
    members: set[str] = field(default_factory=set)
    """Learn stages: the roles that share the update."""


@dataclass
class Closure:
    """The stages of one step over the edges of one lineage."""

    spec: LoopSpec
    lineage: Lineage
    givers: Givers
    serves: Serves
    groups: Mapping[str, str]
    """The weights group of each node; a node without weights is its own."""
    halt: str | None = None
    """A node at which the walk stops, because other rows replace its inputs."""
    below: frozenset[str] = frozenset()
    """Nodes of a slice; where their rows are concatenated with others, the others are left out."""
    found: dict[StageKey, Found] = field(default_factory=dict, init=False)
    _waiting: list[StageKey] = field(default_factory=list, init=False)

    def of(self, goals: Goals) -> dict[StageKey, Found]:
        for node, port in sorted(goals.teaching):
            if node in self.spec.nodes:
                self._teach(node, port)
        for buffer in sorted(goals.fills):
            if self.spec.kind_of(buffer) == "buffer":
                self._need((buffer, "write"), None)
        for node, port in sorted(goals.wanted):
            for key in self.givers.of_port(node, port):
                self._need(key, self.lineage.levels(node, port) or None)
        while self._waiting:
            self._read(*self._waiting.pop())
        return self.found

    def live_edges(self, node: str, port: str) -> list[Edge]:
        return [edge for edge in self._edges(node, port) if not edge.rounds]

    def serving_edges(self, node: str, port: str, serving: str) -> list[Edge]:
        """Edges at a serving port that the algorithms of a teaching port read."""
        edges = self.live_edges(node, serving)
        if serving != "reference":
            return edges
        read = reference_edges(self.spec, node, port)
        return [edge for edge in edges if edge in read]

    def is_concat(self, node: str, port: str) -> bool:
        section = self.spec.nodes[node]
        is_always = (section.kind, port) in CONCAT_PORTS
        return is_always or getattr(section, "join", None) == "concat"

    def _edges(self, node: str, port: str) -> list[Edge]:
        return [e for e in self.lineage.walk.into(node, port) if not self.spec.graph.is_handle(e)]

    # ---- goals

    def _teach(self, node: str, port: str) -> None:
        group = self.groups[node]
        learn = self.found.setdefault((group, "learn"), Found(demand=None))
        learn.members.add(node)
        if port in CREDITED:
            self._need((node, "credit"), None)
        else:
            edges = [e for e in self.live_edges(node, port) if self.spec.graph.teaches(e)]
            self._bring(learn, edges, lambda edge: None)
            levels = (self.lineage.edge_levels(edge) for edge in edges)
            self._serve(learn, node, port, frozenset().union(*levels))
        if any(
            self.groups.get(name) == group
            and self.lineage.writes(name)
            and is_generation_read(self.spec, name)
            for name in self.spec.nodes
        ):
            self._record((group, "sync"), None)

    def _credit(self, node: str) -> None:
        """Credit the node's own rows and those from a buffer."""
        credit = self.found[node, "credit"]
        demand = set(self.lineage.levels(node, "rollouts"))
        for edge in self.live_edges(node, "rewards"):
            wanted = self._scored_for(node, edge)
            self._bring(credit, [edge], lambda _, wanted=wanted: wanted)  # type: ignore[misc]
            # Rows from a buffer are learned besides those of the step.
            demand |= {level for level in wanted or () if self._is_kept(level)}
        self._serve(credit, node, "rewards", frozenset(demand), self._of_others(node))

    def _serve(
        self, entry: Found, node: str, port: str, demand: Levels, others: Levels = frozenset()
    ) -> None:
        """Bring what the algorithm of a teaching port reads besides the taught rows. Rows of other
        writers get no reference scores, but they need values."""
        for serving in sorted(self.serves(node, port) & SERVING):
            wanted = demand | others if serving == "values" else demand
            edges = self.serving_edges(node, port, serving)
            self._bring(entry, edges, lambda edge, of=wanted: of or None)  # type: ignore[misc]

    def _of_others(self, node: str) -> Levels:
        """Levels of rows that other nodes wrote and this node learns from."""
        if off_policy_of(self.spec, node) is None:
            return frozenset()
        edges = [edge for edge in self.live_edges(node, "rewards") if not edge.aggregate]
        return frozenset().union(*(self.lineage.edge_levels(edge) for edge in edges))

    def _scored_for(self, node: str, edge: Edge) -> set[Level] | None:
        """Levels whose scores this edge can bring to the learner's rows, or to its rows in a
        buffer; None for all."""
        own = self.lineage.levels(node, "rollouts")
        related = {Relation.SAME, Relation.DOWN, Relation.UP}
        if self.lineage.attachment(edge).relation is Relation.SIDE:
            related.add(Relation.SIDE)
        wanted = {
            level
            for level in self.lineage.edge_levels(edge)
            if self._is_kept(level) or self.lineage.relate(own, frozenset({level})) in related
        }
        return wanted or None

    def _is_kept(self, level: Level) -> bool:
        return self.spec.kind_of(level.node) == "buffer" or any(map(self._is_kept, level.parents))

    # ---- stages

    def _bring(
        self,
        entry: Found,
        edges: Iterable[Edge],
        demand: Callable[[Edge], Iterable[Level] | None],
    ) -> None:
        for edge in edges:
            entry.edges[edge.key] = edge
            for key in self.givers.of(edge):
                self._need(key, demand(edge))

    def _record(self, key: StageKey, demand: Iterable[Level] | None) -> Found:
        entry = self.found.setdefault(key, Found())
        if demand is None:
            entry.demand = None
        elif entry.demand is not None:
            entry.demand |= set(demand)
        return entry

    def _need(self, key: StageKey, demand: Iterable[Level] | None) -> None:
        before = self.found.get(key)
        known = None if before is None else (before.demand and frozenset(before.demand))
        entry = self._record(key, demand)
        now = entry.demand and frozenset(entry.demand)
        if (before is None or known != now) and key[0] != self.halt:
            self._waiting.append(key)

    def _read(self, node: str, verb: str) -> None:
        """Add what a stage reads, for the rows that are needed of it so far."""
        if verb == "credit":
            self._credit(node)
            return
        entry = self.found[node, verb]
        # A buffer's rows have no parents: all rows that seed it are needed.
        wanted = None if verb == "read" else entry.demand
        ports = READS[self.spec.nodes[node].kind].get(verb, ())
        stays_away = self._stays_away(node, ports)
        known, entry.edges = entry.edges, {}
        for port in ports:
            concat = self.is_concat(node, port)
            for edge in self._edges(node, port):
                if edge.key in stays_away or (concat and not self._reaches(edge, wanted)):
                    continue
                if edge.rounds:  # what goes round is needed, from the second round on
                    for key in self.givers.of(edge):
                        self._need(key, None)
                else:
                    self._bring(entry, [edge], lambda source: self._wanted_of(source, wanted))
        entry.edges |= {key: edge for key, edge in known.items() if key not in entry.edges}

    def _stays_away(self, node: str, ports: Iterable[str]) -> frozenset[str]:
        """Edges whose rows are not from the slice and would be concatenated with its rows."""
        if node not in self.below:
            return frozenset()
        concat = [port for port in ports if self.is_concat(node, port)]
        edges = [edge for port in concat for edge in self.live_edges(node, port)]
        others = [edge for edge in edges if edge.source.node not in self.below]
        if len(others) == len(edges):
            others = []
        spare = self.live_edges(node, "spare")
        others += [edge for edge in spare if edge.source.node not in self.below]
        return frozenset(edge.key for edge in others)

    def _wanted_of(self, edge: Edge, demand: set[Level] | None) -> Iterable[Level] | None:
        """The demand in terms of the giver of an edge: rows of another branch are needed as they
        are."""
        if self._reaches(edge, demand):
            return demand
        return self.lineage.edge_levels(edge) or None

    def _reaches(self, edge: Edge, demand: set[Level] | None) -> bool:
        if demand is None:
            return True
        related = (Relation.SAME, Relation.DOWN, Relation.UP)
        return any(
            self.lineage.relate(frozenset({level}), frozenset({wanted})) in related
            for level in self.lineage.edge_levels(edge)
            for wanted in demand
        )
