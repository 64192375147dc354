"""The graph as lineage walks it: edges by port, the order of nodes, regions of rounds.

Handles, teaching ports and what is written into buffers carry no rows forward. Nothing here
recurses: a drawn graph may be a long chain, half drawn, or a cycle (its nodes then come last).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, Literal

from coloop.spec.graph import Edge, LoopSpec, reached
from coloop.spec.lean import record
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.ports import HANDLES, PORTS

Links = Mapping[str, list[str]]


@record
class RoundsRegion:
    """Nodes that run several times within one step."""

    nodes: frozenset[str]
    """Every node on a path from the targets of the edges to their sources."""
    edges: tuple[Edge, ...]
    """The edges with `rounds` that close the region."""

    @property
    def name(self) -> str:
        """Named after the first edge that closes it."""
        return f"rounds of {self.edges[0].key}"

    @property
    def rounds(self) -> int:
        return max(edge.rounds or 1 for edge in self.edges)


class Walk:
    """The edges that make sense, indexed; edges of unknown nodes or ports are left out."""

    def __init__(self, spec: LoopSpec, dead: frozenset[str] = frozenset()) -> None:
        """`dead`: keys of edges that bring nothing."""
        self.spec = spec
        self.kinds: dict[str, str] = {name: node.kind for name, node in spec.nodes.items()}
        self.edges: tuple[Edge, ...] = tuple(
            e for e in spec.edges if self._makes_sense(e) and e.key not in dead
        )
        self._into: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
        self._into_node: defaultdict[str, list[Edge]] = defaultdict(list)
        self._out_of: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in self.edges:
            self._into[edge.target.node, edge.target.port].append(edge)
            self._into_node[edge.target.node].append(edge)
            self._out_of[edge.source.node].append(edge)

    def into(self, node: str, *ports: str) -> list[Edge]:
        """Edges into these ports, port by port in the order given; without ports all edges."""
        if not ports:
            return self._into_node.get(node, [])
        return [edge for port in ports for edge in self._into.get((node, port), ())]

    def out_of(self, node: str, port: str | None = None) -> list[Edge]:
        """Edges out of the node, or out of one of its ports."""
        edges = self._out_of.get(node, [])
        return edges if port is None else [edge for edge in edges if edge.source.port == port]

    def row_edges(self, node: str) -> list[Edge]:
        """Edges that bring the rows that the node works on, in the order of the spec."""
        ports = self.spec.nodes[node].row_inputs
        return [edge for edge in self.into(node) if edge.target.port in ports]

    def score_inputs(self, node: str) -> tuple[str, ...]:
        """Inputs that bring scores, log-probs or values for the node's rows."""
        return SCORE_INPUTS.get(self.kinds[node], ())

    def score_edges(self, node: str) -> list[Edge]:
        """Edges that bring scores, log-probs or values for the node's rows, in spec order."""
        ports = self.score_inputs(node)
        return [edge for edge in self.into(node) if edge.target.port in ports]

    @cached_property
    def forward_edges(self) -> tuple[Edge, ...]:
        """Edges along which rows move within one round of a step."""
        return tuple(edge for edge in self.edges if self.moves_rows(edge) and not edge.rounds)

    @cached_property
    def callers(self) -> Mapping[str, tuple[str, ...]]:
        """For a policy behind a tool: the generating nodes whose trajectories contain the call."""
        names = [name for name, kind in self.kinds.items() if kind != "tool"]
        return {name: callers for name in names if (callers := self.callers_of(name))}

    @cached_property
    def driven(self) -> Mapping[str, tuple[str, ...]]:
        """For a policy that searches or environments drive: those nodes."""
        by_policy: defaultdict[str, list[str]] = defaultdict(list)
        for edge in self.edges:
            if edge.target.port == "policy" and self.kinds[edge.target.node] in DRIVERS:
                by_policy[edge.source.node].append(edge.target.node)
        return {name: tuple(drivers) for name, drivers in by_policy.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Nodes in topological order; those on or after a cycle come last."""
        before: dict[str, set[str]] = {name: set() for name in self.kinds}
        after: defaultdict[str, list[str]] = defaultdict(list)
        links = [(edge.source.node, edge.target.node) for edge in self.forward_edges]
        links += [(caller, name) for name, callers in self.callers.items() for caller in callers]
        links += [(e.source.node, e.target.node) for e in self.edges if e.target.port == "policy"]
        for source, target in links:
            if source != target and source not in before[target]:
                before[target].add(source)
                after[source].append(target)
        waiting = {name: len(sources) for name, sources in before.items()}
        ready = [name for name, count in waiting.items() if count == 0]
        sorted_nodes: list[str] = []
        while ready:
            name = ready.pop()
            sorted_nodes.append(name)
            for target in after[name]:
                waiting[target] -= 1
                if waiting[target] == 0:
                    ready.append(target)
        placed = set(sorted_nodes)
        return (*sorted_nodes, *(name for name in self.kinds if name not in placed))

    @cached_property
    def stuck(self) -> frozenset[str]:
        """Nodes on a cycle or downstream of one."""
        seen: set[str] = set()
        stuck: set[str] = set()
        before = self._links_of_a_round[1]
        for name in self.order:
            if any(source not in seen or source in stuck for source in before.get(name, ())):
                stuck.add(name)
            seen.add(name)
        return frozenset(stuck)

    @cached_property
    def regions(self) -> tuple[RoundsRegion, ...]:
        moving = [edge for edge in self.edges if self.moves_rows(edge)]
        after, before = _links(moving)
        regions: list[tuple[set[str], list[Edge]]] = []
        for edge in moving:
            if not edge.rounds:
                continue
            nodes = reached([edge.target.node], after) & reached([edge.source.node], before)
            edges = [edge]
            for region in [region for region in regions if region[0] & nodes]:
                regions.remove(region)
                nodes |= region[0]
                edges = region[1] + edges
            regions.append((nodes, edges))
        return tuple(RoundsRegion(nodes=frozenset(n), edges=tuple(e)) for n, e in regions)

    def downstream(self, *starts: str) -> set[str]:
        """These nodes and every node that their rows reach within one round."""
        return reached(starts, self._links_of_a_round[0])

    def upstream(self, *starts: str) -> set[str]:
        """These nodes and every node that their rows come from within one round."""
        return reached(starts, self._links_of_a_round[1])

    @cached_property
    def _links_of_a_round(self) -> tuple[Links, Links]:
        return _links(self.forward_edges)

    def moves_rows(self, edge: Edge) -> bool:
        """Whether rows move on along an edge within a step."""
        about = self.spec.nodes[edge.target.node].about
        port = about.inputs[edge.target.port]
        if PORTS[self.kinds[edge.source.node]].outputs[edge.source.port].type in HANDLES:
            return False
        return port.phase != "learn" and (not about.outlives_step or port.phase == "generate")

    def _makes_sense(self, edge: Edge) -> bool:
        source, target = self.kinds.get(edge.source.node), self.kinds.get(edge.target.node)
        if source is None or target is None:
            return False
        return (
            edge.source.port in PORTS[source].outputs and edge.target.port in PORTS[target].inputs
        )

    def callers_of(self, node: str) -> tuple[str, ...]:
        """Nodes in whose texts a tool, or a policy behind tools, is called."""
        callers: dict[str, None] = {}
        tools, seen = [node], set[str]()
        if self.kinds[node] != "tool":
            tools = [edge.target.node for edge in self.out_of(node, "policy")]
        while tools:
            tool = tools.pop()
            if tool in seen or self.kinds[tool] != "tool":
                continue
            seen.add(tool)
            for edge in self.out_of(tool, "tool"):
                if self.kinds[edge.target.node] == "tool":
                    tools.append(edge.target.node)
                elif edge.target.node != node:
                    callers[edge.target.node] = None
        return tuple(callers)


def _links(edges: Iterable[Edge]) -> tuple[Links, Links]:
    """Successors and predecessors of each node."""
    after: defaultdict[str, list[str]] = defaultdict(list)
    before: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges:
        after[edge.source.node].append(edge.target.node)
        before[edge.target.node].append(edge.source.node)
    return after, before


# What each port means for lineage: which inputs bring the rows that a node works on, which bring
# scores; collected from the kinds.
#
# An input that is neither among them nor a teaching port nor a handle plays no part in a join (a
# library, a seed, documents, spare rows, the learner's reference).

SCORE_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    kind: node.about.scores for kind, node in NODE_CLASSES.items() if node.about.scores
}
"""By kind, the inputs that bring scores. Without row inputs, the scored rows are its rows."""

DRIVERS: Final = frozenset(
    kind
    for kind, node in NODE_CLASSES.items()
    if "policy" in node.about.inputs and node.about.stages
)
"""Kinds whose stage writes with the policies at their input `policy`."""

OWN_ROLLOUT_INPUTS: Final = "rewards"
"""The teaching port whose scores go to rows that the node itself generated."""

ALWAYS_CONCAT: Final = frozenset(kind for kind, node in NODE_CLASSES.items() if node.about.concat)
"""Kinds whose inputs are put one after another, whatever `join` says."""

ROW_OUTPUTS: Final = ("rows", "rollouts", "pairs")
"""Outputs that give rows, in the order in which a node is meant by its name alone."""


Take = Literal["last", "ends", "all"]


def multiplied(walk: Walk, region: RoundsRegion) -> Mapping[str, int]:
    """By node of a region, rows after it per entering row in one round; of joined inputs the
    largest counts."""
    factors: dict[str, int] = {}
    for name in walk.order:
        if name in region.nodes:
            above = [factors.get(e.source.node, 1) for e in walk.row_edges(name) if not e.rounds]
            rollout = getattr(walk.spec.nodes[name], "rollout", None)
            own = 1 if rollout is None else rollout.completions_per_prompt
            factors[name] = max(above, default=1) * own
    return factors
