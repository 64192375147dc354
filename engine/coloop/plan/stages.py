"""What runs: the closure of the needs table from a phase's goals, and the order of what was found.

A step is one unrolling of the graph. Goals are live teaching ports, buffers being filled and due
evaluations; a stage runs if a goal needs what it gives, and of a node that takes its inputs one
after another only those inputs run whose rows can reach a goal.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from coloop.plan.needs import (
    CONCAT_KINDS,
    CONCAT_PORTS,
    CREDITED,
    GIVES,
    READS,
    SERVING,
    USES_WEIGHTS,
)
from coloop.plan.order import in_order
from coloop.plan.refills import REPEATED, Slices, edges_of_first_pass, slices_of
from coloop.plan.types import Refill, Stage
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lineage import Level, Levels, Lineage, Relation
from coloop.spec.ports import PORTS

StageKey = tuple[str, str]
"""(node, verb); for learn stages the node is the weights group's."""

NO_SLICES: Final = Slices(waits={})


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
class _Found:
    edges: dict[str, Edge] = field(default_factory=dict)
    demand: set[Level] | None = field(default_factory=set)
    """Levels whose rows are wanted; None for all."""
    members: set[str] = field(default_factory=set)


class Unrolling:
    """Stages of a spec under some goals."""

    def __init__(
        self,
        spec: LoopSpec,
        lineage: Lineage,
        *,
        serves: Callable[[str, str], frozenset[str]],
        is_dead: Callable[[Edge], bool],
        pool_of: Callable[[str, str], str | None],
        groups: Mapping[str, str],
    ) -> None:
        """
        Args:
            serves: for a teaching port (node, port) the serving ports that its algorithm reads.
            is_dead: edges of weight 0 deliver nothing and nothing runs for them.
            pool_of: where a stage (node, verb) runs; None for the driver.
            groups: the weights group of each node; a node without weights is its own.
        """
        self._spec = spec
        self._graph = spec.graph
        self._lineage = lineage
        self._serves = serves
        self._is_dead = is_dead
        self._pool_of = pool_of
        self._groups = groups
        self._halt: str | None = None
        self._below: frozenset[str] = frozenset()
        self._forward = frozenset(id(edge) for edge in lineage.walk.forward_edges)
        self._spec_order = {node: place for place, node in enumerate(spec.nodes)}

    def step(self, goals: Goals) -> tuple[tuple[Stage, ...], tuple[Refill, ...]]:
        """Stages in the order in which they run, and the slices that filters repeat."""
        found = self._closure(goals)
        edges = [
            e for key, entry in found.items() if key[1] in REPEATED for e in entry.edges.values()
        ]
        slices = slices_of(self._spec, _givers(found))
        stages = self._ordered(found, slices)
        refills = [
            slices.refill(
                self._spec, region, stages, edges_of_first_pass(region, edges, self._is_concat)
            )
            for region in slices.regions
        ]
        places = {stage.name: place for place, stage in enumerate(stages)}
        return stages, tuple(sorted(refills, key=lambda refill: places[refill.first_pass[0]]))

    def stages(self, goals: Goals) -> tuple[Stage, ...]:
        """Stages in the order in which they run, each once."""
        return self._ordered(self._closure(goals), NO_SLICES)

    def slice_after(
        self, node: str, ports: Iterable[tuple[str, str]]
    ) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
        """The stages between a node and these output ports, that node's own left out; and what they
        need besides: stages that nothing of the node reaches. Where rows of the slice are put
        together with others, the others stay away."""
        below = self.below(node)
        found = self._closure(Goals(wanted=frozenset(ports)), halt=node, below=below)
        kept = {key: entry for key, entry in found.items() if key[0] in below and key[0] != node}
        beside = {key: entry for key, entry in found.items() if key[0] not in below}
        return self._ordered(kept, NO_SLICES), self._ordered(beside, NO_SLICES)

    def below(self, node: str) -> frozenset[str]:
        """The node and all that its rows reach in this step; what a buffer gives are other rows."""
        reached, waiting = {node}, [node]
        while waiting:
            name = waiting.pop()
            for edge in self._lineage.walk.out_of(name):
                target = edge.target.node
                is_forward = id(edge) in self._forward and self._kind(target) != "buffer"
                if is_forward and target not in reached:
                    reached.add(target)
                    waiting.append(target)
        return frozenset(reached)

    def sources_of(self, ports: Iterable[tuple[str, str]]) -> tuple[Stage, ...]:
        """Everything that these output ports need."""
        return self.stages(Goals(wanted=frozenset(ports)))

    def _closure(
        self, goals: Goals, halt: str | None = None, below: frozenset[str] = frozenset()
    ) -> dict[StageKey, _Found]:
        found: dict[StageKey, _Found] = {}
        self._halt, self._below = halt, below
        for node, port in sorted(goals.teaching):
            self._teach(found, node, port)
        for buffer in sorted(goals.fills):
            self._need(found, buffer, "write", None)
        for node, port in sorted(goals.wanted):
            self._need(found, node, GIVES[self._kind(node)][port], self._levels(node, port))
        return found

    def _kind(self, node: str) -> str:
        return self._spec.nodes[node].kind

    def _levels(self, node: str, port: str) -> Levels | None:
        return self._lineage.levels(node, port) or None

    def _teach(self, found: dict[StageKey, _Found], node: str, port: str) -> None:
        group = self._groups[node]
        learn = found.setdefault((group, "learn"), _Found(demand=None))
        learn.members.add(node)
        served = self._serves(node, port)
        if port in CREDITED:
            credit = self._record(found, (node, "credit"), None)
            edges = [*self.live_edges(node, port)]
            demand: set[Level] = set(self._lineage.levels(node, "rollouts"))
        else:
            credit = learn
            edges = [*self.live_edges(node, port)]
            demand = {
                level
                for edge in edges
                for level in self._lineage.levels(edge.source.node, edge.source.port)
            }
        for edge in edges:
            credit.edges[edge.key] = edge
            wanted = self._scored_for(node, edge) if port in CREDITED else None
            self._follow(found, edge, wanted)
            # Rows that a buffer kept learn beside those of the step.
            demand |= {level for level in wanted or () if self._is_kept(level)}
        for serving in sorted(served & SERVING):
            for edge in self.live_edges(node, serving):
                credit.edges[edge.key] = edge
                self._follow(found, edge, demand or None)
        sync = PORTS[self._kind(node)].stages
        if "sync" in sync and self._writes(group):
            self._record(found, (group, "sync"), None)

    def _scored_for(self, node: str, edge: Edge) -> set[Level] | None:
        """Levels whose scores this edge can bring to the learner's rows, or to rows that a buffer
        keeps of it; None for all."""
        own = self._lineage.levels(node, "rollouts")
        related = {Relation.SAME, Relation.DOWN, Relation.UP}
        if self._lineage.attachment(edge).relation is Relation.SIDE:
            related.add(Relation.SIDE)
        scored = self._lineage.levels(edge.source.node, edge.source.port)
        wanted = {
            level
            for level in scored
            if self._is_kept(level) or self._lineage.relate(own, frozenset({level})) in related
        }
        return wanted or None

    def _is_kept(self, level: Level) -> bool:
        """Whether rows of this level come out of a buffer."""
        born = self._spec.nodes.get(level.node)
        is_kept = born is not None and born.kind == "buffer"
        return is_kept or any(self._is_kept(parent) for parent in level.parents)

    def _writes(self, group: str) -> bool:
        """Whether a member of the group has an engine that wants new weights."""
        return any(
            self._groups[node] == group and "generate" in PORTS[self._kind(node)].stages
            for node in self._spec.nodes
        )

    def live_edges(self, node: str, port: str) -> Iterable[Edge]:
        """Edges that deliver at a port."""
        return (
            edge
            for edge in self._graph.edges_into(node, port)
            if not self._is_dead(edge) and not edge.rounds and edge.source.node in self._spec.nodes
        )

    def _follow(
        self, found: dict[StageKey, _Found], edge: Edge, demand: Iterable[Level] | None
    ) -> None:
        source = edge.source.node
        verb = GIVES[self._kind(source)].get(edge.source.port)
        if verb is not None:
            self._need(found, source, verb, demand)

    def _record(
        self, found: dict[StageKey, _Found], key: StageKey, demand: Iterable[Level] | None
    ) -> _Found:
        entry = found.setdefault(key, _Found())
        if demand is None:
            entry.demand = None
        elif entry.demand is not None:
            entry.demand |= set(demand)
        return entry

    def _need(
        self, found: dict[StageKey, _Found], node: str, verb: str, demand: Iterable[Level] | None
    ) -> None:
        before = found.get((node, verb))
        known = None if before is None else (before.demand and frozenset(before.demand))
        entry = self._record(found, (node, verb), demand)
        now = entry.demand and frozenset(entry.demand)
        if (before is not None and known == now) or node == self._halt:
            return
        is_born_here = (
            verb == "read"
        )  # a buffer's rows have no parents: all that seeds it is wanted
        wanted = None if is_born_here else entry.demand
        stays_away = self._stays_away(node, READS[self._kind(node)].get(verb, ()))
        for port in READS[self._kind(node)].get(verb, ()):
            concat = self._is_concat(node, port)
            for edge in self.live_edges(node, port):
                if edge.key in stays_away or (concat and not self._reaches(edge, wanted)):
                    continue
                entry.edges[edge.key] = edge
                self._follow(found, edge, wanted)

    def _stays_away(self, node: str, ports: Iterable[str]) -> frozenset[str]:
        """Edges that bring other rows than those of the slice to where both are put together."""
        if node not in self._below:
            return frozenset()
        concat = [port for port in ports if self._is_concat(node, port)]
        edges = [edge for port in concat for edge in self.live_edges(node, port)]
        others = [edge for edge in edges if edge.source.node not in self._below]
        if len(others) == len(edges):
            others = []
        spare = self.live_edges(node, "spare")
        others += [edge for edge in spare if edge.source.node not in self._below]
        return frozenset(edge.key for edge in others)

    def _is_concat(self, node: str, port: str) -> bool:
        section = self._spec.nodes[node]
        return (
            section.kind in CONCAT_KINDS
            or (section.kind, port) in CONCAT_PORTS
            or getattr(section, "join", None) == "concat"
        )

    def _reaches(self, edge: Edge, demand: set[Level] | None) -> bool:
        if demand is None:
            return True
        levels = self._lineage.levels(edge.source.node, edge.source.port)
        related = (Relation.SAME, Relation.DOWN, Relation.UP)
        return any(
            self._lineage.relate(frozenset({level}), frozenset({wanted})) in related
            for level in levels
            for wanted in demand
        )

    def _ordered(self, found: Mapping[StageKey, _Found], slices: Slices) -> tuple[Stage, ...]:
        before = self._waits(found, slices)

        def piece(key: StageKey) -> Hashable:
            return slices.piece(*key) or key

        order = in_order(before, piece, lambda key: self._spec_order.get(key[0], 0))
        places = {key: place for place, key in enumerate(order)}
        return tuple(
            self._stage(key, found[key], sorted(before[key], key=places.__getitem__))
            for key in order
        )

    def _waits(
        self, found: Mapping[StageKey, _Found], slices: Slices
    ) -> dict[StageKey, set[StageKey]]:
        """By stage, those that it stands after."""
        before: dict[StageKey, set[StageKey]] = {key: set() for key in found}
        for key, entry in found.items():
            for edge in entry.edges.values():
                source = edge.source.node
                giver = (source, GIVES[self._kind(source)][edge.source.port])
                if giver in found and giver != key:
                    before[key].add(giver)
                    filters = slices.filters_before(*key, source) if giver[1] in REPEATED else []
                    before[key].update((name, "prepare") for name in filters)
            if key[1] == "credit":
                before[(self._groups[key[0]], "learn")].add(key)
            if key[1] == "sync":
                before[key].add((key[0], "learn"))
        learns = [key for key in found if key[1] == "learn"]
        for group, _ in learns:
            for key in found:
                if key[1] in USES_WEIGHTS and self._groups.get(key[0]) == group:
                    before[(group, "learn")].add(key)
        for key in found:
            if key[1] == "write":
                before[key].update(k for k in found if k[1] != "write")
        return before

    def _stage(self, key: StageKey, entry: _Found, after: Iterable[StageKey]) -> Stage:
        node, verb = key
        return Stage(
            name=f"{node}.{verb}",
            node=node,
            verb=verb,
            kind=self._kind(node),
            edges=tuple(entry.edges),
            after=tuple(f"{before}.{done}" for before, done in after),
            members=tuple(sorted(entry.members, key=lambda n: self._spec_order[n])),
            pool=self._pool_of(node, verb),
        )


def _givers(found: Mapping[StageKey, _Found]) -> Mapping[str, tuple[str, ...]]:
    """By node whose stage may be repeated, the nodes whose rows it reads."""
    repeated = {node: entry for (node, verb), entry in found.items() if verb in REPEATED}
    return {
        node: tuple(
            dict.fromkeys(e.source.node for e in entry.edges.values() if e.source.node in repeated)
        )
        for node, entry in repeated.items()
    }
