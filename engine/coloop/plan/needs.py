"""Which stage reads which ports, and which stage fills which: the one table that everything else
follows; each kind says it of itself (`spec/nodes`).

What runs in a phase is the closure of this table from the phase's goals; the order is a topological
sort of the same table. No algorithm is named here. Handles (`policy`, `check`, `tool`) are not in
it: they let one node call another and bring no rows, so they make no stage of whom they call.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from coloop.spec.graph import Edge
from coloop.spec.lineage import Lineage
from coloop.spec.nodes import NODE_CLASSES

READS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    kind: {verb: stage.reads for verb, stage in node.about.stages.items()}
    for kind, node in NODE_CLASSES.items()
}
"""By kind and verb, the ports that the stage reads."""

GIVES: Final[Mapping[str, Mapping[str, str]]] = {
    kind: {port: verb for verb, stage in node.about.stages.items() for port in stage.gives}
    for kind, node in NODE_CLASSES.items()
}
"""By kind and output port, the verb of the stage that fills it; a tool's rows are filled by the
stages in which it is called (`givers`)."""

WRITES: Final[Mapping[str, str]] = {
    kind: verb
    for kind, node in NODE_CLASSES.items()
    for verb, stage in node.about.stages.items()
    if stage.calls
}
"""By kind, the verb of the stage in which it calls its handles."""

CREDITED: Final = frozenset({"rewards"})
"""Teaching ports whose numbers pass through the node's credit stage before it learns."""

SERVING: Final = frozenset({"reference", "values", "prior"})
"""Learn ports that teach nothing themselves and are read only where an algorithm asks for them."""

USES_WEIGHTS: Final = frozenset({"generate", "score"})
"""Verbs that use a group's weights without changing them."""

CONCAT_PORTS: Final = frozenset(
    (kind, port) for kind, node in NODE_CLASSES.items() for port in node.about.concat
)
"""Ports that take their edges one after another, whatever the node's join."""


# Which stages fill what an edge brings, and whom a stage calls.
#
#     problems.load ── solver.generate ── judge.score        an edge of rows: one giver
#                        │ tool: condense ── reader.policy   handles: `reader` writes inside of
#                        └── reader.rollouts                 `solver.generate`, which gives its rows
#
# Over the edges of one lineage, those of dead and half-drawn ends left out.

StageKey = tuple[str, str]
"""(node, verb); for learn stages the node is the weights group's."""


class Givers:
    """Givers and callees of one lineage, each looked up once."""

    def __init__(self, lineage: Lineage) -> None:
        self._walk = lineage.walk
        self._graph = lineage.spec.graph
        self._known: dict[tuple[str, str], tuple[StageKey, ...]] = {}
        self._calls: dict[str, tuple[str, ...]] = {}

    def of(self, edge: Edge) -> tuple[StageKey, ...]:
        """The stages that fill the output from which an edge leads; none for a handle."""
        return self.of_port(edge.source.node, edge.source.port)

    def of_port(self, node: str, port: str) -> tuple[StageKey, ...]:
        key = (node, port)
        if key not in self._known:
            self._known[key] = tuple(self._find(node, port))
        return self._known[key]

    def nodes_of(self, edge: Edge) -> tuple[str, ...]:
        return tuple(node for node, _ in self.of(edge))

    def calls(self, node: str) -> tuple[str, ...]:
        """Nodes that a node calls by handles, and those that these call."""
        if node not in self._calls:
            found: dict[str, None] = {}
            waiting = [node]
            while waiting:
                for edge in self._walk.into(waiting.pop()):
                    callee = edge.source.node
                    if self._graph.is_handle(edge) and callee not in found:
                        found[callee] = None
                        waiting.append(callee)
            self._calls[node] = tuple(one for one in found if one != node)
        return self._calls[node]

    def callers(self, node: str) -> tuple[str, ...]:
        """Writers in whose texts a tool, or a policy behind tools, is called."""
        found: dict[str, None] = {}
        seen, waiting = {node}, [node]
        while waiting:
            for edge in self._walk.out_of(waiting.pop()):
                target = edge.target.node
                if edge.source.port not in ("tool", "policy") or target in seen:
                    continue
                if self._walk.kinds[target] == "tool":
                    seen.add(target)
                    waiting.append(target)
                elif edge.source.port == "tool" and target != node:
                    found[target] = None
        return tuple(found)

    def _find(self, node: str, port: str) -> Iterable[StageKey]:
        kind = self._walk.kinds.get(node, "")
        verb = GIVES.get(kind, {}).get(port)
        inside = () if port != "rollouts" or kind not in ("actor", "tool") else self.callers(node)
        if verb is not None and not (inside and self._rests(node, verb)):
            yield node, verb
        for caller in inside:
            yield caller, WRITES[self._walk.kinds[caller]]

    def _rests(self, node: str, verb: str) -> bool:
        """Whether a stage has nothing to work on: its node acts only where it is called."""
        return not self._walk.into(node, *READS[self._walk.kinds[node]][verb])
