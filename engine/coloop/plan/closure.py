"""What runs: the closure of the needs table from a step's goals.

A stage runs if a goal needs what it gives; of a node that takes its inputs one after another only
those inputs run whose rows can reach a goal. Walks over whatever is drawn: an edge of unknown ends
brings nothing, a circle ends where it began, and a long chain is no deep call.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from coloop.plan.needs import CONCAT_PORTS, CREDITED, READS, SERVING, Givers, StageKey
from coloop.spec.algorithm import off_policy_of
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lineage import Level, Levels, Lineage, Relation

Serves = Callable[[str, str], frozenset[str]]
"""For a teaching port (node, port) the serving ports that its algorithm reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """Why anything runs in a phase."""

    teaching: frozenset[tuple[str, str]] = frozenset()
    """Live (node, port)."""
    fills: frozenset[str] = frozenset()
    """Buffers being written."""
    wanted: frozenset[tuple[str, str]] = frozenset()
    """Ports (node, output) that something outside the step reads, e.g. a probe."""


@dataclass(slots=True)
class Found:
    edges: dict[str, Edge] = field(default_factory=dict)
    """What delivers to it, by the edges' keys."""
    demand: set[Level] | None = field(default_factory=set)
    """Levels whose rows are wanted; None for all."""
    members: set[str] = field(default_factory=set)
    """Learn stages: the roles that share the update."""


class Closure:
    """The stages of one step over the edges of one lineage."""

    def __init__(
        self,
        spec: LoopSpec,
        lineage: Lineage,
        *,
        givers: Givers,
        serves: Serves,
        groups: Mapping[str, str],
        halt: str | None = None,
        below: frozenset[str] = frozenset(),
    ) -> None:
        """
        Args:
            groups: the weights group of each node; a node without weights is its own.
            halt: a node at whose stages the walk ends: others stand in for what feeds it.
            below: nodes of a slice; where their rows are put together with others, these stay away.
        """
        self._spec = spec
        self._graph = spec.graph
        self._lineage = lineage
        self._givers = givers
        self._serves = serves
        self._groups = groups
        self._halt = halt
        self._below = below
        self._waiting: list[StageKey] = []
        self.found: dict[StageKey, Found] = {}

    def of(self, goals: Goals) -> dict[StageKey, Found]:
        """Everything that the goals need."""
        for node, port in sorted(goals.teaching):
            if node in self._spec.nodes:
                self._teach(node, port)
        for buffer in sorted(goals.fills):
            if self._spec.kind_of(buffer) == "buffer":
                self._need((buffer, "write"), None)
        for node, port in sorted(goals.wanted):
            for key in self._givers.of_port(node, port):
                self._need(key, self._lineage.levels(node, port) or None)
        while self._waiting:
            self._read(*self._waiting.pop())
        return self.found

    def live_edges(self, node: str, port: str) -> list[Edge]:
        return [edge for edge in self._edges(node, port) if not edge.rounds]

    def is_concat(self, node: str, port: str) -> bool:
        section = self._spec.nodes[node]
        is_always = (section.kind, port) in CONCAT_PORTS
        return is_always or getattr(section, "join", None) == "concat"

    def _edges(self, node: str, port: str) -> list[Edge]:
        return [e for e in self._lineage.walk.into(node, port) if not self._graph.is_handle(e)]

    # ---- goals

    def _teach(self, node: str, port: str) -> None:
        group = self._groups[node]
        learn = self.found.setdefault((group, "learn"), Found(demand=None))
        learn.members.add(node)
        if port in CREDITED:
            self._need((node, "credit"), None)
        else:
            edges = self.live_edges(node, port)
            self._bring(learn, edges, lambda edge: None)
            levels = (self._lineage.edge_levels(edge) for edge in edges)
            self._serve(learn, node, port, frozenset().union(*levels))
        if self._writes(group):
            self._record((group, "sync"), None)

    def _credit(self, node: str) -> None:
        """Scores become advantages: those of the node's own rows, and of what a buffer kept."""
        credit = self.found[node, "credit"]
        demand = set(self._lineage.levels(node, "rollouts"))
        for edge in self.live_edges(node, "rewards"):
            wanted = self._scored_for(node, edge)
            self._bring(credit, [edge], lambda _, wanted=wanted: wanted)  # type: ignore[misc]
            # Rows that a buffer kept learn beside those of the step.
            demand |= {level for level in wanted or () if self._is_kept(level)}
        self._serve(credit, node, "rewards", frozenset(demand), self._of_others(node))

    def _serve(
        self, entry: Found, node: str, port: str, demand: Levels, others: Levels = frozenset()
    ) -> None:
        """What the algorithm of a teaching port reads beside what teaches; rows that others wrote
        are held to no reference, but need values."""
        for serving in sorted(self._serves(node, port) & SERVING):
            wanted = demand | others if serving == "values" else demand
            self._bring(entry, self.live_edges(node, serving), lambda edge, of=wanted: of or None)  # type: ignore[misc]

    def _of_others(self, node: str) -> Levels:
        """Levels of rows that others wrote and that the node learns from as well."""
        if off_policy_of(self._spec, node) is None:
            return frozenset()
        edges = [edge for edge in self.live_edges(node, "rewards") if not edge.aggregate]
        return frozenset().union(*(self._lineage.edge_levels(edge) for edge in edges))

    def _scored_for(self, node: str, edge: Edge) -> set[Level] | None:
        """Levels whose scores this edge can bring to the learner's rows, or to rows that a buffer
        keeps of it; None for all."""
        own = self._lineage.levels(node, "rollouts")
        related = {Relation.SAME, Relation.DOWN, Relation.UP}
        if self._lineage.attachment(edge).relation is Relation.SIDE:
            related.add(Relation.SIDE)
        wanted = {
            level
            for level in self._lineage.edge_levels(edge)
            if self._is_kept(level) or self._lineage.relate(own, frozenset({level})) in related
        }
        return wanted or None

    def _is_kept(self, level: Level) -> bool:
        """Whether rows of this level come out of a buffer."""
        return self._spec.kind_of(level.node) == "buffer" or any(map(self._is_kept, level.parents))

    def _writes(self, group: str) -> bool:
        """Whether a member of the group has an engine that wants new weights."""
        return any(
            self._groups.get(node) == group and self._lineage.writes(node)
            for node in self._spec.nodes
        )

    # ---- stages

    def _kind(self, node: str) -> str:
        return self._spec.nodes[node].kind

    def _bring(
        self,
        entry: Found,
        edges: Iterable[Edge],
        demand: Callable[[Edge], Iterable[Level] | None],
    ) -> None:
        for edge in edges:
            entry.edges[edge.key] = edge
            for key in self._givers.of(edge):
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
        if (before is None or known != now) and key[0] != self._halt:
            self._waiting.append(key)

    def _read(self, node: str, verb: str) -> None:
        """Needs what a stage reads, for the rows that are wanted of it by now."""
        if verb == "credit":
            self._credit(node)
            return
        entry = self.found[node, verb]
        # A buffer's rows have no parents: all that seeds it is wanted.
        wanted = None if verb == "read" else entry.demand
        ports = READS[self._kind(node)].get(verb, ())
        stays_away = self._stays_away(node, ports)
        known, entry.edges = entry.edges, {}
        for port in ports:
            concat = self.is_concat(node, port)
            for edge in self._edges(node, port):
                if edge.key in stays_away or (concat and not self._reaches(edge, wanted)):
                    continue
                if edge.rounds:  # what goes round is needed, from the second round on
                    for key in self._givers.of(edge):
                        self._need(key, None)
                else:
                    self._bring(entry, [edge], lambda one: self._wanted_of(one, wanted))
        entry.edges |= {key: edge for key, edge in known.items() if key not in entry.edges}

    def _stays_away(self, node: str, ports: Iterable[str]) -> frozenset[str]:
        """Edges that bring other rows than those of the slice to where both are put together."""
        if node not in self._below:
            return frozenset()
        concat = [port for port in ports if self.is_concat(node, port)]
        edges = [edge for port in concat for edge in self.live_edges(node, port)]
        others = [edge for edge in edges if edge.source.node not in self._below]
        if len(others) == len(edges):
            others = []
        spare = self.live_edges(node, "spare")
        others += [edge for edge in spare if edge.source.node not in self._below]
        return frozenset(edge.key for edge in others)

    def _wanted_of(self, edge: Edge, demand: set[Level] | None) -> Iterable[Level] | None:
        """The demand as the giver of an edge sees it: where its rows stand on another branch, what
        is wanted are these rows."""
        if self._reaches(edge, demand):
            return demand
        return self._lineage.edge_levels(edge) or None

    def _reaches(self, edge: Edge, demand: set[Level] | None) -> bool:
        if demand is None:
            return True
        related = (Relation.SAME, Relation.DOWN, Relation.UP)
        return any(
            self._lineage.relate(frozenset({level}), frozenset({wanted})) in related
            for level in self._lineage.edge_levels(edge)
            for wanted in demand
        )
