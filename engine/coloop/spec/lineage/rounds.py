"""How rows leave a region of rounds, and where rows of several of its rounds flow.

    ask ── alice ──┬─ (ask)            inside: one round at a time
                   ├─ exact ── keep    `take: all`: rows of all rounds, from here on
                   └─ judge            `take: last`: those of the last one, and what ended before

Pure graph work. A buffer's rows are new rows and of no round.
"""

from collections.abc import Mapping
from typing import Literal

from coloop.spec.graph import Edge
from coloop.spec.lineage.walk import RoundsRegion, Walk

Take = Literal["last", "ends", "all"]


def name_of(region: RoundsRegion) -> str:
    """A region of rounds is named after the first edge that closes it."""
    return f"rounds of {region.edges[0].key}"


def multiplied(walk: Walk, region: RoundsRegion) -> Mapping[str, int]:
    """By node of a region, into how many texts each row that enters has been multiplied behind it
    in one round; siblings that meet do not multiply each other."""
    found: dict[str, int] = {}
    for name in walk.order:
        if name in region.nodes:
            above = [found.get(e.source.node, 1) for e in walk.row_edges(name) if not e.rounds]
            rollout = getattr(walk.spec.nodes[name], "rollout", None)
            own = 1 if rollout is None else rollout.completions_per_prompt
            found[name] = max(above, default=1) * own
    return found


class RoundsFlow:
    """Answers for one walk, each found once."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._region_of = {node: region for region in walk.regions for node in region.nodes}
        self._carried: dict[str, frozenset[str]] = {}
        for name in walk.order if walk.regions else ():
            self._carried[name] = self._brought_to(name)

    def take(self, edge: Edge) -> Take | None:
        """Which rows an edge out of a region takes; None where it does not leave one."""
        region = self._region_of.get(edge.source.node)
        if region is None or self._is_inside(edge, region):
            return None
        if edge.take is not None:
            return edge.take
        about = self._walk.spec.nodes[edge.target.node].about
        is_generate = about.inputs[edge.target.port].phase == "generate"
        return "last" if is_generate or about.takes_last_round else "all"

    def along(self, edge: Edge) -> frozenset[str]:
        """Names of the regions of which an edge brings rows of several rounds."""
        region = self._region_of.get(edge.source.node)
        if region is None:
            return self._carried.get(edge.source.node, frozenset())
        return frozenset() if self._is_inside(edge, region) else frozenset({name_of(region)})

    def _is_inside(self, edge: Edge, region: RoundsRegion) -> bool:
        """Whether an edge delivers in each round; what a node of the region learns from, it learns
        once they are over."""
        return edge.target.node in region.nodes and self._walk.moves_rows(edge)

    def _brought_to(self, name: str) -> frozenset[str]:
        if self._walk.spec.nodes[name].about.outlives_step:
            return frozenset()
        edges = (e for e in self._walk.forward_edges if e.target.node == name)
        return frozenset().union(*map(self.along, edges))
